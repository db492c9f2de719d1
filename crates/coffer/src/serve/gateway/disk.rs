//! Whether the disk of a gateway lets it serve: where it does not, another is to.

use std::time::Instant;

use coffer_vault::{BlobCache, Vault};

use crate::limits::{GATEWAY_DISK_LOOKS_EVERY, GATEWAY_LEAVES_EVERY, GATEWAY_UNFIT_AFTER};

/// What is known of the disk of the gateway that serves.
#[derive(Default)]
pub struct Disk {
    /// Since when it has had no room for what is new, though another gateway may have.
    full: Since,
    /// Since when nothing could be written at all.
    unwritable: Since,
    /// Whether there was a folder of buckets.
    had_buckets: bool,
    looked: Option<Instant>,
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

impl Disk {
    /// This gateway begins to serve.
    pub fn begin(&mut self) {
        *self = Self {
            left: self.left,
            ..Self::default()
        };
    }

    /// Why this gateway is to leave serving to another now, if it is. One whose disk is full goes
    /// on where there is no other: it answers what it has, and takes what makes room.
    pub async fn why_left(&mut self, vault: &Vault, cache: Option<&BlobCache>) -> Option<String> {
        let looked = self.looked;
        if looked.is_some_and(|looked| looked.elapsed() < GATEWAY_DISK_LOOKS_EVERY) {
            return None;
        }
        self.looked = Some(Instant::now());
        let why = self.why(vault, cache).await?;
        if self
            .left
            .is_some_and(|left| left.elapsed() < GATEWAY_LEAVES_EVERY)
        {
            return None;
        }
        self.left = Some(Instant::now());
        Some(why)
    }

    async fn why(&mut self, vault: &Vault, cache: Option<&BlobCache>) -> Option<String> {
        let is_full = cache.is_some_and(BlobCache::is_full) && vault.has_followers();
        if self.full.is_too_long(is_full) {
            return Some("its disk is full".to_owned());
        }
        let mut problem = vault.why_not_writable().await;
        let has_buckets = vault.data().join("buckets").is_dir();
        self.had_buckets |= has_buckets;
        if self.had_buckets && !has_buckets {
            problem.get_or_insert_with(|| "what was in it is gone".to_owned());
        }
        if self.unwritable.is_too_long(problem.is_some()) {
            return problem.map(|problem| format!("its folder can't be used: {problem}"));
        }
        let failed = vault.engine_fails_here();
        let is_long = failed.is_some_and(|failed| failed > GATEWAY_UNFIT_AFTER);
        is_long.then(|| "what is in its folder can't be brought into the log".to_owned())
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
}
