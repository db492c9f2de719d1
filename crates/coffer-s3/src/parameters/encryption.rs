//! Server-side encryption: what a request may ask for, and what answers tell. Everything is sealed
//! under a key of the bucket's level, whatever is asked for: in S3's words `aws:kms`, or `AES256`.

use coffer_vault::AskedEncryption;
use coffer_vault::record::Encryption;
use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::dto::ServerSideEncryption;
use s3s::{S3Result, s3_error};

use crate::errors::not_implemented;
use crate::http::has_any;
use crate::parameters::customer_key;

const ALGORITHM: HeaderName = HeaderName::from_static("x-amz-server-side-encryption");
const KEY_ID: HeaderName = HeaderName::from_static("x-amz-server-side-encryption-aws-kms-key-id");
const BUCKET_KEY: HeaderName =
    HeaderName::from_static("x-amz-server-side-encryption-bucket-key-enabled");

/// Operations on what is encrypted already, or said to be so by the upload that it belongs to. A
/// completion may say it again, which changes nothing: the clients of MinIO's libraries do so with
/// all servers but AWS's.
const NOT_ASKING: [&str; 5] = [
    "GetObject",
    "GetObjectAttributes",
    "HeadObject",
    "UploadPart",
    "UploadPartCopy",
];

/// What an answer tells.
pub(crate) struct Told {
    pub(crate) algorithm: Option<ServerSideEncryption>,
    /// The level.
    pub(crate) key_id: Option<String>,
    pub(crate) bucket_key: Option<bool>,
}

impl Told {
    pub(crate) fn of(encryption: &Encryption, level: &str) -> Self {
        let algorithm = match encryption {
            Encryption::Aes256 => Some(ServerSideEncryption::AES256),
            Encryption::Kms | Encryption::KmsBucketKey => Some(ServerSideEncryption::AWS_KMS),
            Encryption::Customer(_) => None,
        };
        let is_kms = algorithm == Some(ServerSideEncryption::AWS_KMS);
        Self {
            algorithm: algorithm.map(ServerSideEncryption::from_static),
            key_id: is_kms.then(|| level.to_owned()),
            bucket_key: (*encryption == Encryption::KmsBucketKey).then_some(true),
        }
    }

    /// As headers, for answers that s3s does not write.
    pub(crate) fn headers(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let algorithm = self
            .algorithm
            .map(|algorithm| algorithm.as_str().to_owned());
        let bucket_key = self.bucket_key.map(|is_there| is_there.to_string());
        let all = [
            (ALGORITHM, algorithm),
            (KEY_ID, self.key_id),
            (BUCKET_KEY, bucket_key),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, HeaderValue::try_from(value?).ok()?)))
    }
}

/// Tells an object's encryption in an output of s3s.
macro_rules! set_encryption {
    ($output:expr, $encryption:expr, $level:expr) => {{
        let told = $crate::parameters::encryption::Told::of($encryption, $level);
        $output.server_side_encryption = told.algorithm;
        $output.ssekms_key_id = told.key_id;
        $output.bucket_key_enabled = told.bucket_key;
    }};
}
pub(crate) use set_encryption;

/// Tells a client that its key was used, in an output of s3s.
macro_rules! set_customer_key {
    ($output:expr, $brought:expr) => {
        if let Some(brought) = &$brought {
            $output.sse_customer_algorithm = Some("AES256".to_owned());
            $output.sse_customer_key_md5 = Some(brought.md5.clone());
        }
    };
}
pub(crate) use set_customer_key;

/// Refuses what can't be granted: two layers, unknown algorithms, one beside a key of the client's
/// own, and asking for any where it was asked for before.
pub(crate) fn check_headers(operation: &str, headers: &HeaderMap) -> S3Result {
    if !has_any(headers, ALGORITHM.as_str()) {
        return Ok(());
    }
    let is_customer_key = |name: &HeaderName| name.as_str().starts_with(customer_key::OF_OBJECT);
    if headers.contains_key(ALGORITHM) && headers.keys().any(is_customer_key) {
        return Err(s3_error!(
            InvalidArgument,
            "Server Side Encryption with Customer provided key is incompatible with the encryption \
             method specified"
        ));
    }
    if NOT_ASKING.contains(&operation)
        && let Some(name) = [ALGORITHM, KEY_ID, BUCKET_KEY]
            .into_iter()
            .find(|name| headers.contains_key(name))
    {
        return Err(s3_error!(
            InvalidArgument,
            "{name} header is not supported for this operation."
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

/// The encryption that a request asks for; its headers have been checked.
pub(crate) fn asked(headers: &HeaderMap) -> S3Result<AskedEncryption> {
    if !has_any(headers, ALGORITHM.as_str()) {
        return Ok(AskedEncryption::BucketDefault { bucket_key: None });
    }
    let bucket_key = match headers.get(BUCKET_KEY).map(HeaderValue::as_bytes) {
        None => None,
        Some(value) if value.eq_ignore_ascii_case(b"true") => Some(true),
        Some(value) if value.eq_ignore_ascii_case(b"false") => Some(false),
        Some(_) => {
            return Err(s3_error!(InvalidArgument, "{BUCKET_KEY} is true or false"));
        }
    };
    if let Some(brought) = customer_key::of_object(headers)? {
        return Ok(AskedEncryption::Customer(brought.key));
    }
    Ok(match headers.get(ALGORITHM).map(HeaderValue::as_bytes) {
        None => AskedEncryption::BucketDefault { bucket_key },
        Some(b"aws:kms") => AskedEncryption::Kms { bucket_key },
        Some(_) => AskedEncryption::Aes256,
    })
}

/// The key that a request names, if any: a level.
pub(crate) fn named_key(headers: &HeaderMap) -> S3Result<Option<&str>> {
    if !has_any(headers, ALGORITHM.as_str()) {
        return Ok(None);
    }
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

/// Whether a key that was named is the level that seals the bucket: `LEVEL`, `alias/LEVEL`, or an
/// ARN of either.
pub(crate) fn check_key(named: &str, level: &str) -> S3Result {
    let named = match named.strip_prefix("arn:aws:kms:") {
        Some(arn) => {
            let id = arn.splitn(3, ':').nth(2).ok_or_else(other_key)?;
            id.strip_prefix("key/").unwrap_or(id)
        }
        None => named,
    };
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

    const ALGORITHM: &str = "x-amz-server-side-encryption";
    const KEY_ID: &str = "x-amz-server-side-encryption-aws-kms-key-id";
    const BUCKET_KEY: &str = "x-amz-server-side-encryption-bucket-key-enabled";

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
        let check = |operation, pairs: &[_]| check_headers(operation, &headers(pairs));
        for good in ["AES256", "aws:kms"] {
            assert!(check("PutObject", &[(ALGORITHM, good)]).is_ok(), "{good}");
            for operation in NOT_ASKING {
                let refused = check(operation, &[(ALGORITHM, good)]).unwrap_err();
                assert_eq!(refused.code().as_str(), "InvalidArgument", "{operation}");
            }
        }
        for bad in ["aws:kms:dsse", "rot13", ""] {
            assert!(check("PutObject", &[(ALGORITHM, bad)]).is_err(), "{bad}");
        }
        let both = [
            (ALGORITHM, "AES256"),
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        ];
        assert!(check("PutObject", &both).is_err());
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        use AskedEncryption::{Aes256, BucketDefault, Kms};
        let kms = |bucket_key| Kms { bucket_key };
        let is = |pairs: &[_]| asked(&headers(pairs)).ok();
        let by_default = |bucket_key| BucketDefault { bucket_key };
        assert_eq!(is(&[]), Some(by_default(None)));
        assert_eq!(is(&[(BUCKET_KEY, "false")]), Some(by_default(Some(false))));
        assert_eq!(is(&[(ALGORITHM, "AES256")]), Some(Aes256));
        assert_eq!(is(&[(ALGORITHM, "aws:kms")]), Some(kms(None)));
        let with_key = [(ALGORITHM, "aws:kms"), (BUCKET_KEY, "True")];
        assert_eq!(is(&with_key), Some(kms(Some(true))));
        assert_eq!(is(&[(BUCKET_KEY, "yes")]), None);
    }

    #[test]
    fn a_named_key_must_be_the_level() {
        let kms = headers(&[(ALGORITHM, "aws:kms"), (KEY_ID, "secret")]);
        assert_eq!(named_key(&kms).unwrap(), Some("secret"));
        assert!(named_key(&headers(&[(ALGORITHM, "AES256"), (KEY_ID, "secret")])).is_err());
        for good in [
            "secret",
            "alias/secret",
            "arn:aws:kms:us-east-1:123456789012:key/secret",
            "arn:aws:kms:us-east-1:123456789012:alias/secret",
        ] {
            assert!(check_key(good, "secret").is_ok(), "{good}");
        }
        for bad in [
            "default",
            "arn:aws:kms:us-east-1:1:key/default",
            "arn:aws:kms:",
            "",
        ] {
            assert!(check_key(bad, "secret").is_err(), "{bad}");
        }
    }
}
