//! Whether the disk of a gateway lets it serve: where it does not, another is to.

use std::time::{Duration, Instant};

use coffer_vault::{BlobCache, Vault};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::limits::{GATEWAY_DISK_LOOKS_EVERY, GATEWAY_LEAVES_EVERY, GATEWAY_UNFIT_AFTER};
use crate::serve::gateway::full_disk::FullDisk;

/// What is known of the disk of the gateway that serves.
#[derive(Default)]
pub struct Disk {
    /// Since when it has had no room for what is new, though another gateway may have.
    full: Since,
    /// What was told of that.
    told: FullDisk,
    /// Since when nothing could be written at all, though another gateway may.
    unwritable: Since,
    /// Since when what was in the folder has been gone.
    gone: Since,
    /// Whether there was a folder of buckets.
    had_buckets: bool,
    /// A look that has not ended yet: one is under way at most, however long the disk hangs.
    looking: Option<JoinHandle<Look>>,
    /// When serving was left to another for that.
    left: Option<Instant>,
}

/// Since when something has been so at each look.
#[derive(Default)]
struct Since(Option<Instant>);

impl Since {
    /// Whether it has been so for too long.
    fn is_too_long(&mut self, is_so: bool) -> bool {
        self.0 = is_so.then(|| self.0.unwrap_or_else(Instant::now));
        self.0
            .is_some_and(|since| since.elapsed() > GATEWAY_UNFIT_AFTER)
    }
}

/// What a look into the folder found.
#[derive(Default)]
struct Look {
    /// How much is to be freed, where there is no room for what is new.
    short_bytes: Option<u64>,
    /// None, where it could not be told.
    has_buckets: Option<bool>,
}

/// All that a gateway is judged by.
#[derive(Default)]
struct Seen {
    look: Look,
    /// Why nothing can be written.
    problem: Option<String>,
    /// For how long nothing of the folder could be brought into the log.
    fails_for: Option<Duration>,
    /// Whether another gateway follows, and may serve better.
    has_others: bool,
}

impl Disk {
    /// This gateway begins to serve.
    pub fn begin(&mut self) {
        *self = Self {
            left: self.left,
            looking: self.looking.take(),
            told: std::mem::take(&mut self.told),
            ..Self::default()
        };
    }

    /// Waits until this gateway is to leave serving to another, and says why.
    pub async fn fails(&mut self, vault: &Vault, cache: Option<&BlobCache>) -> String {
        loop {
            sleep(GATEWAY_DISK_LOOKS_EVERY).await;
            let seen = self.see(vault, cache).await;
            let why = self.why(seen);
            let is_long_ago = |left: Instant| left.elapsed() >= GATEWAY_LEAVES_EVERY;
            if let Some(why) = why
                && self.left.is_none_or(is_long_ago)
            {
                self.left = Some(Instant::now());
                return why;
            }
        }
    }

    async fn see(&mut self, vault: &Vault, cache: Option<&BlobCache>) -> Seen {
        let (problem, look) = tokio::join!(vault.why_not_writable(), self.look(vault, cache));
        if let Some(look) = &look {
            self.told.note(vault.data(), look.short_bytes);
        }
        let silent = || "it does not answer".to_owned();
        Seen {
            problem: problem.or_else(|| look.is_none().then(silent)),
            look: look.unwrap_or_default(),
            fails_for: vault.engine_fails_here(),
            has_others: vault.has_followers(),
        }
    }

    /// None, where the disk does not answer.
    async fn look(&mut self, vault: &Vault, cache: Option<&BlobCache>) -> Option<Look> {
        let looking = self.looking.get_or_insert_with(|| {
            let (buckets, cache) = (vault.data().join("buckets"), cache.cloned());
            tokio::task::spawn_blocking(move || Look {
                short_bytes: cache.as_ref().and_then(BlobCache::short_bytes),
                has_buckets: buckets.try_exists().ok(),
            })
        });
        let looked = timeout(GATEWAY_UNFIT_AFTER, looking).await.ok()?;
        self.looking = None;
        looked.ok()
    }

    /// Why this gateway is to leave serving to another, if it is. One that is alone goes on as well
    /// as it can: it answers what it has, and one whose disk is full takes what makes room. What is
    /// gone it can only fetch anew, which it does by following.
    fn why(&mut self, seen: Seen) -> Option<String> {
        let Seen {
            look,
            problem,
            fails_for,
            has_others,
        } = seen;
        let is_full = look.short_bytes.is_some();
        let is_gone = self.had_buckets && look.has_buckets == Some(false);
        self.had_buckets |= look.has_buckets == Some(true);
        let is_full_too_long = self.full.is_too_long(is_full && has_others);
        let is_gone_too_long = self.gone.is_too_long(is_gone);
        let is_unwritable = problem.is_some() && has_others;
        if self.unwritable.is_too_long(is_unwritable) {
            return problem.map(|problem| format!("its folder can't be used: {problem}"));
        }
        if is_gone_too_long {
            return Some("what was in its folder is gone".to_owned());
        }
        if is_full_too_long {
            return Some("its disk is full".to_owned());
        }
        let is_long = fails_for.is_some_and(|failed| failed > GATEWAY_UNFIT_AFTER);
        (is_long && has_others)
            .then(|| "what is in its folder can't be brought into the log".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_so_is_too_long() {
        let long_ago = Instant::now().checked_sub(GATEWAY_UNFIT_AFTER * 2);
        let mut since = Since::default();
        assert!(!since.is_too_long(true), "just now");
        since.0 = long_ago;
        assert!(since.is_too_long(true));
        assert!(!since.is_too_long(false));
        assert!(!since.is_too_long(true), "it begins anew");
    }

    /// What a gateway does that has seen the same for long.
    fn told(seen: impl Fn() -> Seen) -> Option<String> {
        let mut disk = Disk {
            had_buckets: true,
            ..Disk::default()
        };
        assert_eq!(
            disk.why(seen()).is_some(),
            seen().fails_for.is_some() && seen().has_others
        );
        let long_ago = Instant::now().checked_sub(GATEWAY_UNFIT_AFTER * 2);
        for since in [&mut disk.full, &mut disk.unwritable, &mut disk.gone] {
            since.0 = since.0.and(long_ago);
        }
        disk.why(seen())
    }

    #[test]
    fn who_is_alone_leaves_only_where_that_heals_it() {
        let full = |has_others| Seen {
            look: Look {
                short_bytes: Some(1),
                has_buckets: Some(true),
            },
            has_others,
            ..Seen::default()
        };
        let unwritable = |has_others| Seen {
            problem: Some("read-only".to_owned()),
            has_others,
            ..Seen::default()
        };
        let failing = |has_others| Seen {
            fails_for: Some(GATEWAY_UNFIT_AFTER * 2),
            has_others,
            ..Seen::default()
        };
        let gone = |has_others| Seen {
            look: Look {
                short_bytes: None,
                has_buckets: Some(false),
            },
            has_others,
            ..Seen::default()
        };
        for has_others in [false, true] {
            assert_eq!(told(|| full(has_others)).is_some(), has_others);
            assert_eq!(told(|| unwritable(has_others)).is_some(), has_others);
            assert_eq!(told(|| failing(has_others)).is_some(), has_others);
            assert!(told(|| gone(has_others)).is_some());
            // What could not be told is not gone.
            let unknown = || Seen {
                has_others,
                ..Seen::default()
            };
            assert_eq!(told(unknown), None);
        }
    }
}
