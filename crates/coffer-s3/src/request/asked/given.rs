//! Which condition keys the headers and the query of a request have values for: those that its
//! operation takes from there, and no other. What it does not take counts as not sent.

use coffer_vault::policy::Key;

/// What an operation takes from headers and query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Conditions on the object that is there.
    Conditions,
    /// Which names are listed.
    Prefix,
    /// How many of them at once.
    MaxKeys,
    /// An access control list.
    Acl,
    /// What is to keep the object from being deleted.
    Lock,
    /// Tags of the object.
    Tagging,
    /// What a copy is made of.
    Source,
    /// What a copy does with the source's metadata.
    Directive,
    /// Checksums of the body.
    Checksums,
    /// How the object is to be said to be encrypted.
    Encryption,
    /// The client's own key.
    CustomerKey,
    /// Class and redirect of the object.
    Description,
    /// Whose the objects of a bucket are to be.
    Ownership,
}

use Part::*;

const OPERATIONS: &[(&str, &[Part])] = &[
    // First what is asked for most.
    ("GetObject", &[Conditions, CustomerKey]),
    ("HeadObject", &[Conditions, CustomerKey]),
    (
        "PutObject",
        &[
            Conditions,
            Acl,
            Lock,
            Tagging,
            Checksums,
            Encryption,
            CustomerKey,
            Description,
        ],
    ),
    ("CompleteMultipartUpload", &[Conditions, Checksums]),
    (
        "CopyObject",
        &[
            Conditions,
            Acl,
            Lock,
            Tagging,
            Source,
            Directive,
            Encryption,
            CustomerKey,
            Description,
        ],
    ),
    ("CreateBucket", &[Acl, Ownership]),
    (
        "CreateMultipartUpload",
        &[Acl, Lock, Tagging, Encryption, CustomerKey, Description],
    ),
    // Those of DeleteObjects stand in its body, one by one.
    ("DeleteObject", &[Conditions]),
    ("GetObjectAttributes", &[CustomerKey]),
    ("ListMultipartUploads", &[Prefix]),
    ("ListObjectVersions", &[Prefix, MaxKeys]),
    ("ListObjects", &[Prefix, MaxKeys]),
    ("ListObjectsV2", &[Prefix, MaxKeys]),
    (
        "PostObject",
        &[
            Acl,
            Lock,
            Tagging,
            Checksums,
            Encryption,
            CustomerKey,
            Description,
        ],
    ),
    ("PutBucketAcl", &[Acl]),
    ("PutObjectAcl", &[Acl]),
    ("RenameObject", &[Conditions]),
    ("UploadPart", &[Checksums, CustomerKey]),
    ("UploadPartCopy", &[Source, CustomerKey]),
];

/// What an operation takes from headers and query.
pub(super) fn parts_of(operation: &str) -> &'static [Part] {
    let row = OPERATIONS.iter().find(|(name, _)| *name == operation);
    row.map_or(&[], |(_, parts)| parts)
}

/// What a header is a part of, if its text may be the value of a key. Those of [`place_of`].
pub(super) fn part_of(header: &str) -> Option<Part> {
    if header.starts_with("if-") {
        return Some(Conditions);
    }
    // Most headers are none of S3's own.
    Some(match header.strip_prefix("x-amz-")? {
        "acl" => Acl,
        "copy-source" => Source,
        "metadata-directive" => Directive,
        "object-ownership" => Ownership,
        "server-side-encryption" | "server-side-encryption-aws-kms-key-id" => Encryption,
        "server-side-encryption-customer-algorithm" => CustomerKey,
        "storage-class" | "website-redirect-location" => Description,
        own if own.starts_with("checksum-") => Checksums,
        own if own.starts_with("grant-") => Acl,
        _ => return None,
    })
}

/// The header or the parameter whose text is the value of a key, and what it is a part of.
pub(super) fn place_of(key: &Key) -> Option<(Part, &'static str)> {
    Some(match key {
        Key::Acl => (Acl, "x-amz-acl"),
        Key::ChecksumCrc32 => (Checksums, "x-amz-checksum-crc32"),
        Key::ChecksumCrc32c => (Checksums, "x-amz-checksum-crc32c"),
        Key::ChecksumCrc64nvme => (Checksums, "x-amz-checksum-crc64nvme"),
        Key::ChecksumMd5 => (Checksums, "x-amz-checksum-md5"),
        Key::ChecksumSha1 => (Checksums, "x-amz-checksum-sha1"),
        Key::ChecksumSha256 => (Checksums, "x-amz-checksum-sha256"),
        Key::ChecksumSha512 => (Checksums, "x-amz-checksum-sha512"),
        Key::ChecksumXxhash128 => (Checksums, "x-amz-checksum-xxhash128"),
        Key::ChecksumXxhash3 => (Checksums, "x-amz-checksum-xxhash3"),
        Key::ChecksumXxhash64 => (Checksums, "x-amz-checksum-xxhash64"),
        Key::CopySource => (Source, "x-amz-copy-source"),
        Key::CustomerAlgorithm => (
            CustomerKey,
            "x-amz-server-side-encryption-customer-algorithm",
        ),
        Key::Delimiter => (Prefix, "delimiter"),
        Key::GrantFullControl => (Acl, "x-amz-grant-full-control"),
        Key::GrantRead => (Acl, "x-amz-grant-read"),
        Key::GrantReadAcp => (Acl, "x-amz-grant-read-acp"),
        Key::GrantWrite => (Acl, "x-amz-grant-write"),
        Key::GrantWriteAcp => (Acl, "x-amz-grant-write-acp"),
        Key::IfMatch => (Conditions, "if-match"),
        Key::IfNoneMatch => (Conditions, "if-none-match"),
        Key::KmsKeyId => (Encryption, "x-amz-server-side-encryption-aws-kms-key-id"),
        Key::MaxKeys => (MaxKeys, "max-keys"),
        Key::MetadataDirective => (Directive, "x-amz-metadata-directive"),
        Key::ObjectOwnership => (Ownership, "x-amz-object-ownership"),
        Key::Prefix => (Prefix, "prefix"),
        Key::ServerSideEncryption => (Encryption, "x-amz-server-side-encryption"),
        Key::StorageClass => (Description, "x-amz-storage-class"),
        Key::WebsiteRedirect => (Description, "x-amz-website-redirect-location"),
        _ => return None,
    })
}

/// Whether headers or query may have a value for one of these keys, for an operation that takes
/// these parts.
pub(super) fn is_any_given(keys: &[Key], parts: &[Part]) -> bool {
    let is_given = |key| place_of(key).is_some_and(|(part, _)| parts.contains(&part));
    keys.iter().any(is_given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::asked::actions;

    #[test]
    fn each_operation_is_one_that_there_is() {
        for (operation, parts) in OPERATIONS {
            assert!(!actions::of(operation, false).is_empty(), "{operation}");
            assert_eq!(parts_of(operation), *parts, "{operation}");
        }
        assert_eq!(parts_of("PutObjectRetention"), []);
    }

    #[test]
    fn each_header_of_a_key_is_kept_where_its_part_is_taken() {
        for key in [
            Key::Acl,
            Key::ChecksumCrc32,
            Key::ChecksumCrc64nvme,
            Key::ChecksumMd5,
            Key::ChecksumSha256,
            Key::ChecksumXxhash128,
            Key::CopySource,
            Key::CustomerAlgorithm,
            Key::GrantFullControl,
            Key::GrantRead,
            Key::GrantReadAcp,
            Key::GrantWrite,
            Key::GrantWriteAcp,
            Key::IfMatch,
            Key::IfNoneMatch,
            Key::KmsKeyId,
            Key::MetadataDirective,
            Key::ObjectOwnership,
            Key::ServerSideEncryption,
            Key::StorageClass,
            Key::WebsiteRedirect,
        ] {
            let (part, header) = place_of(&key).unwrap();
            assert_eq!(part_of(header), Some(part), "{key}");
        }
        for other in [
            "host",
            "x-amz-date",
            "x-amz-content-sha256",
            "x-amz-meta-acl",
        ] {
            assert_eq!(part_of(other), None, "{other}");
        }
    }
}
