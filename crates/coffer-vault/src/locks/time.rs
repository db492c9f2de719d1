//! The time by which locks end, as custodians look after it: after a stop of more than a week it is
//! behind, and goes on from where a custodian says that it is.

use coffer_durable::now_ms;

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::vault::Vault;

/// How far the time by which locks end has come, and the machine's clock, in milliseconds since
/// 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockClock {
    /// The time by which locks end.
    pub lock_ms: i64,
    /// The machine's clock.
    pub wall_ms: i64,
}

impl Vault {
    /// How far the time by which locks end has come.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`] for who is neither key custodian nor auditor.
    pub fn lock_clock(&self, actor: &Actor) -> Result<LockClock> {
        if !actor.has(Role::Auditor) {
            self.refuse_but_custodians(actor, Act::ShowLockTime, &Facts::new())?;
        }
        Ok(self.lock_clock_now())
    }

    fn lock_clock_now(&self) -> LockClock {
        LockClock {
            lock_ms: self.lock_now_ms(),
            wall_ms: now_ms(),
        }
    }

    /// Whether lock time can be set to this: it goes forwards alone, and never past the clock.
    ///
    /// # Errors
    /// [`VaultError::Invalid`].
    pub(crate) fn check_lock_time(&self, to_ms: i64) -> Result<()> {
        let clock = self.lock_clock_now();
        if to_ms > clock.wall_ms {
            return Err(VaultError::Invalid {
                what: "by the server's clock that time has not come: see to the clock, or give a \
                       time that has passed",
            });
        }
        if to_ms <= clock.lock_ms {
            return Err(VaultError::Invalid {
                what: "the time by which object locks end has come as far already, and never goes \
                       back",
            });
        }
        Ok(())
    }

    /// Sets lock time forward, durably.
    ///
    /// # Errors
    /// Those of [`check_lock_time`](Self::check_lock_time), and of `system.db`.
    pub(crate) async fn advance_lock_time(&self, to_ms: i64) -> Result<LockClock> {
        let this = self.clone();
        blocking(move || {
            this.check_lock_time(to_ms)?;
            let inner = &this.inner;
            inner.lock_time.advance(&inner.system, to_ms, now_ms())?;
            Ok(this.lock_clock_now())
        })
        .await
    }
}
