//! Keys that clients bring along (SSE-C): three headers for the object itself, and three for the
//! source of a copy. The key's own header is kept from s3s, which would hold it as plain text.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_vault::CustomerKey;
use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::{S3Error, S3Result, s3_error};
use zeroize::Zeroizing;

use crate::http::has_any;

/// How the headers of the object's own key begin.
pub(crate) const OF_OBJECT: &str = "x-amz-server-side-encryption-customer-";

/// How those of the key of a copy's source begin.
pub(crate) const OF_SOURCE: &str = "x-amz-copy-source-server-side-encryption-customer-";

/// How the names of the headers end that hold a key.
const KEY: &str = "key";
const KEY_MD5: &str = "key-md5";
const ALGORITHM: &str = "algorithm";

/// Those names: of the algorithm, the key and its MD5.
const NAMES_OF_OBJECT: [HeaderName; 3] = [
    HeaderName::from_static("x-amz-server-side-encryption-customer-algorithm"),
    HeaderName::from_static("x-amz-server-side-encryption-customer-key"),
    HeaderName::from_static("x-amz-server-side-encryption-customer-key-md5"),
];
const NAMES_OF_SOURCE: [HeaderName; 3] = [
    HeaderName::from_static("x-amz-copy-source-server-side-encryption-customer-algorithm"),
    HeaderName::from_static("x-amz-copy-source-server-side-encryption-customer-key"),
    HeaderName::from_static("x-amz-copy-source-server-side-encryption-customer-key-md5"),
];

/// A key that a client has brought along, and its MD5, which answers repeat.
#[derive(Clone)]
pub(crate) struct Brought {
    pub(crate) key: CustomerKey,
    pub(crate) md5: String,
}

impl Brought {
    /// What answers repeat, for those that s3s does not write.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let all = [(ALGORITHM, "AES256"), (KEY_MD5, &self.md5)];
        all.into_iter().filter_map(|(end, value)| {
            let name = HeaderName::try_from(format!("{OF_OBJECT}{end}")).ok()?;
            Some((name, HeaderValue::try_from(value).ok()?))
        })
    }
}

/// Whether a header holds a key.
pub(crate) fn holds_a_key(name: &str) -> bool {
    let is_of = |start| name.strip_prefix(start).is_some_and(|rest| rest == KEY);
    is_of(OF_OBJECT) || is_of(OF_SOURCE)
}

/// Whether a request brings a key along, in its headers or in the query of its address.
pub(crate) fn is_sent(headers: &HeaderMap, query: &[(String, String)]) -> bool {
    let in_headers = headers.keys().any(|name| holds_a_key(name.as_str()));
    let in_query = |(name, _): &(String, String)| holds_a_key(&name.to_ascii_lowercase());
    in_headers || query.iter().any(in_query)
}

/// The key of the object that a request is about.
pub(crate) fn of_object(headers: &HeaderMap) -> S3Result<Option<Brought>> {
    read(headers, OF_OBJECT, NAMES_OF_OBJECT)
}

/// The key of the object that is copied.
pub(crate) fn of_source(headers: &HeaderMap) -> S3Result<Option<CustomerKey>> {
    Ok(read(headers, OF_SOURCE, NAMES_OF_SOURCE)?.map(|brought| brought.key))
}

fn read(headers: &HeaderMap, start: &str, names: [HeaderName; 3]) -> S3Result<Option<Brought>> {
    if !has_any(headers, start) {
        return Ok(None);
    }
    let [algorithm, key, md5] = names.map(|name| headers.get(name));
    if algorithm.is_none() && key.is_none() && md5.is_none() {
        return Ok(None);
    }
    let Some(algorithm) = algorithm else {
        return Err(missing("a valid encryption algorithm"));
    };
    if algorithm != "AES256" {
        return Err(s3_error!(
            InvalidEncryptionAlgorithmError,
            "The encryption request you specified is not valid. The valid value is AES256."
        ));
    }
    let key = key.ok_or_else(|| missing("an appropriate secret key"))?;
    let md5 = md5.ok_or_else(|| missing("the client calculated MD5 of the secret key"))?;
    let key = decoded(key)?;
    let key = CustomerKey::of_bytes(&key).ok_or_else(invalid)?;
    let formed = BASE64.encode(key.md5());
    if verify_slices_are_equal(formed.as_bytes(), md5.as_bytes()).is_err() {
        return Err(s3_error!(
            InvalidArgument,
            "The calculated MD5 hash of the key did not match the hash that was provided."
        ));
    }
    Ok(Some(Brought { key, md5: formed }))
}

fn decoded(header: &HeaderValue) -> S3Result<Zeroizing<Vec<u8>>> {
    let decoded = BASE64.decode(header.as_bytes());
    decoded.map(Zeroizing::new).map_err(|_| invalid())
}

fn invalid() -> S3Error {
    s3_error!(
        InvalidArgument,
        "The secret key was invalid for the specified algorithm: it has 32 bytes, in Base64."
    )
}

fn missing(what: &str) -> S3Error {
    s3_error!(
        InvalidArgument,
        "Requests specifying Server Side Encryption with Customer provided keys must provide \
         {what}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 32 bytes "x".
    const GOOD: [(&str, &str); 2] = [
        (ALGORITHM, "AES256"),
        (KEY, "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg="),
    ];

    fn key(byte: u8) -> CustomerKey {
        CustomerKey::of_bytes(&[byte; 32]).unwrap()
    }

    fn headers(start: &str, pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (end, value) in pairs {
            let name = HeaderName::try_from(format!("{start}{end}")).unwrap();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn three_headers_make_a_key() {
        let md5 = BASE64.encode(key(b'x').md5());
        let pairs = [GOOD[0], GOOD[1], (KEY_MD5, md5.as_str())];
        let brought = of_object(&headers(OF_OBJECT, &pairs)).unwrap().unwrap();
        assert_eq!(brought.key, key(b'x'));
        assert_eq!(brought.md5, md5);
        assert!(of_source(&headers(OF_SOURCE, &pairs)).unwrap().is_some());
        assert!(of_source(&headers(OF_OBJECT, &pairs)).unwrap().is_none());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let md5 = BASE64.encode(key(b'x').md5());
        let good = [GOOD[0], GOOD[1], (KEY_MD5, md5.as_str())];
        for missing in 0..3 {
            let mut some = good.to_vec();
            some.remove(missing);
            assert!(of_object(&headers(OF_OBJECT, &some)).is_err(), "{missing}");
        }
        let short = BASE64.encode([b'x'; 31]);
        for bad in [
            [(ALGORITHM, "AES128"), good[1], good[2]],
            [good[0], (KEY, "not Base64!"), good[2]],
            [good[0], good[1], (KEY_MD5, "AAAAAAAAAAAAAAAAAAAAAA==")],
            [good[0], (KEY, &short), good[2]],
        ] {
            let refused = of_object(&headers(OF_OBJECT, &bad)).err().unwrap();
            assert_eq!(
                refused.status_code().map(|status| status.as_u16()),
                Some(400)
            );
        }
    }

    #[test]
    fn headers_that_hold_a_key_are_known() {
        assert!(holds_a_key("x-amz-server-side-encryption-customer-key"));
        assert!(holds_a_key(
            "x-amz-copy-source-server-side-encryption-customer-key"
        ));
        assert!(!holds_a_key(
            "x-amz-server-side-encryption-customer-key-md5"
        ));
    }
}
