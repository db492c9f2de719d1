//! The questions of the reference monitor (Bell and LaPadula: no read up, no write down), and what
//! a subject's grants narrow them to. Nothing else decides about data.

use coffer_label::Label;
use coffer_seal::BucketId;

use super::read_mark::Mark;
use super::rights::Right;
use super::roles::Role;
use super::subject::Subject;

/// Whether `subject` may read what is labelled `label`: its high label dominates it.
pub(crate) fn may_read(subject: &Subject, label: &Label) -> bool {
    subject.clearance.high().dominates(label)
}

/// Whether `subject` may write what is labelled `label`: the label dominates its low label, and
/// its high label dominates the label (blind writes upwards are off).
pub(crate) fn may_write(subject: &Subject, label: &Label) -> bool {
    subject.clearance.contains(label)
}

/// Whether what a subject has read lets it write what is labelled `label`: a label that dominates
/// all of it, unless the subject is trusted with its range.
pub(crate) fn may_write_after_reading(is_trusted: bool, mark: &Mark, label: &Label) -> bool {
    is_trusted || mark.lets_write(label)
}

/// Whether a read at `label` is to be remembered: by who may write below it, and is not trusted.
pub(crate) fn is_marked_by(subject: &Subject, label: &Label) -> bool {
    subject.floats() && !subject.clearance.low().dominates(label)
}

/// Whether `subject` may know that a bucket exists: it may read its label, and is granted something
/// in it, unless its grants name no buckets.
pub(crate) fn may_know(subject: &Subject, bucket: BucketId, label: &Label) -> bool {
    let granted = |grants: &super::subject::Grants| grants.contains_key(&bucket);
    may_read(subject, label) && subject.grants.as_deref().is_none_or(granted)
}

/// Whether `asker` may know that `other` exists, where a bucket labelled `label` is shared: those
/// who look after the server know of all. Others know of themselves, and of who may read that label
/// and belongs to none that `asker` may not read.
pub(crate) fn may_know_subject(asker: &Subject, other: &Subject, label: &Label) -> bool {
    if asker.is_anonymous() {
        return false;
    }
    let may_share = other.roles.has(Role::DataUser)
        && may_read(other, label)
        && may_read(asker, label)
        && may_read(asker, other.clearance.low());
    asker.roles.look_after() || asker.id == other.id || may_share
}

/// Whether a label lets `subject` use `right`: nothing that is said of sharing a bucket reaches
/// past that.
pub(crate) fn may_use_by_label(subject: &Subject, label: &Label, right: Right) -> bool {
    if right.changes() {
        may_write(subject, label)
    } else {
        may_read(subject, label)
    }
}

/// Whether `subject` may use `right` in a bucket that it may know of.
pub(crate) fn may_use(subject: &Subject, bucket: BucketId, label: &Label, right: Right) -> bool {
    let by_label = may_use_by_label(subject, label, right);
    let rights = |grants: &super::subject::Grants| {
        grants.get(&bucket).is_some_and(|rights| rights.has(right))
    };
    by_label && subject.grants.as_deref().is_none_or(rights)
}

/// Whether what is labelled `from` may be copied to where `to` stands: never downwards, also
/// within a clearance that holds both.
pub(crate) fn may_copy(from: &Label, to: &Label) -> bool {
    to.dominates(from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coffer_seal::SubjectId;

    use super::*;
    use crate::access::Roles;
    use crate::access::rights::Rights;

    fn subject(clearance: &str) -> Subject {
        Subject {
            id: SubjectId([1; 16]),
            access_key: None,
            name: "subject".into(),
            clearance: clearance.parse().unwrap(),
            is_trusted: false,
            mark: Default::default(),
            roles: Roles::all(),
            grants: None,
            is_disabled: false,
            expires_ms: None,
            created_ms: 0,
            cutoff: Default::default(),
            asked: None,
        }
    }

    #[test]
    fn no_read_up_and_no_write_down() {
        let subject = subject("s1-s3:c1");
        let cases = [
            ("s0", true, false),
            ("s1", true, true),
            ("s3:c1", true, true),
            ("s3:c2", false, false),
            ("s4", false, false),
        ];
        for (label, read, write) in cases {
            let label: Label = label.parse().unwrap();
            assert_eq!(may_read(&subject, &label), read, "read {label}");
            assert_eq!(may_write(&subject, &label), write, "write {label}");
        }
    }

    #[test]
    fn what_was_read_bars_writes_below_it() {
        let mut subject = subject("s1-s3:c1.c2");
        let label = |text: &str| text.parse::<Label>().unwrap();
        for (text, marked) in [("s0", false), ("s1", false), ("s0:c1", true), ("s2", true)] {
            assert_eq!(is_marked_by(&subject, &label(text)), marked, "{text}");
        }
        let may_write = |subject: &Subject, text| {
            may_write_after_reading(subject.is_trusted, &subject.mark, &label(text))
        };
        assert!(may_write(&subject, "s1"));
        subject.mark.raise(label("s2:c1"));
        for (text, may) in [
            ("s1", false),
            ("s3", false),
            ("s2:c1", true),
            ("s3:c1.c2", true),
        ] {
            assert_eq!(may_write(&subject, text), may, "{text}");
        }
        subject.is_trusted = true;
        assert!(may_write(&subject, "s1"));
        assert!(!is_marked_by(&subject, &label("s2")));
    }

    #[test]
    fn a_clearance_of_one_level_never_floats() {
        let subject = subject("s2:c1");
        for text in ["s0", "s2", "s2:c1"] {
            assert!(!is_marked_by(&subject, &text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn grants_narrow_and_never_widen() {
        let [one, other] = [[1; 16], [2; 16]].map(BucketId);
        let mut subject = subject("s1");
        let rights: Rights = "read,delete".parse().unwrap();
        subject.grants = Some(Arc::new([(one, rights)].into()));
        let own: Label = "s1".parse().unwrap();
        let lower: Label = "s0".parse().unwrap();
        let higher: Label = "s2".parse().unwrap();
        let used = |bucket, label: &Label| {
            let used = |right: &Right| may_use(&subject, bucket, label, *right);
            Right::ALL
                .into_iter()
                .filter(used)
                .collect::<Rights>()
                .to_string()
        };
        assert_eq!(used(one, &own), "read,delete");
        assert_eq!(used(one, &lower), "read");
        assert_eq!(used(one, &higher), "");
        assert_eq!(used(other, &own), "");
        assert!(may_know(&subject, one, &lower));
        assert!(!may_know(&subject, one, &higher) && !may_know(&subject, other, &own));
    }

    #[test]
    fn a_tenant_knows_of_no_other_tenants_subjects() {
        let tenant = |clearance: &str, id: u8| {
            let mut subject = subject(clearance);
            subject.id = SubjectId([id; 16]);
            subject.roles = [Role::DataUser].into_iter().collect();
            subject
        };
        let knows = |asker: &str, other: &str, label: &str| {
            let label = label.parse().unwrap();
            may_know_subject(&tenant(asker, 1), &tenant(other, 2), &label)
        };
        for (asker, other, label, is_known) in [
            ("s1:c1", "s1:c1", "s1:c1", true),
            ("s1:c1", "s1:c2", "s1:c1", false),
            ("s1:c2", "s1:c1", "s1:c2", false),
            // One that also writes where all read.
            ("s0-s1:c1", "s1:c2", "s0", false),
            ("s0-s1:c1", "s0-s1:c2", "s0", true),
            ("s0", "s0-s3", "s0", true),
            ("s0", "s3", "s0", false),
            ("s0-s3", "s0-s1", "s1", true),
            ("s0-s3", "s0-s1", "s3", false),
        ] {
            assert_eq!(
                knows(asker, other, label),
                is_known,
                "{asker} {other} {label}"
            );
        }
        let label = "s1:c1".parse().unwrap();
        let mut asker = tenant("s1:c1", 1);
        let other = tenant("s1:c2", 2);
        assert!(may_know_subject(&asker, &asker, &"s3".parse().unwrap()));
        asker.roles = [Role::DataUser, Role::Auditor].into_iter().collect();
        assert!(may_know_subject(&asker, &other, &label));
        let mut administrator = tenant("s1:c1", 3);
        administrator.roles = [Role::SystemAdministrator].into_iter().collect();
        assert!(!may_know_subject(
            &tenant("s1:c1", 1),
            &administrator,
            &label
        ));
        assert!(!may_know_subject(
            &Subject::anonymous(),
            &tenant("s0", 1),
            &Label::LOWEST
        ));
    }
}
