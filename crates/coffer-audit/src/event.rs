//! What is recorded.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::AuditError;
use crate::limits::{
    ACT_MAX_BYTES, ACTOR_MAX_BYTES, DETAIL_COUNT_MAX, DETAIL_NAME_MAX_BYTES,
    DETAIL_VALUE_MAX_BYTES, HASH_BYTES, RECORD_MAX_BYTES,
};

/// What the log calls itself as an actor.
pub(crate) const LOG_ACTOR: &str = "coffer";
/// A signed statement of number and hash of the record before.
pub(crate) const CHECKPOINT: &str = "audit.checkpoint";
/// Notes that were dropped, for want of room.
pub(crate) const DROPPED: &str = "audit.dropped";
/// What a crash left unfinished at the end was cut off.
pub(crate) const CUT: &str = "audit.cut";
/// The log was found damaged.
pub(crate) const DAMAGE: &str = "audit.damage";

/// What a server records that goes on from an older copy on purpose, of each file that is older.
pub const ROLLBACK_ACCEPTED: &str = "rollback.accept";

/// What such a record calls this log.
pub const LOG_FILE: &str = "audit/";

/// What is found where a log is whole, and lacks a record that it is known to have had.
pub(crate) fn older_copy(lacks: u64) -> String {
    format!("the log is an older copy: it lacks record {lacks}")
}

/// A signed statement of which records were removed at the beginning.
pub(crate) const PRUNED: &str = "audit.pruned";

/// Acts that the log alone records.
pub const OWN_ACTS: [&str; 5] = [CHECKPOINT, DROPPED, CUT, DAMAGE, PRUNED];

/// Who did what, and what became of it.
///
/// ```
/// use coffer_audit::{Event, Outcome};
///
/// let event = Event::new("level.create", "local:1000", Outcome::Done)
///     .with("level", "secret")
///     .with("rank", 2);
/// assert_eq!(event.details["rank"], "2");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What was done: `noun.verb`, of the characters `a` to `z`, `0` to `9`, `.`, `-` and `_`.
    pub act: Cow<'static, str>,
    /// Who did it: a subject's id, or `local:UID`; before subjects had ids, an access key's.
    pub actor: String,
    /// The name by which people know who did it, as it was then; none of a user of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_name: Option<String>,
    /// The id of the access key that it was asked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// What it was done to, and how.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// What became of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is allowed, and about to be done: how it ended is in a later record.
    Begun,
    /// It was done.
    Done,
    /// It was not allowed.
    Denied,
    /// It was allowed, and failed.
    Failed,
}

impl Outcome {
    /// As it is written: `begun`, `done`, `denied` or `failed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// An event as it is sealed, with its time.
#[derive(Serialize, Deserialize)]
pub(crate) struct Timed {
    /// Milliseconds since 1970 (UTC).
    pub(crate) time_ms: i64,
    #[serde(flatten)]
    pub(crate) event: Event,
}

impl Event {
    /// An event without details.
    pub fn new(act: &'static str, actor: impl Into<String>, outcome: Outcome) -> Self {
        Self {
            act: Cow::Borrowed(act),
            actor: actor.into(),
            actor_name: None,
            access_key_id: None,
            outcome,
            details: BTreeMap::new(),
        }
    }

    /// With the name of who did it, if there is one.
    #[must_use]
    pub fn by(mut self, name: Option<&str>) -> Self {
        self.actor_name = name.map(str::to_owned);
        self
    }

    /// With the access key that it was asked with, if there is one.
    #[must_use]
    pub fn with_access_key(mut self, id: Option<&str>) -> Self {
        self.access_key_id = id.map(str::to_owned);
        self
    }

    /// With one more detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.details.insert(name.to_owned(), value.to_string());
        self
    }

    /// An event of the log itself.
    pub(crate) fn of_log(act: &'static str) -> Self {
        Self::new(act, LOG_ACTOR, Outcome::Done)
    }

    /// As it is sealed; only the log's own acts may have their names.
    pub(crate) fn encode(self, time_ms: i64) -> Result<Vec<u8>, AuditError> {
        if OWN_ACTS.contains(&self.act.as_ref()) {
            return Err(AuditError::Event { what: "act" });
        }
        self.check()?;
        self.encode_own(time_ms)
    }

    /// As it is sealed, also when it is the log's own.
    pub(crate) fn encode_own(self, time_ms: i64) -> Result<Vec<u8>, AuditError> {
        let timed = Timed {
            time_ms,
            event: self,
        };
        let bytes = serde_json::to_vec(&timed);
        let bytes = bytes.expect("strings and integers are always JSON");
        if HASH_BYTES + bytes.len() > RECORD_MAX_BYTES {
            return Err(AuditError::Event { what: "size" });
        }
        Ok(bytes)
    }

    fn check(&self) -> Result<(), AuditError> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_act = |byte: u8| is_name(byte) || b".-_".contains(&byte);
        let act =
            !self.act.is_empty() && self.act.len() <= ACT_MAX_BYTES && self.act.bytes().all(is_act);
        let too_long = |(name, value): (&String, &String)| {
            name.len() > DETAIL_NAME_MAX_BYTES || value.len() > DETAIL_VALUE_MAX_BYTES
        };
        let details = self.details.len() <= DETAIL_COUNT_MAX && !self.details.iter().any(too_long);
        for (is_right, what) in [
            (act, "act"),
            (self.actor.len() <= ACTOR_MAX_BYTES, "actor"),
            (
                self.actor_name.as_ref().map_or(0, String::len) <= ACTOR_MAX_BYTES,
                "actor's name",
            ),
            (details, "details"),
        ] {
            if !is_right {
                return Err(AuditError::Event { what });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_natural_json() {
        let event = Event::new("level.create", "local:0", Outcome::Done).with("level", "ä\n");
        let bytes = event.clone().encode(42).unwrap();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            "{\"time_ms\":42,\"act\":\"level.create\",\"actor\":\"local:0\",\"outcome\":\"done\",\
             \"details\":{\"level\":\"ä\\n\"}}"
        );
        let read: Timed = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((read.time_ms, &read.event), (42, &event));

        let named = Event::new("level.create", "KEY", Outcome::Done).by(Some("alice"));
        let bytes = named.clone().encode(42).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(
            text.contains("\"actor\":\"KEY\",\"actor_name\":\"alice\""),
            "{text}"
        );
        let read: Timed = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read.event, named);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let event = || Event::new("a.b", "me", Outcome::Failed);
        let refused = |event: Event| event.encode(0).is_err();
        assert!(!refused(event().with("name", "\0".repeat(1_024))));
        assert!(refused(event().with("name", "x".repeat(2_049))));
        assert!(refused(event().with(&"x".repeat(65), "")));
        assert!(refused(Event::new("A", "me", Outcome::Done)));
        assert!(refused(Event::new("a", "x".repeat(257), Outcome::Done)));
        assert!(refused(event().by(Some(&"x".repeat(257)))));
        assert!(refused(Event::new(CHECKPOINT, "me", Outcome::Done)));
        let many = (0..33).fold(event(), |event, number| event.with(&number.to_string(), 1));
        assert!(refused(many));
        let full = (0..8).fold(event(), |event, number| {
            event.with(&number.to_string(), "x".repeat(2_048))
        });
        assert!(refused(full), "all together");
    }
}
