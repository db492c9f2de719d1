//! Access control lists in headers. They are off, as in a new bucket of AWS: what gives full
//! control to the owner alone is taken, for so it is, and anything else refused.

use coffer_vault::SharingError;
use coffer_vault::policy::{AclRefusal, CannedAcl};
use http::HeaderMap;
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::from_vault;

const GRANTS: [&str; 5] = [
    "x-amz-grant-full-control",
    "x-amz-grant-read",
    "x-amz-grant-read-acp",
    "x-amz-grant-write",
    "x-amz-grant-write-acp",
];

/// Refuses lists that give anything to others than the owner.
///
/// # Errors
/// As S3: `AccessControlListNotSupported`, and `InvalidBucketAclWithObjectOwnership` for a bucket
/// that is to be made; `InvalidArgument`, `InvalidRequest` for what is no list.
pub(crate) fn check_headers(operation: &str, headers: &HeaderMap) -> S3Result {
    let has_grants = GRANTS.iter().any(|name| headers.contains_key(*name));
    let canned = match headers.get("x-amz-acl") {
        None => None,
        Some(value) if value.is_empty() => None,
        Some(value) => {
            let known = value.to_str().ok().and_then(CannedAcl::from_name);
            Some(known.ok_or_else(|| s3_error!(InvalidArgument, "x-amz-acl names no canned ACL"))?)
        }
    };
    if canned.is_some() && has_grants {
        return Err(s3_error!(
            InvalidRequest,
            "Specifying both Canned ACLs and Header Grants is not allowed"
        ));
    }
    let is_of_new = operation == "CreateBucket";
    let is_owners = match canned {
        None => !has_grants,
        Some(CannedAcl::Private) => true,
        Some(CannedAcl::BucketOwnerFullControl) => !is_of_new,
        Some(_) => false,
    };
    if is_owners {
        Ok(())
    } else if is_of_new {
        Err(refused(AclRefusal::WithOwnership))
    } else {
        Err(not_supported())
    }
}

/// `AccessControlListNotSupported`.
pub(crate) fn not_supported() -> S3Error {
    refused(AclRefusal::NotSupported)
}

fn refused(refusal: AclRefusal) -> S3Error {
    from_vault(SharingError::Acl(refusal).into())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn code(operation: &str, pairs: &[(&'static str, &'static str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_static(name);
            headers.insert(name, HeaderValue::from_static(value));
        }
        let refusal = check_headers(operation, &headers).err();
        refusal.map(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn lists_of_the_owner_alone_are_taken() {
        let acl = |value| [("x-amz-acl", value)];
        for operation in ["PutObject", "CreateBucket", "PutBucketAcl"] {
            assert_eq!(code(operation, &[]), None);
            assert_eq!(code(operation, &acl("private")), None);
            let nonsense = code(operation, &acl("nonsense"));
            assert_eq!(nonsense.as_deref(), Some("InvalidArgument"));
        }
        assert_eq!(code("PutObject", &acl("bucket-owner-full-control")), None);
        let not_supported = Some("AccessControlListNotSupported");
        assert_eq!(
            code("PutObject", &acl("public-read")).as_deref(),
            not_supported
        );
        let of_new = code("CreateBucket", &acl("public-read"));
        assert_eq!(
            of_new.as_deref(),
            Some("InvalidBucketAclWithObjectOwnership")
        );
    }

    #[test]
    fn grants_in_headers_are_refused() {
        for name in GRANTS {
            let refused = code("PutObject", &[(name, "id=x")]);
            assert_eq!(
                refused.as_deref(),
                Some("AccessControlListNotSupported"),
                "{name}"
            );
        }
        let both = [("x-amz-acl", "private"), ("x-amz-grant-read", "id=x")];
        assert_eq!(code("PutObject", &both).as_deref(), Some("InvalidRequest"));
    }
}
