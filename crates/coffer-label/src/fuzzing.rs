//! Bodies of the fuzz targets: what parses must survive being written and parsed again.

use crate::clearance::Clearance;
use crate::label::Label;

/// Any bytes as a label and as a clearance.
///
/// # Panics
///
/// When a text that parses doesn't come back as the same value, or a clearance is upside down:
/// what the fuzzer looks for.
pub fn fuzz_label(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(label) = text.parse::<Label>() {
        let written = label.to_string();
        assert_eq!(written.parse(), Ok(label));
        assert!(
            written.len() <= text.len(),
            "the canonical text is the shortest"
        );
    }
    if let Ok(clearance) = text.parse::<Clearance>() {
        assert_eq!(clearance.to_string().parse(), Ok(clearance));
        assert!(clearance.high().dominates(clearance.low()));
        assert!(clearance.contains(clearance.low()) && clearance.contains(clearance.high()));
    }
}
