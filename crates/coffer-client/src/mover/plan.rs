//! How a file is cut.

use std::ops::Range;

use crate::limits::{PART_BYTES, PART_BYTES_MAX, PART_COUNT_MAX};

/// How long the parts of a file are: as usual, but no more parts than S3 takes.
pub(crate) fn part_bytes(bytes: u64) -> u64 {
    let least = bytes.div_ceil(PART_COUNT_MAX);
    // Of whole mebibytes, so that parts begin and end on pages.
    let least = least.div_ceil(1 << 20) << 20;
    least.max(PART_BYTES)
}

/// The pieces of a file, in order.
pub(crate) fn pieces(bytes: u64, piece_bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let count = bytes.div_ceil(piece_bytes);
    (0..count).map(move |index| {
        let start = index * piece_bytes;
        start..bytes.min(start + piece_bytes)
    })
}

/// How long a part of a stream is, whose end is not known: longer later on, so that 10,000 reach
/// for the largest object that there can be, nearly.
pub(super) fn stream_part_bytes(number: u32) -> u64 {
    let doublings = (number / 1000).min(16);
    (PART_BYTES << doublings).min(PART_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn no_file_has_too_many_parts() {
        assert_eq!(part_bytes(0), PART_BYTES);
        assert_eq!(part_bytes(PART_BYTES * PART_COUNT_MAX), PART_BYTES);
        assert_eq!(
            part_bytes(PART_BYTES * PART_COUNT_MAX + 1),
            PART_BYTES + MIB
        );
        for bytes in [1, 5 << 40, (48 << 40) + 12_345] {
            let part_bytes = part_bytes(bytes);
            let pieces: Vec<_> = pieces(bytes, part_bytes).collect();
            assert!(pieces.len() as u64 <= PART_COUNT_MAX);
            assert_eq!(pieces.first().unwrap().start, 0);
            assert_eq!(pieces.last().unwrap().end, bytes);
            assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
        }
        assert_eq!(pieces(0, 7).count(), 0);
    }

    #[test]
    fn streams_may_be_long() {
        let most: u64 = (1..=PART_COUNT_MAX as u32).map(stream_part_bytes).sum();
        assert!(most > 2 << 40, "{most}");
        assert_eq!(stream_part_bytes(1), PART_BYTES);
    }
}
