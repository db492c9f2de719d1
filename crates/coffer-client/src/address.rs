//! Addresses as they are typed. A name and secret may stand before their host, and a signature in
//! their query: neither is told, nor sent.

use std::borrow::Cow;

/// Signs of addresses that may be written as percent and two digits, as many programs write them.
const ENCODED: [(&str, &str); 5] = [
    ("%3a", ":"),
    ("%40", "@"),
    ("%3f", "?"),
    ("%23", "#"),
    ("%3d", "="),
];

/// A text with the signs that make it an address as they are.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    let mut decoded = Cow::Borrowed(text);
    for (code, sign) in ENCODED {
        for code in [code.to_owned(), code.to_uppercase()] {
            if decoded.contains(&code) {
                decoded = decoded.replace(&code, sign).into();
            }
        }
    }
    decoded
}

/// A text without what stands before a host, and without a query. Where it has both, the host can't
/// be told from them.
pub fn without_secret(text: &str) -> String {
    let text = &*decoded(text);
    let is_scheme = |scheme: &str| scheme.bytes().all(|sign| sign.is_ascii_alphanumeric());
    let query = text.find(['?', '#']);
    let Some((before, host)) = text.rsplit_once('@') else {
        return text[..query.unwrap_or(text.len())].to_owned();
    };
    let host = if query.is_some() { "…" } else { host };
    match before.split_once("://") {
        Some((scheme, _)) if is_scheme(scheme) => format!("{scheme}://{host}"),
        _ => host.to_owned(),
    }
}

/// Whether a text is an address, with a scheme such as `https://`.
pub fn is_address(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.bytes().all(|sign| sign.is_ascii_alphanumeric())
    })
}

/// Whether a text is a host and a port, with or without a path, and has no scheme before them.
pub fn has_port(text: &str) -> bool {
    let is_of_host = |sign: u8| sign.is_ascii_alphanumeric() || b"-.[]:".contains(&sign);
    let place = text.split('/').next().unwrap_or_default();
    place.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && host.bytes().all(is_of_host) && port.parse::<u16>().is_ok()
    })
}

/// Whether what has no scheme is an address with a secret before its host, or with a signature. A
/// path that begins as one is a folder's, whatever follows.
pub fn has_secret(text: &str) -> bool {
    let text = &*decoded(text);
    let is_path = text.starts_with('.') || (text.starts_with('/') && !text.starts_with("//"));
    let has_key = { text.rsplit_once('@') }.is_some_and(|(before, _)| before.contains(':'));
    let query = text.split_once('?').map(|(_, query)| query.to_lowercase());
    let is_signed = query.is_some_and(|query| query.contains("signature="));
    !is_path && (has_key || is_signed)
}

/// Whether a file's name looks like an access key, its secret and a host, `KEY:SECRET@HOST`: not
/// one that has a colon and an `@` elsewhere, or a time and no secret between them. A path that
/// begins as one is a file's, whatever follows.
pub fn looks_like_key(text: &str) -> bool {
    let text = &*decoded(text);
    let Some((before, host)) = text.trim_start_matches('/').rsplit_once('@') else {
        return false;
    };
    let is_path = text.starts_with('.') || (text.starts_with('/') && !text.starts_with("//"));
    let is_of_key = |key: &str| {
        let is_sign = |sign: u8| sign.is_ascii_alphanumeric() || b"-_.".contains(&sign);
        key.len() >= 3 && key.bytes().all(is_sign)
    };
    let is_secret = |secret: &str| {
        let is_sign = |sign: char| !sign.is_whitespace() && !sign.is_control();
        secret.len() >= 6 && secret.chars().all(is_sign) && secret.contains(char::is_alphabetic)
    };
    let is_host = host.starts_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '[');
    let keys = before.split_once(':');
    !is_path && is_host && keys.is_some_and(|(key, secret)| is_of_key(key) && is_secret(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_ports_are_told_from_folders() {
        for text in [
            "127.0.0.1:27100",
            "minio.example.org:9000/films",
            "[::1]:9000/",
        ] {
            assert!(has_port(text), "{text}");
        }
        for text in [
            "./h:9000",
            "/srv/h:9000",
            "a:b",
            ":9000",
            "https://h:9000",
            "films",
            "",
        ] {
            assert!(!has_port(text), "{text}");
        }
    }

    #[test]
    fn names_of_files_are_told_from_keys() {
        for text in [
            "key:hidden@m",
            "AKIA:hid/den+@127.0.0.1:9000/b",
            "//key:hidden@m",
            "key:hid@den@m",
            "key%3Ahidden@m",
            "key:hidden%40m",
            "key%3ahidden%40m",
        ] {
            assert!(looks_like_key(text), "{text}");
        }
        for text in [
            "2026-11-28 12:30:05@home.txt",
            "12:30@home",
            "meeting:12:30:00@home",
            "user@host:file",
            "ann@example.org: minutes.txt",
            "a note: to all@once",
            "re:all@once",
            "./key:hidden@m",
            "/srv/key:hidden@m",
            "folder/key:hidden@m",
            "key:hidden@",
        ] {
            assert!(!looks_like_key(text), "{text}");
        }
    }

    #[test]
    fn secrets_are_left_out() {
        for (text, told) in [
            ("https://m:9000/b", "https://m:9000/b"),
            ("https://key:hidden@m/b", "https://m/b"),
            ("https://key:hid@den@m", "https://m"),
            ("https://key:hid?den@m/b", "https://…"),
            ("key:hidden@m", "m"),
            ("k:hidden%40m", "m"),
            ("https://key%3Ahidden%40m/b", "https://m/b"),
            ("https://m/b/k%3FX-Amz-Signature%3Dhidden", "https://m/b/k"),
            ("key:hidden@m://b", "m://b"),
            ("https://m/b/k?X-Amz-Signature=hidden", "https://m/b/k"),
            ("https://m/b/k?Of=a@b&X-Amz-Signature=hidden", "https://…"),
            ("https://m/b#hidden", "https://m/b"),
        ] {
            assert_eq!(without_secret(text), told, "{text}");
        }
        for text in [
            "key:hidden@m",
            "//key:hidden@m",
            "m/b/k?X-Amz-Signature=hidden",
        ] {
            assert!(has_secret(text) && !is_address(text), "{text}");
        }
        for text in [
            "a:b",
            "a@b",
            "./a:b@c",
            "/srv/a:b@c",
            "what?",
            "./b?Signature=",
        ] {
            assert!(!has_secret(text) && !is_address(text), "{text}");
        }
        assert!(is_address("https://m") && !is_address("://m") && !is_address("a/b://m"));
    }
}
