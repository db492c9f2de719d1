//! Ids of uploads. Uploads of one name are listed by their ids, and S3 lists them in the order in
//! which they were begun: so an id begins with the time.

use std::time::{SystemTime, UNIX_EPOCH};

use coffer_seal::{UploadId, random_bytes};

/// How many bytes of an id are the time, in microseconds since 1970: enough for two thousand years.
const TIME_BYTES: usize = 7;

/// An id for an upload that begins now.
pub(super) fn id_of_new() -> UploadId {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    id_at(now.map_or(0, |since| since.as_micros()))
}

fn id_at(now_us: u128) -> UploadId {
    let mut id: [u8; 16] = random_bytes();
    let time = now_us.to_be_bytes();
    id[..TIME_BYTES].copy_from_slice(&time[time.len() - TIME_BYTES..]);
    UploadId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_order_of_time_and_differ() {
        let now_us = 1_800_000_000_000_000;
        for later_us in [1, 255, 256, 1 << 40] {
            assert!(id_at(now_us) < id_at(now_us + later_us), "{later_us}");
        }
        assert_ne!(id_at(now_us), id_at(now_us));
        assert!(id_at(0) < id_of_new());
    }
}
