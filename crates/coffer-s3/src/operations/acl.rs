//! Access control lists of buckets and objects, and whose those are.

use coffer_vault::policy::{self, Acl};
use coffer_vault::version::{Absent, VersionId};
use coffer_vault::{AskedAcl, Vault, VaultError};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result};

use crate::errors::details::carried;
use crate::errors::{custom, marker_has_none};
use crate::parameters::acl::{asked, of_document, sent};
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

pub(crate) mod owners;

pub(crate) mod ownership;

const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// `GetBucketAcl`.
pub(crate) async fn bucket_acl(
    vault: &Vault,
    request: S3Request<GetBucketAclInput>,
) -> S3Result<S3Response<GetBucketAclOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let acl = vault.bucket_acl(&caller.subject, &bucket).await;
    let acl = acl.map_err(|error| caller.refused(error))?;
    let (owner, grants) = told(vault, &acl);
    Ok(S3Response::new(GetBucketAclOutput { grants, owner }))
}

/// `GetObjectAcl`.
pub(crate) async fn object_acl(
    vault: &Vault,
    request: S3Request<GetObjectAclInput>,
) -> S3Result<S3Response<GetObjectAclOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let acl = vault.object_acl(&caller.subject, &bucket, (&name, which));
    let acl = acl.await.map_err(|error| caller.refused(error))?;
    let (owner, grants) = told(vault, &acl.acl);
    let output = GetObjectAclOutput {
        grants,
        owner,
        ..Default::default()
    };
    Ok(S3Response::with_headers(output, of_version(acl.version)))
}

/// `PutBucketAcl`.
pub(crate) async fn put_bucket_acl(
    vault: &Vault,
    request: S3Request<PutBucketAclInput>,
) -> S3Result<S3Response<PutBucketAclOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let list = list(
        headers(&request),
        request.input.access_control_policy.clone(),
    )?;
    let bucket = names::bucket(&request.input.bucket)?;
    vault
        .set_bucket_acl(&caller.subject, &bucket, list)
        .await
        .map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(PutBucketAclOutput::default()))
}

/// `PutObjectAcl`.
pub(crate) async fn put_object_acl(
    vault: &Vault,
    request: S3Request<PutObjectAclInput>,
) -> S3Result<S3Response<PutObjectAclOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let list = list(
        headers(&request),
        request.input.access_control_policy.clone(),
    )?;
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let put = vault.set_object_acl(&caller.subject, &bucket, (&name, which), list);
    let version = put.await.map_err(|error| match error {
        VaultError::NoVersion(Absent::Deleted(marker)) => marker_has_none(marker),
        other => caller.refused(other),
    })?;
    let output = PutObjectAclOutput::default();
    Ok(S3Response::with_headers(output, of_version(version)))
}

/// Which version a list is of, for which s3s has no field.
fn of_version(version: Option<VersionId>) -> HeaderMap {
    let value = version.and_then(|version| HeaderValue::try_from(version.to_string()).ok());
    value.map(|value| (VERSION_ID, value)).into_iter().collect()
}

/// The list that a request asks for, in its headers or its body.
fn list(headers: &HeaderMap, document: Option<AccessControlPolicy>) -> S3Result<AskedAcl> {
    if document.is_some() && !sent(headers).is_empty() {
        return Err(custom(
            "UnexpectedContent",
            StatusCode::BAD_REQUEST,
            "This request does not support content.",
        ));
    }
    match (asked(headers)?, document) {
        (AskedAcl::None, Some(document)) => of_document(document),
        (AskedAcl::None, None) => {
            let error = custom(
                "MissingSecurityHeader",
                StatusCode::BAD_REQUEST,
                "Your request was missing a required header",
            );
            let missing = ("MissingHeaderName", "x-amz-acl".to_owned());
            Err(carried(error, &[missing]))
        }
        (list, _) => Ok(list),
    }
}

/// A list as it is told.
fn told(vault: &Vault, acl: &Acl) -> (Option<Owner>, Option<Vec<Grant>>) {
    let owner = acl.owner().map(|id| owners::told(vault, id.to_string()));
    let grants = acl.grants().iter().map(|grant| Grant {
        grantee: Some(grantee(vault, &grant.grantee)),
        permission: Some(Permission::from_static(grant.permission.name())),
    });
    (owner, Some(grants.collect()))
}

fn grantee(vault: &Vault, grantee: &policy::Grantee) -> Grantee {
    let (owner, uri, kind) = match grantee {
        policy::Grantee::Subject(id) => {
            let owner = owners::told(vault, id.to_string());
            (owner, None, Type::CANONICAL_USER)
        }
        policy::Grantee::Group(group) => (Owner::default(), Some(group.uri()), Type::GROUP),
    };
    Grantee {
        display_name: owner.display_name,
        email_address: None,
        id: owner.id,
        type_: Type::from_static(kind),
        uri: uri.map(str::to_owned),
    }
}
