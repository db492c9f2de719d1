//! AWS Signature Version 4, as a client signs, in headers.
//!
//! Source: the Amazon S3 API reference, "Signature Calculations for the Authorization Header:
//! Transferring Payload in a Single Chunk". Paths and queries must be encoded already.

use aws_lc_rs::{digest, hmac};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::profiles::{Credentials, USUAL_REGION};

/// Says in place of a body's hash that TLS guards the body.
pub const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// Where requests are signed for.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The region.
    pub region: &'a str,
    /// The service.
    pub service: &'a str,
}

/// coffer takes any region; this is what clients without one send.
pub const S3: Scope<'static> = Scope {
    region: USUAL_REGION,
    service: "s3",
};

/// Signs requests of one moment. Making one costs four HMACs; a signature costs two hashes.
pub struct Signer {
    amz_date: String,
    scope: String,
    access_key_id: String,
    signing_key: hmac::Key,
}

impl Signer {
    /// Signatures made by it are good for 15 minutes around `now`.
    pub fn new(credentials: &Credentials, scope: Scope<'_>, now: OffsetDateTime) -> Self {
        let amz_date = amz_date(now);
        let day = &amz_date[..8];
        let Scope { region, service } = scope;
        let first = Zeroizing::new(format!("AWS4{}", *credentials.secret_access_key));
        let mut key = hmac_sha256(first.as_bytes(), day);
        for step in [region, service, "aws4_request"] {
            key = hmac_sha256(key.as_ref(), step);
        }
        Self {
            scope: format!("{day}/{region}/{service}/aws4_request"),
            access_key_id: credentials.access_key_id.clone(),
            signing_key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()),
            amz_date,
        }
    }

    /// The value of `x-amz-date`.
    pub fn amz_date(&self) -> &str {
        &self.amz_date
    }

    /// The value of `authorization` of a request without a query. `headers`: those to sign, with
    /// lower-case names, sorted by them; of one name, as they are sent.
    pub fn authorization(
        &self,
        method: &str,
        encoded_path: &str,
        headers: &[(&str, &str)],
        payload_hash: &str,
    ) -> String {
        self.authorization_of_query(method, (encoded_path, ""), headers, payload_hash)
    }

    /// The same with a query: `a=1&b=`, sorted, each name with its `=`.
    pub fn authorization_of_query(
        &self,
        method: &str,
        (encoded_path, query): (&str, &str),
        headers: &[(&str, &str)],
        payload_hash: &str,
    ) -> String {
        debug_assert!(headers.is_sorted_by_key(|(name, _)| *name));
        let mut canonical = format!("{method}\n{encoded_path}\n{query}\n");
        let mut names = String::new();
        // One line a name, with all its values; each has one space where it has any.
        for same in headers.chunk_by(|one, other| one.0 == other.0) {
            let name = same[0].0;
            canonical.extend([name, ":"]);
            for (place, (_, value)) in same.iter().enumerate() {
                canonical.push_str(if place == 0 { "" } else { "," });
                for (place, word) in value.split_ascii_whitespace().enumerate() {
                    canonical.extend([if place == 0 { "" } else { " " }, word]);
                }
            }
            canonical.push('\n');
            names.extend([if names.is_empty() { "" } else { ";" }, name]);
        }
        canonical.extend(["\n", &names, "\n", payload_hash]);
        let hash = sha256_hex(canonical.as_bytes());
        let (amz_date, scope) = (&self.amz_date, &self.scope);
        let to_sign = format!("AWS4-HMAC-SHA256\n{amz_date}\n{scope}\n{hash}");
        let signature = hex::encode(hmac::sign(&self.signing_key, to_sign.as_bytes()));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}",
            self.access_key_id
        )
    }
}

/// The value of `x-amz-content-sha256` for a body.
pub fn sha256_hex(body: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, body))
}

fn hmac_sha256(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn amz_date(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!(
        "{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z",
        u8::from(month)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One case of tests/sigv4.json.
    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        unix_seconds: i64,
        access_key_id: String,
        secret_access_key: String,
        region: String,
        service: String,
        method: String,
        path: String,
        #[serde(default)]
        query: String,
        headers: Vec<(String, String)>,
        payload_hash: String,
        signature: String,
    }

    #[test]
    fn values_have_one_form() {
        let credentials = Credentials {
            access_key_id: "A".to_owned(),
            secret_access_key: "s".to_owned().into(),
            session_token: None,
        };
        let signer = Signer::new(&credentials, S3, OffsetDateTime::UNIX_EPOCH);
        let signed = |headers: &[(&str, &str)]| signer.authorization("PUT", "/b/k", headers, "x");
        let plain = signed(&[("host", "h"), ("x-amz-meta-a", "one two")]);
        for spaced in ["one  two", " one\ttwo ", "one \t two"] {
            assert_eq!(signed(&[("host", "h"), ("x-amz-meta-a", spaced)]), plain);
        }
        let joined = signed(&[("host", "h"), ("x-amz-meta-a", "2,1")]);
        let apart = signed(&[("host", "h"), ("x-amz-meta-a", "2"), ("x-amz-meta-a", "1")]);
        assert_eq!(apart, joined);
        assert!(
            joined.contains("SignedHeaders=host;x-amz-meta-a,"),
            "{joined}"
        );
    }

    #[test]
    fn published_examples() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("../tests/sigv4.json")).unwrap();
        assert_eq!(cases.len(), 7);
        for case in cases {
            let credentials = Credentials {
                access_key_id: case.access_key_id,
                secret_access_key: case.secret_access_key.into(),
                session_token: None,
            };
            let scope = Scope {
                region: &case.region,
                service: &case.service,
            };
            let at = OffsetDateTime::from_unix_timestamp(case.unix_seconds).unwrap();
            let headers: Vec<_> = case
                .headers
                .iter()
                .map(|(n, v)| (n.as_str(), v.as_str()))
                .collect();
            let authorization = Signer::new(&credentials, scope, at).authorization_of_query(
                &case.method,
                (&case.path, &case.query),
                &headers,
                &case.payload_hash,
            );
            let signed: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
            let end = format!(
                "SignedHeaders={},Signature={}",
                signed.join(";"),
                case.signature
            );
            assert!(
                authorization.ends_with(&end),
                "{}: {authorization}",
                case.name
            );
        }
    }
}
