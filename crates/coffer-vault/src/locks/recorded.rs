//! What the audit log says of locks, and of the versions that they are about.

use coffer_durable::rfc3339;
use coffer_store::lock::{Lock, LockChange, Retention, RetentionMode};
use coffer_store::version::Which;

use crate::audit::Facts;

const HOLD: &str = "hold";
const RETAIN_UNTIL: &str = "retain_until";
const RETENTION: &str = "retention";
const VERSION: &str = "version";

/// The version that was named. Of the newest nothing is said: which that is may change meanwhile.
pub(crate) fn of_version(which: Which) -> Facts {
    match which {
        Which::Current => Facts::new(),
        Which::Version(version) => Facts::from([(VERSION, version.to_string())]),
    }
}

/// That retention for governance was to be passed over, whether or not any stood.
pub(crate) fn asked_to_bypass() -> Facts {
    Facts::from([("bypass_governance", "asked".to_owned())])
}

/// The retention that was passed over.
pub(crate) fn overridden(retention: Retention) -> Facts {
    let mode = mode_name(retention.mode);
    let told = format!("{mode} until {}", rfc3339(retention.until_ms));
    Facts::from([("overridden", told)])
}

/// The lock with which an object is made.
pub(crate) fn of_lock(lock: Lock) -> Facts {
    let mut facts = Facts::new();
    if lock.retention.is_some() {
        facts.extend(of_change(LockChange::Retention(lock.retention)));
    }
    if lock.has_hold || lock.hold_is_off {
        facts.extend(of_change(LockChange::Hold(lock.has_hold)));
    }
    facts
}

/// How a lock is to be changed.
pub(super) fn of_change(change: LockChange) -> Facts {
    match change {
        LockChange::Hold(has_hold) => {
            let hold = if has_hold { "on" } else { "off" };
            Facts::from([(HOLD, hold.to_owned())])
        }
        LockChange::Retention(None) => Facts::from([(RETENTION, "none".to_owned())]),
        LockChange::Retention(Some(Retention { mode, until_ms })) => Facts::from([
            (RETENTION, mode_name(mode).to_owned()),
            (RETAIN_UNTIL, rfc3339(until_ms)),
        ]),
    }
}

fn mode_name(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => "governance",
        RetentionMode::Compliance => "compliance",
    }
}
