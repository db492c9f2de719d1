//! Subjects: who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_label::{Clearance, Label};
use coffer_seal::BucketId;

use super::read_mark::Mark;
use super::rights::Rights;
use super::roles::Roles;
use crate::cutoff::SubjectCutoff;

/// Rights by bucket.
pub(crate) type Grants = BTreeMap<BucketId, Rights>;

/// The holder of an access key, with what it allows. Only the vault makes them. One never changes:
/// a change makes another one for the same access key.
#[derive(Clone, Debug)]
pub struct Subject {
    pub(crate) access_key_id: String,
    pub(crate) name: String,
    pub(crate) clearance: Clearance,
    /// Whether what it reads has no bearing on where it writes, within its clearance.
    pub(crate) is_trusted: bool,
    /// What it has read, as far as that bears on where it writes.
    pub(crate) mark: Arc<Mark>,
    pub(crate) roles: Roles,
    /// Rights in the buckets that the subject may use; none: every bucket that the clearance
    /// allows, with every right.
    pub(crate) grants: Option<Grants>,
    pub(crate) is_disabled: bool,
    pub(crate) expires_ms: Option<i64>,
    pub(crate) created_ms: i64,
    pub(crate) cutoff: Arc<SubjectCutoff>,
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

    /// Whether its clearance is trusted: what it reads has no bearing on where it writes.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// What it has read, where that bears on where it writes: the join of the labels.
    pub fn mark(&self) -> Option<Label> {
        let bears = |mark: &Label| !self.is_trusted && !self.clearance.low().dominates(mark);
        self.mark.label().filter(bears)
    }

    /// Whether what it reads raises its mark.
    pub(crate) fn floats(&self) -> bool {
        !self.is_trusted && self.clearance.low() != self.clearance.high()
    }

    /// What it may have read without raising its mark: join of the labels.
    pub(crate) fn unmarked(&self) -> &Label {
        if self.floats() {
            self.clearance.low()
        } else {
            self.clearance.high()
        }
    }

    /// Its mark once its range changes: all that it may have read until now. What who does not
    /// float has read is not known, so it is taken to be all that it might.
    pub(crate) fn carried_mark(&self) -> Arc<Mark> {
        let read = self.mark.joined(self.unmarked());
        Mark::at((read != Label::LOWEST).then_some(read))
    }

    /// The same without its grants, which may be many.
    pub(crate) fn without_grants(&self) -> Self {
        Self {
            access_key_id: self.access_key_id.clone(),
            name: self.name.clone(),
            clearance: self.clearance,
            is_trusted: self.is_trusted,
            mark: self.mark.clone(),
            roles: self.roles,
            grants: None,
            is_disabled: self.is_disabled,
            expires_ms: self.expires_ms,
            created_ms: self.created_ms,
            cutoff: self.cutoff.clone(),
        }
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
