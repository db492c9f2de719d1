//! When a request is sent again.

use std::time::Duration;

use aws_lc_rs::rand;

use crate::limits::{S3_RETRY_FIRST, S3_RETRY_LONGEST};
use crate::s3::error::S3Error;

/// How long to wait before the attempt of this number, counted from one: at most twice as long as
/// before the last, and any time up to that, so that clients who were refused together don't come
/// back together. What the server asks for is added.
pub(super) fn pause(attempt: u32, error: &S3Error) -> Duration {
    let doubled = 2u32.saturating_pow(attempt.saturating_sub(1).min(16));
    let longest = S3_RETRY_FIRST.saturating_mul(doubled).min(S3_RETRY_LONGEST);
    let asked = match error {
        S3Error::Refused {
            retry_after: Some(asked),
            ..
        } => (*asked).min(S3_RETRY_LONGEST),
        _ => Duration::ZERO,
    };
    asked + longest.mul_f64(0.5 + chance() / 2.0)
}

/// Any number from zero to one.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without chance it is the longest.
    match rand::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_have_an_end_and_differ() {
        let broken = S3Error::Broken {
            endpoint: String::new(),
            problem: String::new(),
        };
        for attempt in [1, 2, 3, 10, 1000] {
            let longest = S3_RETRY_FIRST * 2u32.pow((attempt - 1).min(10));
            let longest = longest.min(S3_RETRY_LONGEST);
            let pauses: Vec<_> = (0..20).map(|_| pause(attempt, &broken)).collect();
            for pause in &pauses {
                assert!(*pause >= longest / 2 && *pause <= longest, "{pause:?}");
            }
            assert!(pauses.iter().any(|pause| *pause != pauses[0]));
        }
        let asked = S3Error::Refused {
            status: 503,
            code: String::new(),
            message: String::new(),
            advice: String::new(),
            retry_after: Some(Duration::from_secs(3600)),
            outcome: None,
        };
        assert!(pause(1, &asked) >= S3_RETRY_LONGEST);
        assert!(pause(1, &asked) <= S3_RETRY_LONGEST + S3_RETRY_FIRST);
    }
}
