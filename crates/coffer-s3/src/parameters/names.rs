//! Names in requests, as the vault takes them.

use coffer_vault::BucketName;
use coffer_vault::UploadId;
use coffer_vault::record::ObjectName;
use coffer_vault::version::{VersionId, Which};
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::details::of_argument;

/// A bucket's name.
pub(crate) fn bucket(name: &str) -> S3Result<BucketName> {
    BucketName::new(name)
        .ok_or_else(|| s3_error!(InvalidBucketName, "The specified bucket is not valid."))
}

/// The name of a bucket to be made.
pub(crate) fn new_bucket(name: &str) -> S3Result<BucketName> {
    let name = bucket(name)?;
    if !name.could_be_made_over_s3() {
        return Err(s3_error!(
            InvalidBucketName,
            "The specified bucket is not valid."
        ));
    }
    Ok(name)
}

/// An object's name: any text of 1 to 1,024 bytes, as it is.
pub(crate) fn object(name: impl Into<String>) -> S3Result<ObjectName> {
    let name = name.into();
    if name.is_empty() {
        return Err(s3_error!(
            InvalidRequest,
            "A key has at least one character"
        ));
    }
    ObjectName::new(name).ok_or_else(|| s3_error!(KeyTooLongError, "Your key is too long"))
}

/// An upload's id. One that is none names an upload that never was, for ids are drawn at random: so
/// the bucket is looked for first, as S3 does.
pub(crate) fn upload(id: &str) -> UploadId {
    parse_id(id).unwrap_or(UploadId([0; 16]))
}

/// 32 lower-case hexadecimal digits.
pub(crate) fn parse_id(text: &str) -> Option<UploadId> {
    if text.len() != 32
        || !text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    {
        return None;
    }
    u128::from_str_radix(text, 16)
        .ok()
        .map(|number| UploadId(number.to_be_bytes()))
}

/// Which version a request means: the newest without an id.
pub(crate) fn which(id: Option<&str>) -> S3Result<Which> {
    which_in("versionId", id)
}

/// The same, where the id stands in this parameter or header.
pub(crate) fn which_in(parameter: &str, id: Option<&str>) -> S3Result<Which> {
    let Some(id) = id else {
        return Ok(Which::Current);
    };
    if id.is_empty() {
        let error = s3_error!(InvalidArgument, "Version id cannot be the empty string");
        return Err(of_argument(error, parameter, id));
    }
    let version = id.parse::<VersionId>();
    version
        .map(Which::Version)
        .map_err(|_| no_version_id(parameter, id))
}

/// What a parameter of this name has is no version's id.
pub(crate) fn no_version_id(parameter: &str, sent: &str) -> S3Error {
    let error = s3_error!(InvalidArgument, "Invalid version id specified");
    of_argument(error, parameter, sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upload_ids_are_read_back() {
        let id = UploadId([7, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(upload(&id.to_string()), id);
        for bad in [
            "",
            "7",
            &"g".repeat(32),
            &"+".repeat(32),
            &"A".repeat(32),
            &"0".repeat(33),
        ] {
            assert_eq!(upload(bad), UploadId([0; 16]), "{bad}");
        }
    }

    #[test]
    fn object_names_have_any_content_and_a_bounded_length() {
        for good in ["/", "//a", "../..", "\u{1}", "ä", &"x".repeat(1024)] {
            assert!(object(good).is_ok());
        }
        assert_eq!(
            object("x".repeat(1025)).unwrap_err().code().as_str(),
            "KeyTooLongError"
        );
        assert!(object("").is_err());
    }

    #[test]
    fn ids_of_versions_are_null_or_digits() {
        assert_eq!(which(None).unwrap(), Which::Current);
        let none = which(Some("")).unwrap_err();
        assert_eq!(
            none.message(),
            Some("Version id cannot be the empty string")
        );
        let null = Which::Version(VersionId::Null);
        assert_eq!(which(Some("null")).unwrap(), null);
        for bad in ["", "1", "NULL", "../../../etc/passwd"] {
            let error = which(Some(bad)).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{bad}");
        }
    }
}
