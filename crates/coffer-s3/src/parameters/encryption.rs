//! Server-side encryption: requests that ask for some get the truth, which is that everything is
//! sealed under a key of the bucket's level, in S3's words `aws:kms`.

use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::dto::ServerSideEncryption;
use s3s::{S3Result, s3_error};

use crate::errors::not_implemented;

const ALGORITHM: HeaderName = HeaderName::from_static("x-amz-server-side-encryption");
const KEY_ID: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-aws-kms-key-id");

/// What every answer tells.
pub(crate) fn algorithm() -> Option<ServerSideEncryption> {
    Some(ServerSideEncryption::from_static(
        ServerSideEncryption::AWS_KMS,
    ))
}

/// Refuses what can't be granted: keys of the client's own, two layers, unknown algorithms.
pub(crate) fn check_headers(headers: &HeaderMap) -> S3Result {
    let is_customer_key = |name: &HeaderName| {
        let name = name.as_str();
        name.starts_with("x-amz-server-side-encryption-customer-")
            || name.starts_with("x-amz-copy-source-server-side-encryption-customer-")
    };
    if headers.keys().any(is_customer_key) {
        return Err(s3_error!(
            NotImplemented,
            "Encryption with keys that the client provides (SSE-C) is not implemented: coffer \
             makes its own keys and seals every object with one"
        ));
    }
    match headers.get(ALGORITHM).map(HeaderValue::as_bytes) {
        None | Some(b"AES256" | b"aws:kms") => Ok(()),
        Some(b"aws:kms:dsse") => Err(not_implemented("Encryption in two layers (aws:kms:dsse)")),
        Some(_) => Err(s3_error!(
            InvalidEncryptionAlgorithmError,
            "The encryption request that you specified is not valid. Valid values are aws:kms and \
             AES256."
        )),
    }
}

/// The key that a request names, if any: a level.
pub(crate) fn named_key(headers: &HeaderMap) -> S3Result<Option<&str>> {
    let Some(value) = headers.get(KEY_ID) else {
        return Ok(None);
    };
    if headers
        .get(ALGORITHM)
        .is_none_or(|algorithm| algorithm != "aws:kms")
    {
        return Err(s3_error!(
            InvalidArgument,
            "A key id needs x-amz-server-side-encryption: aws:kms"
        ));
    }
    match value.to_str() {
        Ok(name) => Ok(Some(name)),
        Err(_) => Err(other_key()),
    }
}

/// Whether a key that was named is the level that seals the bucket.
pub(crate) fn check_key(named: &str, level: &str) -> S3Result {
    if named.strip_prefix("alias/").unwrap_or(named) != level {
        return Err(other_key());
    }
    Ok(())
}

fn other_key() -> s3s::S3Error {
    s3_error!(
        InvalidArgument,
        "The key id is not the level of this bucket: all of a bucket is sealed under keys of the \
         bucket's level. Leave the key id out, or make a bucket in that level."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_usual_wishes_are_granted_and_others_refused() {
        let algorithm = "x-amz-server-side-encryption";
        for good in ["AES256", "aws:kms"] {
            assert!(
                check_headers(&headers(&[(algorithm, good)])).is_ok(),
                "{good}"
            );
        }
        for bad in ["aws:kms:dsse", "rot13", ""] {
            assert!(
                check_headers(&headers(&[(algorithm, bad)])).is_err(),
                "{bad}"
            );
        }
        for customer in [
            "x-amz-server-side-encryption-customer-algorithm",
            "x-amz-server-side-encryption-customer-key",
            "x-amz-copy-source-server-side-encryption-customer-key-md5",
        ] {
            let refused = check_headers(&headers(&[(customer, "x")])).unwrap_err();
            assert_eq!(refused.code().as_str(), "NotImplemented");
        }
    }

    #[test]
    fn a_named_key_must_be_the_level() {
        let (algorithm, key_id) = (
            "x-amz-server-side-encryption",
            "x-amz-server-side-encryption-aws-kms-key-id",
        );
        let kms = headers(&[(algorithm, "aws:kms"), (key_id, "secret")]);
        assert_eq!(named_key(&kms).unwrap(), Some("secret"));
        assert!(named_key(&headers(&[(algorithm, "AES256"), (key_id, "secret")])).is_err());
        assert!(check_key("secret", "secret").is_ok());
        assert!(check_key("alias/secret", "secret").is_ok());
        assert!(check_key("default", "secret").is_err());
    }
}
