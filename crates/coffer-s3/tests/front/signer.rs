//! A client's half of AWS signature version 4, by its specification: what the server checks with
//! s3s must come from elsewhere.

use aws_lc_rs::{digest, hmac};

pub(crate) const REGION: &str = "us-east-1";

/// An access key.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// What is signed of a request: method, path, query, headers (names in lower case) and payload.
pub(crate) struct Signable<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(String, String)],
    pub(crate) headers: &'a [(String, String)],
    pub(crate) payload: &'a str,
}

impl Key {
    /// `AKID/date/region/s3/aws4_request`.
    pub(crate) fn credential(&self, time: &str) -> String {
        format!("{}/{}", self.id, scope(time))
    }

    /// The signature of a request, in hexadecimal.
    pub(crate) fn sign(&self, time: &str, request: &Signable<'_>) -> String {
        let canonical = sha256(canonical(request).as_bytes());
        self.sign_text(
            time,
            &format!("AWS4-HMAC-SHA256\n{time}\n{}\n{canonical}", scope(time)),
        )
    }

    /// The signature of a chunk that follows what `previous` signs.
    pub(crate) fn sign_chunk(&self, time: &str, previous: &str, chunk: &[u8]) -> String {
        let (scope, empty, chunk) = (scope(time), sha256(b""), sha256(chunk));
        let text =
            format!("AWS4-HMAC-SHA256-PAYLOAD\n{time}\n{scope}\n{previous}\n{empty}\n{chunk}");
        self.sign_text(time, &text)
    }

    fn sign_text(&self, time: &str, text: &str) -> String {
        let mac = |key: &[u8], text: &str| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
        };
        let first = mac(format!("AWS4{}", self.secret).as_bytes(), &time[..8]);
        let key = [REGION, "s3", "aws4_request"]
            .iter()
            .fold(first, |key, piece| mac(key.as_ref(), piece));
        hex(mac(key.as_ref(), text).as_ref())
    }
}

/// The names of headers, as a signature lists them.
pub(crate) fn names(headers: &[(String, String)]) -> String {
    let mut names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.join(";")
}

fn scope(time: &str) -> String {
    format!("{}/{REGION}/s3/aws4_request", &time[..8])
}

fn canonical(request: &Signable<'_>) -> String {
    let mut query: Vec<_> = request
        .query
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name, false), encode(value, false)))
        .collect();
    query.sort_unstable();
    let mut headers = request.headers.to_vec();
    headers.sort_unstable();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}:{}\n", value.trim()))
        .collect();
    let Signable {
        method,
        path,
        payload,
        ..
    } = request;
    let (query, headers, names) = (query.join("&"), headers, names(request.headers));
    format!(
        "{method}\n{}\n{query}\n{headers}\n{names}\n{payload}",
        encode(path, true)
    )
}

/// Percent-encodes a decoded text; slashes stay in paths.
pub(crate) fn encode(text: &str, slashes: bool) -> String {
    let encode = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(*byte).to_string()
        }
        b'/' if slashes => "/".to_owned(),
        byte => format!("%{byte:02X}"),
    };
    text.as_bytes().iter().map(encode).collect()
}
