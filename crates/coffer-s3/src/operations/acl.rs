//! Access control lists, which are off: buckets and objects belong to the bucket's owner, who has
//! full control, and no list gives any to others.

use coffer_vault::{BucketName, Vault};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::errors::{custom, not_implemented};
use crate::parameters::acl::not_supported;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetBucketAcl`.
pub(crate) async fn bucket_acl(
    vault: &Vault,
    request: S3Request<GetBucketAclInput>,
) -> S3Result<S3Response<GetBucketAclOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let owner = owner(vault, &caller, &bucket)?;
    Ok(S3Response::new(GetBucketAclOutput {
        grants: Some(vec![full_control(owner.clone())]),
        owner: Some(owner),
    }))
}

/// `GetObjectAcl`.
pub(crate) async fn object_acl(
    vault: &Vault,
    request: S3Request<GetObjectAclInput>,
) -> S3Result<S3Response<GetObjectAclOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let (bucket, version) = (names::bucket(&input.bucket)?, input.version_id.as_deref());
    find(vault, &caller, &bucket, (input.key, version)).await?;
    let owner = owner(vault, &caller, &bucket)?;
    Ok(S3Response::new(GetObjectAclOutput {
        grants: Some(vec![full_control(owner.clone())]),
        owner: Some(owner),
        ..Default::default()
    }))
}

/// `PutBucketAcl`: of the list that there is.
pub(crate) async fn put_bucket_acl(
    vault: &Vault,
    request: S3Request<PutBucketAclInput>,
) -> S3Result<S3Response<PutBucketAclOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    vault
        .check_may_share(&caller.subject, &bucket)
        .map_err(|error| caller.refused(error))?;
    let owner = owner(vault, &caller, &bucket)?;
    check_list(input.acl.is_some(), input.access_control_policy, &owner)?;
    Ok(S3Response::new(PutBucketAclOutput::default()))
}

/// `PutObjectAcl`: of the list that there is.
pub(crate) async fn put_object_acl(
    vault: &Vault,
    request: S3Request<PutObjectAclInput>,
) -> S3Result<S3Response<PutObjectAclOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let input = request.input;
    let (bucket, version) = (names::bucket(&input.bucket)?, input.version_id.as_deref());
    vault
        .check_may_write(&caller.subject, &bucket)
        .map_err(|error| caller.refused(error))?;
    let owner = owner(vault, &caller, &bucket)?;
    check_list(input.acl.is_some(), input.access_control_policy, &owner)?;
    find(vault, &caller, &bucket, (input.key, version)).await?;
    Ok(S3Response::new(PutObjectAclOutput::default()))
}

/// `GetBucketOwnershipControls`: as in a new bucket since April 2023.
pub(crate) async fn ownership_controls(
    vault: &Vault,
    request: S3Request<GetBucketOwnershipControlsInput>,
) -> S3Result<S3Response<GetBucketOwnershipControlsOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    owner(vault, &caller, &bucket)?;
    let enforced = ObjectOwnership::from_static(ObjectOwnership::BUCKET_OWNER_ENFORCED);
    Ok(S3Response::new(GetBucketOwnershipControlsOutput {
        ownership_controls: Some(OwnershipControls {
            rules: vec![OwnershipControlsRule {
                object_ownership: enforced,
            }],
        }),
    }))
}

/// `PutBucketOwnershipControls`: of those that there are.
pub(crate) async fn put_ownership_controls(
    vault: &Vault,
    request: S3Request<PutBucketOwnershipControlsInput>,
) -> S3Result<S3Response<PutBucketOwnershipControlsOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    vault
        .check_may_share(&caller.subject, &bucket)
        .map_err(|error| caller.refused(error))?;
    let [rule] = request.input.ownership_controls.rules.as_slice() else {
        return Err(s3_error!(MalformedXML, "Ownership controls have one rule"));
    };
    match rule.object_ownership.as_str() {
        ObjectOwnership::BUCKET_OWNER_ENFORCED => Ok(S3Response::new(Default::default())),
        ObjectOwnership::BUCKET_OWNER_PREFERRED | ObjectOwnership::OBJECT_WRITER => {
            Err(not_implemented("Object ownership by ACL"))
        }
        _ => Err(s3_error!(MalformedXML, "The rule names no ownership")),
    }
}

/// Sees that an object is there.
async fn find(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
    (key, version): (String, Option<&str>),
) -> S3Result {
    let (name, which) = (names::object(key)?, names::which(version)?);
    // Not a HEAD, which may take a client's key.
    let found = vault.object_parts(&caller.subject, bucket, (&name, which), 0, 0);
    found.await.map_err(|error| caller.refused(error))?;
    Ok(())
}

/// Whose a bucket and its objects are, to those who may know of it.
fn owner(vault: &Vault, caller: &Caller, bucket: &BucketName) -> S3Result<Owner> {
    let owner = vault.bucket_owner(&caller.subject, bucket);
    let id = owner.map_err(|error| caller.refused(error))?;
    Ok(Owner {
        display_name: Some(vault.account_id().to_string()),
        id: Some(id),
    })
}

fn full_control(owner: Owner) -> Grant {
    let Owner { display_name, id } = owner;
    let grantee = Grantee {
        display_name,
        email_address: None,
        id,
        type_: Type::from_static(Type::CANONICAL_USER),
        uri: None,
    };
    Grant {
        grantee: Some(grantee),
        permission: Some(Permission::from_static(Permission::FULL_CONTROL)),
    }
}

/// Refuses a list that gives anything to others. What stands in headers was looked at before.
fn check_list(is_canned: bool, policy: Option<AccessControlPolicy>, owner: &Owner) -> S3Result {
    let grants = match policy {
        Some(policy) => policy.grants.unwrap_or_default(),
        None if is_canned => return Ok(()),
        None => {
            return Err(custom(
                "MissingSecurityHeader",
                http::StatusCode::BAD_REQUEST,
                "Your request was missing a required header: x-amz-acl",
            ));
        }
    };
    let is_owner = |grant: &Grant| {
        let grantee = grant.grantee.as_ref();
        grantee.is_some_and(|grantee| grantee.id.is_some() && grantee.id == owner.id)
    };
    let is_full = |grant: &Grant| {
        let permission = grant.permission.as_ref();
        permission.is_some_and(|given| given.as_str() == Permission::FULL_CONTROL)
    };
    if grants.iter().all(is_owner) && grants.iter().any(is_full) {
        return Ok(());
    }
    Err(not_supported())
}
