//! What a verification reports, as lines of JSON: the language between the local socket and
//! `coffer verify`.

use coffer_vault::VerifyEvent;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the server is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyRequest {
    /// How many bytes a second to read at most.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub rate: Option<u64>,
    /// Check of each blob no more than its length and its commitment to its key.
    pub commitments_only: bool,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Report {
    /// So much has been checked.
    Progress {
        /// Blobs and small objects opened so far.
        checked_count: u64,
        /// Bytes opened so far.
        checked_bytes: u64,
        /// Bytes there are.
        total_bytes: u64,
    },
    /// This does not open.
    Damage {
        /// In which bucket; absent where it is `system.db`.
        #[serde(skip_serializing_if = "Option::is_none")]
        bucket: Option<String>,
        /// Which object; absent where it is the catalog itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What is damaged.
        what: String,
    },
    /// This opens, and is older than is known of it, or of another time than what is above it.
    Rollback {
        /// What is so, in a sentence.
        what: String,
    },
    /// A restore of others left this bucket out, and nothing of it is there: it is no damage.
    LeftOut {
        /// The bucket: its name, or its id where that is not known.
        bucket: String,
    },
    /// The walk is over.
    Done {
        /// Blobs and small objects opened.
        checked_count: u64,
        /// Bytes opened.
        checked_bytes: u64,
        /// How much damage was reported.
        damage_count: u64,
        /// How much was reported that is older than is known; absent where nothing is.
        #[serde(default, skip_serializing_if = "is_none")]
        #[schema(required = false)]
        rollback_count: u64,
        /// Blobs that only a client's key opens, of which wrapped keys and lengths were checked;
        /// absent where there are none.
        #[serde(default, skip_serializing_if = "is_none")]
        #[schema(required = false)]
        client_key_count: u64,
    },
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl From<VerifyEvent> for Report {
    fn from(event: VerifyEvent) -> Self {
        match event {
            VerifyEvent::Progress {
                checked_count,
                checked_bytes,
                total_bytes,
            } => Self::Progress {
                checked_count,
                checked_bytes,
                total_bytes,
            },
            VerifyEvent::Damage { bucket, name, what } => Self::Damage {
                bucket: bucket.map(|bucket| bucket.as_str().to_owned()),
                name: name.map(|name| name.expose().to_owned()),
                what,
            },
            VerifyEvent::Rollback { what } => Self::Rollback { what },
            VerifyEvent::LeftOut { bucket } => Self::LeftOut { bucket },
            VerifyEvent::Done {
                checked_count,
                checked_bytes,
                damage_count,
                rollback_count,
                client_key_count,
            } => Self::Done {
                checked_count,
                checked_bytes,
                damage_count,
                rollback_count,
                client_key_count,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coffer_vault::BucketName;

    #[test]
    fn lines_are_what_was_agreed() {
        for (event, line) in [
            (
                VerifyEvent::Progress {
                    checked_count: 1,
                    checked_bytes: 2,
                    total_bytes: 3,
                },
                r#"{"event":"progress","checked_count":1,"checked_bytes":2,"total_bytes":3}"#,
            ),
            (
                VerifyEvent::Damage {
                    bucket: BucketName::new("photos"),
                    name: None,
                    what: "the catalog".to_owned(),
                },
                r#"{"event":"damage","bucket":"photos","what":"the catalog"}"#,
            ),
            (
                VerifyEvent::Damage {
                    bucket: None,
                    name: None,
                    what: "system.db: page 7".to_owned(),
                },
                r#"{"event":"damage","what":"system.db: page 7"}"#,
            ),
            (
                VerifyEvent::Done {
                    checked_count: 1,
                    checked_bytes: 2,
                    damage_count: 0,
                    rollback_count: 0,
                    client_key_count: 0,
                },
                r#"{"event":"done","checked_count":1,"checked_bytes":2,"damage_count":0}"#,
            ),
            (
                VerifyEvent::Rollback {
                    what: "system.db is older".to_owned(),
                },
                r#"{"event":"rollback","what":"system.db is older"}"#,
            ),
            (
                VerifyEvent::LeftOut {
                    bucket: "photos".to_owned(),
                },
                r#"{"event":"leftout","bucket":"photos"}"#,
            ),
        ] {
            let report = Report::from(event);
            assert_eq!(serde_json::to_string(&report).unwrap(), line);
            assert_eq!(serde_json::from_str::<Report>(line).unwrap(), report);
        }
    }

    #[test]
    fn a_misspelt_request_is_refused() {
        assert_eq!(
            serde_json::from_str::<VerifyRequest>("{}").unwrap().rate,
            None
        );
        assert!(serde_json::from_str::<VerifyRequest>(r#"{"speed":1}"#).is_err());
    }
}
