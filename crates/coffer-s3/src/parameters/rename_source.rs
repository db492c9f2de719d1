//! `x-amz-rename-source`: the object that is renamed.

use coffer_vault::record::ObjectName;
use http::HeaderMap;
use s3s::{S3Error, S3Result, s3_error};

use crate::http::percent;
use crate::parameters::names;

const RENAME_SOURCE: &str = "x-amz-rename-source";

/// Its name, which is percent-encoded. The bucket is not named: it is the one of the request.
pub(crate) fn read(headers: &HeaderMap) -> S3Result<ObjectName> {
    let malformed = || {
        s3_error!(
            InvalidArgument,
            "{RENAME_SOURCE} must be the name of an object in the same bucket, percent-encoded"
        )
    };
    let text = headers.get(RENAME_SOURCE).ok_or_else(malformed)?;
    let text = std::str::from_utf8(text.as_bytes()).map_err(|_| malformed())?;
    names::object(percent::decode_path(text).ok_or_else(malformed)?)
}

/// Whether a source begins as one of a copy does. It may be the name of an object all the same.
pub(crate) fn names_bucket(source: &ObjectName, bucket: &str) -> bool {
    let source = source.expose();
    let source = source.strip_prefix('/').unwrap_or(source);
    let rest = source.strip_prefix(bucket);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// There is no object of such a name.
pub(crate) fn no_such_key() -> S3Error {
    s3_error!(
        NoSuchKey,
        "The specified key does not exist: {RENAME_SOURCE} is the object's key alone, \
         percent-encoded, without the bucket before it."
    )
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_source_is_a_name_in_the_bucket() {
        let named = |text: &str| {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_bytes(text.as_bytes()).unwrap();
            headers.insert(RENAME_SOURCE, value);
            let source = read(&headers).ok();
            source.map(|name| name.expose().to_owned())
        };
        assert_eq!(named("a/b.txt").as_deref(), Some("a/b.txt"));
        assert_eq!(named("a%20b+c%2Bd").as_deref(), Some("a b+c+d"));
        assert_eq!(named("ä").as_deref(), Some("ä"));
        assert_eq!(named(""), None);
        assert_eq!(named("%ff"), None);
        assert!(read(&HeaderMap::new()).is_err());
        let is_of = |text: &str| names_bucket(&names::object(text.to_owned()).unwrap(), "films");
        assert!(is_of("films/a") && is_of("/films/a/b"));
        assert!(!is_of("films") && !is_of("a/films/b") && !is_of("films2/a"));
    }
}
