//! `x-amz-copy-source`: the object that a copy is made of.

use coffer_vault::record::ObjectName;
use coffer_vault::version::{Absent, Which};
use coffer_vault::{BucketName, CopySource, VaultError};
use http::HeaderMap;
use s3s::{S3Result, s3_error};

use crate::errors::details::of_argument;
use crate::errors::not_implemented;
use crate::http::{conditions, percent};
use crate::parameters::customer_key;
use crate::parameters::names;

const HEADER: &str = "x-amz-copy-source";

/// The source of a copy, with its conditions.
pub(crate) fn read(headers: &HeaderMap) -> S3Result<CopySource> {
    let header = headers.get(HEADER);
    let text = header.and_then(|source| source.to_str().ok());
    let (bucket, name, which) = locate(text.unwrap_or(""))?;
    let conditions = conditions::of_copy_source(headers)?;
    Ok(CopySource {
        bucket,
        name,
        which,
        conditions,
        customer_key: customer_key::of_source(headers)?,
    })
}

/// Reads `bucket/name`, encoded as a form is, perhaps with a slash before it and a version after
/// it: `+` is a space, as AWS reads it. Clients that mean a plus send `%2B`, whatever they are.
/// Not left to s3s, which takes fewer names for those of buckets than there may be.
pub(crate) fn locate(header: &str) -> S3Result<(BucketName, ObjectName, Which)> {
    let malformed = || {
        s3_error!(
            InvalidArgument,
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"
        )
    };
    if !percent::is_encoded(header) {
        let error = s3_error!(InvalidArgument, "Invalid copy source encoding");
        return Err(of_argument(error, HEADER, header));
    }
    let (path, version) = header
        .split_once("?versionId=")
        .map_or((header, None), |(path, version)| (path, Some(version)));
    let path = percent::decode_form(path).ok_or_else(malformed)?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    if path.starts_with("arn:") {
        return Err(not_implemented("Copying from an access point"));
    }
    let version = version.map(|version| percent::decode_form(version).ok_or_else(malformed));
    let which = names::which_in(HEADER, version.transpose()?.as_deref())?;
    let (bucket, name) = path.split_once('/').ok_or_else(malformed)?;
    Ok((names::bucket(bucket)?, names::object(name)?, which))
}

/// How a source may be written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spelled {
    /// What means this source and no other: `bucket/name`, with the version if one is named, and
    /// the same with a slash before it where it was sent so.
    pub(crate) meant: Vec<String>,
    /// What could mean another: the header as it was sent, and the object without the version.
    pub(crate) also: Vec<String>,
}

/// How a source may be written. What can't be read, which the operation refuses, means nothing.
pub(crate) fn spelled(header: String) -> Spelled {
    let Ok((bucket, name, which)) = locate(&header) else {
        return Spelled {
            meant: Vec::new(),
            also: vec![header],
        };
    };
    let slashes: &[&str] = if header.starts_with('/') {
        &["", "/"]
    } else {
        &[""]
    };
    let object = format!("{bucket}/{}", name.expose());
    let (whole, mut also) = match which {
        Which::Version(version) => {
            let whole = format!("{object}?versionId={version}");
            let bare = slashes.iter().map(|slash| format!("{slash}{object}"));
            (whole, bare.collect())
        }
        Which::Current => (object, Vec::new()),
    };
    // A key with this in it is spelled as a version of another: then nothing tells which is meant.
    let is_clear = !name.expose().contains("?versionId=");
    let spelled = slashes.iter().map(|slash| format!("{slash}{whole}"));
    let (meant, unclear): (Vec<String>, Vec<String>) = spelled.partition(|_| is_clear);
    also.extend(unclear);
    if !meant.contains(&header) && !also.contains(&header) {
        also.push(header);
    }
    Spelled { meant, also }
}

/// What S3 says of a source that is too large to be copied at once, and of one that is a delete
/// marker.
pub(crate) fn refused(error: VaultError) -> VaultError {
    match error {
        VaultError::TooLarge { .. } => VaultError::Invalid {
            what: "The specified copy source is larger than the maximum allowable size for a copy \
                   source: 5368709120. Copy it in parts.",
        },
        VaultError::NoVersion(Absent::Marker { .. }) => VaultError::Invalid {
            what: "The source of a copy request may not specifically refer to a delete marker by \
                   version id.",
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::details::taken;

    fn carried_by(refused: &s3s::S3Error) -> Option<String> {
        taken(&mut refused.headers()?.clone())
    }

    #[test]
    fn a_source_is_meant_in_one_way_and_written_in_several() {
        let told = |header: &str, meant: &[&str], also: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let (meant, also) = (owned(meant), owned(also));
            assert_eq!(spelled(header.to_owned()), Spelled { meant, also });
        };
        told("buc/a b", &["buc/a b"], &[]);
        told("/buc/a", &["buc/a", "/buc/a"], &[]);
        told("buc/a+b", &["buc/a b"], &["buc/a+b"]);
        told("buc%2Fa%2Bb", &["buc/a+b"], &["buc%2Fa%2Bb"]);
        let version = "buc/a?versionId=null";
        told(version, &[version], &["buc/a"]);
        // An object of this name, which is spelled as a version of another.
        let sent = "buc/a%3FversionId%3Dnull";
        told(sent, &[], &[version, sent]);
        told("nothing", &[], &["nothing"]);
    }

    #[test]
    fn a_version_that_is_none_is_told_as_part_of_the_header() {
        for (header, sent) in [("buc/k?versionId=", ""), ("buc/k?versionId=abc", "abc")] {
            let refused = locate(header).unwrap_err();
            let told = carried_by(&refused);
            let elements = format!(
                "<ArgumentName>x-amz-copy-source</ArgumentName><ArgumentValue>{sent}\
                 </ArgumentValue>"
            );
            assert_eq!(told, Some(elements), "{header}");
        }
    }

    #[test]
    fn sources_name_objects_of_any_name() {
        let parsed = |header: &str| {
            let located = locate(header).ok();
            located.map(|(bucket, name, _)| (bucket.to_string(), name.expose().to_owned()))
        };
        let some = |name: &str| Some(("buc".to_owned(), name.to_owned()));
        assert_eq!(parsed("buc/a%20b%2Bc"), some("a b+c"));
        assert_eq!(parsed("buc/a+b.txt"), some("a b.txt"));
        assert_eq!(parsed("buc%2Fa%2fb"), some("a/b"));
        assert_eq!(parsed("/buc//a/../b"), some("/a/../b"));
        assert_eq!(parsed("/buc/k?versionId=null"), some("k"));
        assert_eq!(parsed("buc/%C3%A4%01"), some("ä\u{1}"));
        for short in ["b/k", "xn--b/k"] {
            assert!(parsed(short).is_some(), "{short}");
        }
        for bad in [
            "",
            "buc",
            "/buc/",
            "B/k",
            "buc/k?versionId=7",
            "buc/%ff",
            "buc/%ZZ",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
