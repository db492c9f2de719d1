//! Bodies of the fuzz targets: what parses bytes that others may have written. Each asserts that
//! what it accepts is written again as it was read.

use std::path::Path;

use crate::blobs::path::{id_of, path_of};
use crate::catalog::delimiter::Delimiter;
use crate::catalog::tables::columns::{
    decode_checksum, decode_checksum_type, decode_details, decode_tags, encode_checksum,
    encode_checksum_type, encode_details, encode_tags,
};

/// The text columns of a catalog.
pub fn columns(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(details) = decode_details(Some(text), None) {
        let again = decode_details(encode_details(&details).as_deref(), None);
        assert_eq!(again.ok().as_ref(), Some(&details));
    }
    if let Ok(tags) = decode_tags(Some(text)) {
        assert_eq!(
            decode_tags(encode_tags(&tags).as_deref()).ok().as_ref(),
            Some(&tags)
        );
    }
    if let Ok(checksum) = decode_checksum(text) {
        assert_eq!(encode_checksum(&checksum), text);
    }
    if let Ok(announced) = decode_checksum_type(text) {
        assert!(text.starts_with(&encode_checksum_type(announced)));
    }
}

/// A file's path below `blobs/`.
pub fn blob_path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some((folder, file)) = text.split_once('/') else {
        return;
    };
    if let Some(id) = id_of(folder, file) {
        assert_eq!(path_of(Path::new(""), id), Path::new(text));
    }
}

/// Prefix, delimiter, a place to begin after, and a name, each on a line of its own.
pub fn delimiter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (prefix, delimiter, start_after, name) = (next(), next(), next(), next());
    let delimiter = Delimiter::new(prefix, Some(delimiter));
    let begin = delimiter.begin(Some(start_after));
    let shown = delimiter.fold(name).unwrap_or(name);
    // A name belongs on the page exactly when what it shows as comes after the place.
    let belongs = name.starts_with(prefix) && shown.as_bytes() > start_after.as_bytes();
    let is_within = name.as_bytes() >= &begin[..] && name.as_bytes() < &delimiter.end()[..];
    assert_eq!(belongs, is_within);
}
