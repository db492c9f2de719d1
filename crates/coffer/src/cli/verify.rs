//! `coffer verify`, as it is typed.

use clap::Args;

/// `coffer verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// Read at most this much a second, e.g. 100MB [default: as fast as it goes]
    #[arg(long, value_name = "BYTES", value_parser = bytes_per_second)]
    pub rate: Option<u64>,
    /// Report as JSON, an event a line
    #[arg(long)]
    pub json: bool,
}

/// `100MB`, `1.5GiB`, `64k`, `1000000`, each with or without `/s`.
fn bytes_per_second(text: &str) -> Result<u64, String> {
    let advice = || "write a number of bytes a second such as 100MB, 1.5GiB or 500000".to_owned();
    let text = text.trim();
    let text = text.strip_suffix("/s").unwrap_or(text);
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| advice())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(advice()),
    };
    let rate = number * factor;
    // The cast is exact enough below 2^53, far above any disk.
    if (1.0..9e15).contains(&rate) {
        Ok(rate as u64)
    } else {
        Err(advice())
    }
}

const VERIFY_EXAMPLES: &str = "\
Ends with 0 when all is sound, 1 when something is damaged, 2 when it could not look.

Examples:
  coffer verify
  coffer verify --data /srv/coffer --rate 100MB
  coffer verify --json > report.ndjson";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (text, rate) in [
            ("100MB", 100_000_000),
            ("100MB/s", 100_000_000),
            ("1.5GiB", 3 * 512 * 1024 * 1024),
            ("64k", 64_000),
            ("1", 1),
            ("2 mib", 2 * 1024 * 1024),
        ] {
            assert_eq!(bytes_per_second(text), Ok(rate), "{text}");
        }
        for text in [
            "",
            "MB",
            "0",
            "-1",
            "1e9",
            "10XB",
            "nan",
            "inf",
            "0.1",
            "99999999999GB",
            "1.2.3",
        ] {
            assert!(bytes_per_second(text).is_err(), "{text}");
        }
    }
}
