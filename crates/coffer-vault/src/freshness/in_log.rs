//! How far the log of an engine has come, for what its keystore may hold.
//!
//! The keystore goes into the log before the head that goes with it. Were that to hold what this
//! machine has and no head does, an owner that is killed in between would leave a log that looks
//! put back, though nothing of it was acknowledged. So it holds what heads have, a moment late.

use coffer_audit::Recorded;
use coffer_keys::Held;

use super::recorded;

/// What the newest head has of that whose count the keystore holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InLog {
    pub(crate) system_commits: u64,
    /// The last record of the audit log.
    pub(crate) recorded: Option<Recorded>,
    pub(crate) anchor_number: u64,
}

impl InLog {
    /// What may be held of what is wanted, and is not less than what is held.
    pub(super) fn bound(&self, wanted: Held, held: &Held) -> Held {
        let in_log = self.recorded;
        let of_held = recorded(held.audit_record, held.audit_hash);
        let of_wanted = recorded(wanted.audit_record, wanted.audit_hash);
        let lower = [of_wanted, in_log].into_iter().min_by_key(number).flatten();
        let audit = [of_held, lower].into_iter().max_by_key(number).flatten();
        let (audit_record, audit_hash) = audit.map_or((0, [0; 32]), |of| (of.sequence, of.hash.0));
        let commits = wanted.system_commits.min(self.system_commits);
        let anchor_number = wanted.anchor_number.min(self.anchor_number);
        Held {
            system_commits: commits.max(held.system_commits),
            audit_record,
            audit_hash,
            anchor_number: anchor_number.max(held.anchor_number),
            ..wanted
        }
    }
}

/// None comes before all.
fn number(of: &Option<Recorded>) -> u64 {
    of.map_or(0, |of| of.sequence)
}

#[cfg(test)]
mod tests {
    use coffer_audit::Hash;

    use super::*;

    fn held(count: u64) -> Held {
        Held {
            system_commits: count,
            audit_record: count,
            audit_hash: [count as u8; 32],
            anchor_number: count,
            ..Held::default()
        }
    }

    fn in_log(count: u64) -> InLog {
        InLog {
            system_commits: count,
            recorded: (count > 0).then_some(Recorded {
                sequence: count,
                hash: Hash([count as u8; 32]),
            }),
            anchor_number: count,
        }
    }

    #[test]
    fn no_more_is_held_than_the_log_has() {
        assert_eq!(in_log(5).bound(held(7), &held(3)), held(5));
        assert_eq!(in_log(7).bound(held(7), &held(3)), held(7));
        assert_eq!(in_log(9).bound(held(7), &held(3)), held(7));
        assert_eq!(in_log(0).bound(held(7), &held(0)), held(0));
    }

    #[test]
    fn what_is_held_never_falls() {
        assert_eq!(in_log(2).bound(held(7), &held(3)), held(3));
        assert_eq!(in_log(0).bound(held(7), &held(3)), held(3));
    }
}
