//! Condition keys: what a condition may ask of a request.
//!
//! *IAM User Guide*, AWS global condition context keys
//! (`IAM/latest/UserGuide/reference_policies_condition-keys.html`); *Service Authorization
//! Reference*, Condition keys for Amazon S3; *Amazon S3 API Reference*, Signature Version 4 policy
//! keys (`AmazonS3/latest/API/bucket-policy-s3-sigv4-conditions.html`). The keys of private
//! networks, access points, organisations, jobs and replication have no meaning here, and are
//! refused as unknown. `s3:x-amz-checksum-…` are coffer's own.

use std::fmt;

/// What the values of a key are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Arn,
    Number,
    Date,
    Bool,
    Address,
}

impl Kind {
    /// As an error calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Arn => "an ARN",
            Self::Number => "a number",
            Self::Date => "a date",
            Self::Bool => "true or false",
            Self::Address => "an IP address",
        }
    }
}

/// The requests that have a key: those about a bucket, those about an object, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    Both,
    Bucket,
    Object,
}

macro_rules! keys {
    (
        values { $($name:ident $text:literal $kind:ident $place:ident,)+ }
        tags { $($tag:ident $prefix:literal,)+ }
    ) => {
        /// A condition key. In policies their names are read in any case; the key of a tag behind
        /// the slash counts as written. Behind each stands which [`Value`](crate::Value) a request
        /// has for it; an ARN is a text.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Key {
            $(#[doc = concat!("`", $text, "`: ", stringify!($kind), ".")] $name,)+
            $(#[doc = concat!("`", $prefix, "KEY`: Text.")] $tag(
                /// The tag's key.
                String,
            ),)+
        }

        impl Key {
            /// The key of this name, in any case.
            pub fn parse(text: &str) -> Option<Self> {
                $(if text.eq_ignore_ascii_case($text) {
                    return Some(Self::$name);
                })+
                $(if let Some(tag) = after(text, $prefix) {
                    return Some(Self::$tag(tag.to_owned()));
                })+
                None
            }

            pub(crate) fn kind(&self) -> Kind {
                match self {
                    $(Self::$name => Kind::$kind,)+
                    $(Self::$tag(_) => Kind::Text,)+
                }
            }

            pub(crate) fn place(&self) -> KeyPlace {
                match self {
                    $(Self::$name => KeyPlace::$place,)+
                    $(Self::$tag(_) => KeyPlace::Object,)+
                }
            }
        }

        impl fmt::Display for Key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)+
                    $(Self::$tag(tag) => write!(f, "{}{tag}", $prefix),)+
                }
            }
        }

        #[cfg(test)]
        pub(crate) const PLAIN: &[Key] = &[$(Key::$name,)+];
    };
}

keys! {
    values {
        CurrentTime "aws:CurrentTime" Date Both,
        EpochTime "aws:EpochTime" Date Both,
        PrincipalAccount "aws:PrincipalAccount" Text Both,
        PrincipalArn "aws:PrincipalArn" Arn Both,
        PrincipalType "aws:PrincipalType" Text Both,
        Referer "aws:Referer" Text Both,
        AwsResourceAccount "aws:ResourceAccount" Text Both,
        SecureTransport "aws:SecureTransport" Bool Both,
        SourceIp "aws:SourceIp" Address Both,
        UserAgent "aws:UserAgent" Text Both,
        UserId "aws:userid" Text Both,
        UserName "aws:username" Text Both,
        AuthType "s3:authType" Text Both,
        Delimiter "s3:delimiter" Text Bucket,
        IfMatch "s3:if-match" Text Object,
        IfNoneMatch "s3:if-none-match" Text Object,
        LocationConstraint "s3:LocationConstraint" Text Bucket,
        MaxKeys "s3:max-keys" Number Bucket,
        ObjectCreationOperation "s3:ObjectCreationOperation" Bool Object,
        ObjectLockLegalHold "s3:object-lock-legal-hold" Text Object,
        ObjectLockMode "s3:object-lock-mode" Text Object,
        ObjectLockRemainingRetentionDays "s3:object-lock-remaining-retention-days" Number Object,
        ObjectLockRetainUntilDate "s3:object-lock-retain-until-date" Date Object,
        Prefix "s3:prefix" Text Bucket,
        RequestObjectTagKeys "s3:RequestObjectTagKeys" Text Object,
        ResourceAccount "s3:ResourceAccount" Text Both,
        SignatureAge "s3:signatureAge" Number Both,
        SignatureVersion "s3:signatureversion" Text Both,
        TlsVersion "s3:TlsVersion" Number Both,
        VersionId "s3:VersionId" Text Object,
        Acl "s3:x-amz-acl" Text Both,
        ChecksumCrc32 "s3:x-amz-checksum-crc32" Text Object,
        ChecksumCrc32c "s3:x-amz-checksum-crc32c" Text Object,
        ChecksumCrc64nvme "s3:x-amz-checksum-crc64nvme" Text Object,
        ChecksumMd5 "s3:x-amz-checksum-md5" Text Object,
        ChecksumSha1 "s3:x-amz-checksum-sha1" Text Object,
        ChecksumSha256 "s3:x-amz-checksum-sha256" Text Object,
        ChecksumSha512 "s3:x-amz-checksum-sha512" Text Object,
        ChecksumXxhash128 "s3:x-amz-checksum-xxhash128" Text Object,
        ChecksumXxhash3 "s3:x-amz-checksum-xxhash3" Text Object,
        ChecksumXxhash64 "s3:x-amz-checksum-xxhash64" Text Object,
        ContentSha256 "s3:x-amz-content-sha256" Text Both,
        CopySource "s3:x-amz-copy-source" Text Object,
        GrantFullControl "s3:x-amz-grant-full-control" Text Both,
        GrantRead "s3:x-amz-grant-read" Text Both,
        GrantReadAcp "s3:x-amz-grant-read-acp" Text Both,
        GrantWrite "s3:x-amz-grant-write" Text Both,
        GrantWriteAcp "s3:x-amz-grant-write-acp" Text Both,
        MetadataDirective "s3:x-amz-metadata-directive" Text Object,
        ObjectOwnership "s3:x-amz-object-ownership" Text Bucket,
        ServerSideEncryption "s3:x-amz-server-side-encryption" Text Object,
        KmsKeyId "s3:x-amz-server-side-encryption-aws-kms-key-id" Arn Object,
        CustomerAlgorithm "s3:x-amz-server-side-encryption-customer-algorithm" Text Object,
        StorageClass "s3:x-amz-storage-class" Text Object,
        WebsiteRedirect "s3:x-amz-website-redirect-location" Text Object,
    }
    tags {
        ExistingObjectTag "s3:ExistingObjectTag/",
        RequestObjectTag "s3:RequestObjectTag/",
    }
}

/// What follows the prefix, which is in any case; none where nothing follows.
fn after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    (head.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_any_case_and_written_in_one() {
        for key in PLAIN {
            let text = key.to_string();
            assert_eq!(Key::parse(&text).as_ref(), Some(key));
            assert_eq!(Key::parse(&text.to_uppercase()).as_ref(), Some(key));
            assert_eq!(Key::parse(&text.to_lowercase()).as_ref(), Some(key));
        }
        let tag = Key::parse("S3:existingobjecttag/Project").unwrap();
        assert_eq!(tag, Key::ExistingObjectTag("Project".to_owned()));
        assert_eq!(tag.to_string(), "s3:ExistingObjectTag/Project");
    }

    #[test]
    fn unknown_keys_are_none() {
        for text in [
            "",
            "aws:SourceVpc",
            "s3:ExistingObjectTag/",
            "SourceIp",
            "aws:SourceIp ",
        ] {
            assert_eq!(Key::parse(text), None, "{text}");
        }
    }
}
