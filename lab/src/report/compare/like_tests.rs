//! Like is set beside like.

use crate::contender::Placement;
use crate::record::Unit;
use crate::record::planted::{self, point};
use crate::report::compare::compare;
use crate::report::compare::tests::{FAST, SLOW, record, series};

/// A file that fits into a cache is no file of a gigabyte.
#[test]
fn time_of_other_amounts_is_never_divided() {
    let time = Unit::MegabytesPerSecond;
    let of = |id: &str, bytes: u64| {
        let mut record = record(id, time, vec![series("both", &FAST)]);
        for sample in &mut record.experiments[0].series[0].points[0].samples {
            sample.wall_seconds = bytes as f64 / sample.bytes as f64;
            sample.bytes = bytes;
        }
        record
    };
    for id in ["file/read", "net/stream", "server/upload/file"] {
        let text = compare(&of(id, 32_000_000), &of(id, 1_000_000_000));
        assert!(
            text.contains("A moved 32.0 MB, B 1,000 MB: no comparison"),
            "{text}"
        );
        assert!(
            !text.contains("no difference") && !text.contains("with drift"),
            "{text}"
        );
        let same = compare(&of(id, 32_000_000), &of(id, 32_000_000));
        assert!(same.contains("no difference, with drift"), "{same}");
    }
    // This goes on for so long, whatever comes through.
    let text = compare(&of("raw/x", 32_000_000), &of("raw/x", 1_000_000_000));
    assert!(text.contains("no difference, with drift"), "{text}");
}

/// What lies on an image in a file is set beside a plain image in a file.
#[test]
fn each_is_set_beside_the_same_without_encryption() {
    let time = Unit::MicrosecondsPerRequest;
    let plain = |name: &str| planted::series(name, Placement::None, vec![point(0, &SLOW)]);
    let all = vec![
        plain("none"),
        plain("none, ext4 in an image"),
        series("fscrypt", &FAST),
        series("gocryptfs", &FAST),
    ];
    let one = record("file/read", time, all);
    let text = compare(&one, &one);
    let beside = |name: &str, plain: &str| {
        let mut lines = text.lines().filter(|line| line.trim().starts_with(name));
        lines.any(|line| line.contains(&format!("; beside {plain}: no difference")))
    };
    assert!(beside("fscrypt", "none, ext4 in an image"), "{text}");
    assert!(beside("gocryptfs", "none"), "{text}");
    assert!(text.contains("µs a request; less is better\n"), "{text}");
}
