//! Every sample has its family.

use std::time::Duration;

use coffer_vault::{FenceState, FenceStatus};

use super::*;
use crate::metrics::traffic::Traffic;

#[test]
fn every_sample_has_its_family_and_every_value_is_a_number() {
    let traffic = Traffic::default();
    let requests = S3Metrics {
        answered: vec![("GetObject", 206, 1)],
        times: vec![S3Time {
            operation: "GetObject",
            total: Duration::from_millis(1500),
            within: vec![(Duration::from_millis(500), 0), (Duration::from_secs(2), 1)],
            count: 1,
        }],
        ..S3Metrics::default()
    };
    traffic.sent(5);
    let mut vault = VaultFigures::default();
    vault.counters.damage_count = 3;
    let data = Path::new("/");
    let end = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000);
    let traffic = traffic.snapshot();
    vault.levels.push(LevelUsage {
        level: "0a".to_owned(),
        bytes: 7,
        ..LevelUsage::default()
    });
    vault.fence = Some(FenceStatus {
        is_noted: true,
        copy: "far".to_owned(),
        state: FenceState::Ended,
    });
    let text = render(true, Some(end), true, &vault, data, &requests, &traffic);
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            family = name.to_owned();
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let name = name.split('{').next().unwrap();
            let part = name.strip_prefix(family.as_str());
            let parts = ["", "_bucket", "_sum", "_count"];
            assert!(part.is_some_and(|part| parts.contains(&part)), "{line}");
            value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        }
    }
    for line in [
        "coffer_ready 1",
        "coffer_certificate_expiry_seconds 1800000000",
        "coffer_s3_requests_total{operation=\"GetObject\",status=\"206\"} 1",
        "coffer_s3_request_seconds_bucket{operation=\"GetObject\",le=\"0.5\"} 0",
        "coffer_s3_request_seconds_bucket{operation=\"GetObject\",le=\"+Inf\"} 1",
        "coffer_s3_request_seconds_sum{operation=\"GetObject\"} 1.5",
        "coffer_s3_sent_bytes_total 5",
        "coffer_damage_total 3",
        "coffer_level_bytes{level=\"0a\"} 7",
        "coffer_fenced_off 1",
    ] {
        assert!(
            text.lines().any(|other| other == line),
            "{line} is not in\n{text}"
        );
    }
}
