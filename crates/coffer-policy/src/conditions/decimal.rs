//! Numbers, exactly: 1.2 is 1.2.

use std::fmt;

use crate::limits::{FRACTION_DIGITS, WHOLE_DIGITS};

/// A whole or decimal number: up to 18 digits, a point and up to 9 digits. `1.20` equals `1.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    billionths: i128,
}

/// How many of them are one.
const BILLION: i128 = 1_000_000_000;

impl Decimal {
    /// Reads an optional sign, digits, and optionally a point and digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |part: &str, most: usize| {
            (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(whole, WHOLE_DIGITS) || !is_number(fraction, FRACTION_DIGITS) {
            return None;
        }
        let whole: i128 = whole.parse().ok()?;
        let fraction: i128 = format!("{fraction:0<FRACTION_DIGITS$}").parse().ok()?;
        let billionths = sign * (whole * BILLION + fraction);
        Some(Self { billionths })
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        let billionths = i128::from(number) * BILLION;
        Self { billionths }
    }
}

impl fmt::Display for Decimal {
    /// Without needless digits: `1.2`, `1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.billionths < 0 { "-" } else { "" };
        let magnitude = self.billionths.abs();
        write!(f, "{sign}{}", magnitude / BILLION)?;
        let fraction = format!("{:0FRACTION_DIGITS$}", magnitude % BILLION);
        match fraction.trim_end_matches('0') {
            "" => Ok(()),
            digits => write!(f, ".{digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(decimal("1.20"), decimal("1.2"));
        assert!(decimal("1.1") < decimal("1.2") && decimal("-1") < decimal("0"));
        assert!(decimal("9") < decimal("10"), "not as text");
        assert_eq!(decimal("007"), Decimal::from(7));
        for text in ["0", "10", "-3", "1.2", "999999999999999999.999999999"] {
            assert_eq!(decimal(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "", "-", ".", "1.", ".5", "1e3", "+1", " 1", "0x1", "1.2.3", "१",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_eq!(Decimal::parse(&"9".repeat(19)), None);
        assert_eq!(Decimal::parse("1.0123456789"), None);
    }
}
