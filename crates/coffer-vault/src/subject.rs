//! Subjects: who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_label::Clearance;
use coffer_store::record::Id;

use crate::rights::Rights;
use crate::roles::Roles;
use crate::standing::Standing;

/// Rights by bucket.
pub(crate) type Grants = BTreeMap<Id, Rights>;

/// Whoever holds an access key, with what it allows. Only the vault makes them. One never changes:
/// a change makes another one for the same access key.
#[derive(Clone, Debug)]
pub struct Subject {
    pub(crate) access_key_id: String,
    pub(crate) name: String,
    pub(crate) clearance: Clearance,
    pub(crate) roles: Roles,
    /// Rights in the buckets that the subject may use; none: every bucket that the clearance
    /// allows, with every right.
    pub(crate) grants: Option<Grants>,
    pub(crate) is_disabled: bool,
    pub(crate) expires_ms: Option<i64>,
    pub(crate) created_ms: i64,
    pub(crate) standing: Arc<Standing>,
}

impl Subject {
    /// The access key's id; public.
    pub fn access_key_id(&self) -> &str {
        &self.access_key_id
    }

    /// Its name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the subject may see and write.
    pub fn clearance(&self) -> &Clearance {
        &self.clearance
    }

    /// What the subject may do.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// Whether its access key counts at a time, in milliseconds since 1970. The time is asked for
    /// only if it matters.
    pub(crate) fn counts_at(&self, now_ms: impl FnOnce() -> i64) -> bool {
        !self.is_disabled
            && self
                .expires_ms
                .is_none_or(|expires_ms| now_ms() < expires_ms)
    }
}
