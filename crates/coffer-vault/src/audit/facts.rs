//! What a record says of an act beside its name.

use std::collections::BTreeMap;

use coffer_audit::{Event, Outcome};

use crate::access::{Act, AuditIdentity};
use crate::limits::FACT_MAX_BYTES;

/// What a record says of an act beside its name: a level's name, a bucket's, an access key id.
/// Never a secret, never an object's name.
pub type Facts = BTreeMap<&'static str, String>;

/// An event of the audit log.
pub(crate) fn event(act: Act, actor: &dyn AuditIdentity, outcome: Outcome, facts: &Facts) -> Event {
    let event = Event::new(act.name(), actor.id(), outcome)
        .by(actor.name())
        .with_access_key(actor.access_key_id());
    facts.iter().fold(event, |event, (name, value)| {
        event.with(name, clipped(value))
    })
}

/// What was asked for may be longer than anything that is allowed.
fn clipped(value: &str) -> &str {
    &value[..value.floor_char_boundary(FACT_MAX_BYTES)]
}

/// Facts of any length, over as many records as they take: each has `about`, and a piece of every
/// one of `told` that is that long. Lists are divided between their entries.
pub(crate) fn whole(about: &Facts, told: Vec<(&'static str, Vec<String>)>) -> Vec<Facts> {
    let mut records = vec![about.clone()];
    for (name, entries) in told {
        for (place, piece) in pieces(entries).into_iter().enumerate() {
            if place == records.len() {
                records.push(about.clone());
            }
            records[place].insert(name, piece);
        }
    }
    let count = records.len();
    if count > 1 {
        for (place, facts) in records.iter_mut().enumerate() {
            facts.insert("part", format!("{} of {count}", place + 1));
        }
    }
    records
}

/// Entries with a space between them, in pieces that fit into a fact.
fn pieces(entries: Vec<String>) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for entry in entries {
        let mut rest = &*entry;
        loop {
            let last = pieces.last_mut().expect("there is always one");
            let space = usize::from(!last.is_empty());
            if last.len() + space + rest.len() <= FACT_MAX_BYTES {
                last.push_str(&" "[..space]);
                last.push_str(rest);
                break;
            }
            if last.is_empty() {
                let (piece, more) = rest.split_at(rest.floor_char_boundary(FACT_MAX_BYTES));
                last.push_str(piece);
                rest = more;
            }
            pieces.push(String::new());
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_any_length_are_told_whole() {
        let about = Facts::from([("subject", "alice".to_owned())]);
        let grants: Vec<String> = (0..1_000)
            .map(|number| format!("{}-{number}=read,write", "b".repeat(60)))
            .collect();
        let long = "c".repeat(3 * FACT_MAX_BYTES);
        let records = whole(
            &about,
            vec![
                ("clearance", vec![long.clone()]),
                ("roles", vec!["auditor".to_owned()]),
                ("grants", grants.clone()),
            ],
        );
        assert!(records.len() > 30, "{}", records.len());
        let told = |name: &str, between: &str| {
            let pieces: Vec<&str> = records
                .iter()
                .filter_map(|facts| facts.get(name))
                .inspect(|piece| assert!(piece.len() <= FACT_MAX_BYTES))
                .map(String::as_str)
                .collect();
            pieces.join(between)
        };
        assert_eq!(told("grants", " "), grants.join(" "));
        assert_eq!(told("clearance", ""), long);
        assert_eq!(told("roles", " "), "auditor");
        for (place, facts) in records.iter().enumerate() {
            assert_eq!(facts["subject"], "alice");
            assert_eq!(facts["part"], format!("{} of {}", place + 1, records.len()));
            let event = event(
                crate::access::Act::CreateSubject,
                &"server",
                Outcome::Begun,
                facts,
            );
            for (name, value) in facts {
                assert_eq!(event.details[*name], *value, "nothing is clipped");
            }
        }
        let few = whole(&about, vec![("grants", vec!["a=read".to_owned()])]);
        assert_eq!(few.len(), 1);
        assert!(!few[0].contains_key("part"));
    }
}
