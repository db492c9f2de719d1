//! Headers that tell of checksums.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_vault::record::ChecksumAlgorithm;
use http::HeaderMap;
use s3s::{S3Error, S3Result, s3_error};

use crate::checksums::algorithms::{ALGORITHMS, by_name, is_value};
use crate::errors::details::carried;
use crate::http::text_of;
use crate::limits::ECHO_MAX_BYTES;

/// Headers that begin like a checksum and are none.
pub(crate) const NOT_VALUES: [&str; 3] = [
    "x-amz-checksum-algorithm",
    "x-amz-checksum-mode",
    "x-amz-checksum-type",
];

/// Whether any header tells of a checksum, in whatever way.
pub(crate) fn tells_of_checksums(headers: &HeaderMap) -> bool {
    let tells = |name: &str| {
        let name = name.strip_prefix("x-amz-").unwrap_or(name);
        let is_checksum = name.starts_with("checksum-") || name.starts_with("sdk-checksum-");
        is_checksum || matches!(name, "trailer" | "content-md5")
    };
    headers.keys().any(|name| tells(name.as_str()))
}

/// The one checksum in the headers, if any.
pub(crate) fn header_value(headers: &HeaderMap) -> S3Result<Option<(ChecksumAlgorithm, String)>> {
    let is_value_of =
        |name: &str| name.starts_with("x-amz-checksum-") && !NOT_VALUES.contains(&name);
    if headers
        .keys()
        .filter(|name| is_value_of(name.as_str()))
        .count()
        > 1
    {
        return Err(too_many());
    }
    let mut found = None;
    for (name, value) in headers {
        let name = name.as_str();
        if !is_value_of(name) {
            continue;
        }
        let row = ALGORITHMS.iter().find(|row| row.header == name);
        let unknown = || {
            s3_error!(
                InvalidRequest,
                "The algorithm type you specified in x-amz-checksum- header is invalid."
            )
        };
        let algorithm = row.ok_or_else(unknown)?.algorithm;
        let value = value
            .to_str()
            .ok()
            .filter(|value| is_value(algorithm, value));
        let value = value
            .ok_or_else(|| s3_error!(InvalidRequest, "Value for {name} header is invalid."))?;
        if found.replace((algorithm, value.to_owned())).is_some() {
            return Err(too_many());
        }
    }
    Ok(found)
}

/// The one checksum that `x-amz-trailer` announces, if any.
pub(crate) fn trailer_name(headers: &HeaderMap) -> S3Result<Option<ChecksumAlgorithm>> {
    let mut found = None;
    let lists = headers
        .get_all("x-amz-trailer")
        .iter()
        .filter_map(|list| list.to_str().ok());
    let names = lists.flat_map(|list| list.split(',')).map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        if !name.to_ascii_lowercase().starts_with("x-amz-checksum-") {
            return Err(s3_error!(
                InvalidRequest,
                "The value specified in the x-amz-trailer header is not supported"
            ));
        }
        let row = ALGORITHMS
            .iter()
            .find(|row| row.header.eq_ignore_ascii_case(name));
        if found
            .replace(by_name(row.map_or("", |row| row.name))?)
            .is_some()
        {
            return Err(too_many());
        }
    }
    Ok(found)
}

/// `Content-MD5`, if there is one.
pub(crate) fn content_md5(headers: &HeaderMap) -> S3Result<Option<[u8; 16]>> {
    let Some(value) = headers.get("content-md5") else {
        return Ok(None);
    };
    let md5 = BASE64
        .decode(value.as_bytes())
        .ok()
        .and_then(|bytes| bytes.try_into().ok());
    md5.map(Some).ok_or_else(|| {
        let error = s3_error!(InvalidDigest, "The Content-MD5 you specified was invalid.");
        let mut told = vec![("Content-MD5", text_of(value.as_bytes()).into_owned())];
        told.retain(|(_, sent)| sent.len() <= ECHO_MAX_BYTES);
        carried(error, &told)
    })
}

/// More than one checksum was sent.
pub(crate) fn too_many() -> S3Error {
    s3_error!(
        InvalidRequest,
        "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."
    )
}
