//! Names and addresses that clients reach the server by, as an operator writes them.

use std::net::IpAddr;

use crate::error::Error;

/// Sorts what is written: domains for virtual-host style, and addresses, which are for the
/// certificate alone.
pub fn domains_and_addresses(texts: &[String]) -> Result<(Vec<String>, Vec<IpAddr>), Error> {
    let (mut domains, mut addresses) = (Vec::new(), Vec::new());
    for text in texts {
        let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        match bare.unwrap_or(text).parse::<IpAddr>() {
            Ok(address) if !address.is_unspecified() => addresses.push(address),
            _ => domains.push(domain(text)?),
        }
    }
    Ok((domains, addresses))
}

/// A domain for virtual-host style: letters, digits, hyphens, dots. Host headers are compared
/// with it, and the local authority writes it into the certificate.
fn domain(name: &str) -> Result<String, Error> {
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
        problem: format!(
            "{name:?} is no name or address that clients reach the server by; write such as \
             s3.example.org or 192.0.2.7"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_and_addresses_are_told_apart() {
        let sorted = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            domains_and_addresses(&texts)
        };
        let (domains, addresses) = sorted(&[
            "S3.Example.org",
            "192.0.2.7",
            "2001:db8::1",
            "[2001:db8::2]",
        ])
        .unwrap();
        assert_eq!(domains, ["s3.example.org"]);
        let expected = ["192.0.2.7", "2001:db8::1", "2001:db8::2"];
        assert_eq!(addresses, expected.map(|ip| ip.parse::<IpAddr>().unwrap()));
        for bad in [
            "",
            "-x",
            "a..b",
            "0.0.0.0",
            "[::]",
            "a_b",
            "[192.0.2.7",
            &"x".repeat(64),
        ] {
            assert!(sorted(&[bad]).is_err(), "{bad}");
        }
    }
}
