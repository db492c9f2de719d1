//! What the log says where the disk of the gateway that serves has no room for what is new.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::limits::GATEWAY_FULL_TOLD_EVERY;

/// What was told of it.
#[derive(Default)]
pub struct FullDisk {
    /// When it was last.
    told: Option<Instant>,
    /// Whether that is still so, as far as who reads the log knows.
    is_told: bool,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
enum Telling {
    Nothing,
    Full,
    Over,
}

impl FullDisk {
    /// Tells when it begins, now and then while it lasts, and when it is over. `short_bytes` are to
    /// be freed, where there is no room.
    pub fn note(&mut self, data: &Path, short_bytes: Option<u64>) {
        let (path, bytes) = (data.display(), short_bytes.unwrap_or_default());
        match self.telling(short_bytes.is_some(), Instant::now()) {
            Telling::Nothing => {}
            Telling::Full => tracing::warn!(
                %path,
                short_bytes = bytes,
                "the disk of this gateway's folder has no room for what is new: what adds data is \
                 refused (507), and reads and deletions go on. Free at least so much there, or \
                 give it a larger disk; another gateway would take over"
            ),
            Telling::Over => tracing::info!(
                %path,
                "the disk of this gateway's folder has room for what is new again"
            ),
        }
    }

    fn telling(&mut self, is_full: bool, now: Instant) -> Telling {
        let since = self.told.map_or(Duration::MAX, |told| now - told);
        match (is_full, self.is_told) {
            // What is removed may make room for moments only.
            (true, _) if since >= GATEWAY_FULL_TOLD_EVERY => {
                (self.told, self.is_told) = (Some(now), true);
                Telling::Full
            }
            (false, true) => {
                self.is_told = false;
                Telling::Over
            }
            _ => Telling::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_of_at_once_then_seldom_and_when_it_is_over() {
        let (mut disk, began) = (FullDisk::default(), Instant::now());
        let mut told = |is_full, seconds| {
            let now = began + Duration::from_secs(seconds);
            disk.telling(is_full, now)
        };
        assert_eq!(told(false, 0), Telling::Nothing);
        assert_eq!(told(true, 1), Telling::Full);
        assert_eq!(told(true, 2), Telling::Nothing);
        assert_eq!(told(true, 400), Telling::Full);
        assert_eq!(told(false, 401), Telling::Over);
        assert_eq!(told(false, 402), Telling::Nothing);
        // To and fro is told once.
        assert_eq!(told(true, 403), Telling::Nothing);
        assert_eq!(told(false, 404), Telling::Nothing);
        assert_eq!(told(true, 800), Telling::Full);
    }
}
