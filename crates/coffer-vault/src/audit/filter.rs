//! Which records of the audit log are wanted.

use std::collections::BTreeSet;

use coffer_audit::{OWN_ACTS, Outcome, Record};

use crate::access::ACT_NAMES;
use crate::system::{SubjectEntry, System};

/// Details in which subjects stand, by name, by id or by access key id.
const SUBJECTS: [&str; 8] = [
    "subject_id",
    "subject",
    "access_key_id",
    "claimed",
    "requested_by",
    "requested_by_name",
    "approved_by",
    "approved_by_name",
];

/// What is wanted of a record; what is none counts for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// From this time on, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Before this time, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// The act, such as `level.erase`; or what stands before its dot, for all of that kind.
    pub act: Option<String>,
    /// Who did it, or to whom it was done: a name, an id or an access key id.
    pub subject: Option<String>,
    /// The bucket's name.
    pub bucket: Option<String>,
    /// What became of it.
    pub outcome: Option<Outcome>,
}

/// Says which acts there are where a filter names none of them: neither an act nor all of a kind.
pub fn check_act(act: &str) -> std::result::Result<(), String> {
    let names = [ACT_NAMES, &OWN_ACTS].concat();
    if names.iter().any(|name| is_act(name, act)) {
        Ok(())
    } else {
        Err(format!(
            "there is no act {act:?}; the acts are {}",
            names.join(", ")
        ))
    }
}

impl AuditFilter {
    /// Whether it wants every record.
    pub fn wants_all(&self) -> bool {
        *self == Self::default()
    }

    /// As it applies to a log, of whose subjects the server knows these.
    pub(crate) fn ready(self, system: Option<&System>) -> Ready {
        let mut subjects = BTreeSet::new();
        if let Some(given) = &self.subject {
            subjects.insert(given.clone());
            // Records of earlier versions name subjects by an access key or by name only, and a
            // name may have changed. One access key is asked for alone.
            let is_meant = |found: &SubjectEntry| found.access_keys().all(|key| key.id != *given);
            let found = system.and_then(|system| system.find_subject(given));
            if let Some(found) = found.filter(is_meant) {
                subjects.insert(found.subject.id().to_string());
                subjects.insert(found.subject.name().to_owned());
                subjects.extend(found.access_keys().map(|key| key.id.clone()));
            }
        }
        Ready {
            filter: self,
            subjects,
        }
    }
}

/// A filter, and who its subject is.
pub(crate) struct Ready {
    filter: AuditFilter,
    /// The subject's id, name and access key ids.
    subjects: BTreeSet<String>,
}

impl Ready {
    pub(crate) fn wants_all(&self) -> bool {
        self.filter.wants_all()
    }

    /// Whether a record is wanted.
    pub(crate) fn wants(&self, record: &Record) -> bool {
        let AuditFilter {
            since_ms,
            until_ms,
            act,
            subject,
            bucket,
            outcome,
        } = &self.filter;
        let event = &record.event;
        since_ms.is_none_or(|since_ms| record.time_ms >= since_ms)
            && until_ms.is_none_or(|until_ms| record.time_ms < until_ms)
            && outcome.is_none_or(|outcome| event.outcome == outcome)
            && act.as_ref().is_none_or(|act| is_act(&event.act, act))
            && bucket
                .as_ref()
                .is_none_or(|bucket| event.details.get("bucket") == Some(bucket))
            && (subject.is_none() || self.names_subject(record))
    }

    fn names_subject(&self, record: &Record) -> bool {
        let event = &record.event;
        let is_meant = |text: &str| self.subjects.contains(text);
        let told = SUBJECTS.iter().filter_map(|name| event.details.get(*name));
        let by_key = event.access_key_id.as_deref();
        let of_actor = [
            Some(event.actor.as_str()),
            event.actor_name.as_deref(),
            by_key,
        ];
        of_actor.into_iter().flatten().any(is_meant) || { told }
            .any(|text| text.split(' ').any(is_meant))
    }
}

/// Whether an act is the one given, or of that kind.
fn is_act(act: &str, given: &str) -> bool {
    act == given
        || act
            .strip_prefix(given)
            .is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use coffer_audit::{Event, Hash};

    use super::*;

    fn record(event: Event) -> Record {
        Record {
            sequence: 7,
            hash: Hash::NONE,
            segment: 1,
            time_ms: 1_000,
            event,
        }
    }

    #[test]
    fn conditions_are_combined() {
        let event = Event::new("object.read", "KEY1", Outcome::Denied)
            .by(Some("alice"))
            .with("bucket", "notes");
        let wants = |filter: AuditFilter| filter.ready(None).wants(&record(event.clone()));
        let all = AuditFilter {
            since_ms: Some(1_000),
            until_ms: Some(1_001),
            act: Some("object".to_owned()),
            subject: Some("alice".to_owned()),
            bucket: Some("notes".to_owned()),
            outcome: Some(Outcome::Denied),
        };
        assert!(wants(AuditFilter::default()));
        assert!(wants(all.clone()));
        let changes: [fn(&mut AuditFilter); 8] = [
            |filter| filter.since_ms = Some(1_001),
            |filter| filter.until_ms = Some(1_000),
            |filter| filter.act = Some("object.write".to_owned()),
            |filter| filter.act = Some("obj".to_owned()),
            |filter| filter.subject = Some("alic".to_owned()),
            |filter| filter.bucket = Some("note".to_owned()),
            |filter| filter.outcome = Some(Outcome::Done),
            |filter| filter.subject = Some(String::new()),
        ];
        for change in changes {
            let mut one = all.clone();
            change(&mut one);
            assert!(!wants(one.clone()), "{one:?}");
        }
        let by_key = AuditFilter {
            subject: Some("KEY1".to_owned()),
            ..all
        };
        assert!(wants(by_key));
    }

    #[test]
    fn a_subject_is_found_wherever_it_stands() {
        for (name, value) in [
            ("subject", "alice"),
            ("access_key_id", "alice"),
            ("approved_by", "KEY2 alice"),
            ("requested_by_name", "alice"),
        ] {
            let event = Event::new("key.export", "KEY9", Outcome::Done).with(name, value);
            let filter = AuditFilter {
                subject: Some("alice".to_owned()),
                ..AuditFilter::default()
            };
            assert!(filter.ready(None).wants(&record(event)), "{name}");
        }
    }
}
