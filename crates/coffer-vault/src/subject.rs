//! Subjects: who asks.

use coffer_label::Clearance;

use crate::roles::Roles;

/// Whoever holds an access key, with the clearance it gives. Only the vault makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub(crate) access_key_id: String,
    pub(crate) clearance: Clearance,
    pub(crate) roles: Roles,
}

impl Subject {
    /// The access key's id; public.
    pub fn access_key_id(&self) -> &str {
        &self.access_key_id
    }

    /// What the subject may see and write.
    pub fn clearance(&self) -> &Clearance {
        &self.clearance
    }

    /// What the subject may do.
    pub fn roles(&self) -> Roles {
        self.roles
    }
}
