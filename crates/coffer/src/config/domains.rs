//! Domains of virtual-host style, as an operator writes them.

use std::net::IpAddr;

use crate::error::Error;

/// A domain for virtual-host style: letters, digits, hyphens, dots. Host headers are compared
/// with it, and the local authority writes it into the certificate.
pub fn domain(name: &str) -> Result<String, Error> {
    let label_fits = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let fits =
        name.len() <= 253 && name.split('.').all(label_fits) && name.parse::<IpAddr>().is_err();
    if fits {
        return Ok(name.to_ascii_lowercase());
    }
    Err(Error::Option {
        option: "--domain",
        problem: format!("{name:?} is no domain name; write one such as s3.example.org"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_names_and_no_addresses() {
        assert_eq!(domain("S3.Example.org").unwrap(), "s3.example.org");
        for bad in ["", "-x", "a..b", "127.0.0.1", "a_b", &"x".repeat(64)] {
            assert!(domain(bad).is_err(), "{bad}");
        }
    }
}
