//! The default encryption of a bucket: set, read, put back.

use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::BucketConfiguration::Encryption;
use coffer_vault::{BucketEncryption, BucketName, Vault};
use s3s::dto::{
    DeleteBucketEncryptionInput, DeleteBucketEncryptionOutput, GetBucketEncryptionInput,
    GetBucketEncryptionOutput, PutBucketEncryptionInput, PutBucketEncryptionOutput,
    ServerSideEncryption, ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration,
    ServerSideEncryptionRule,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::around_s3s::finish_response::BeforeEnd;
use crate::around_s3s::xml_bodies::{BLOCKED_TYPES as BLOCKED, CanonicalXml};
use crate::errors::{from_vault, not_implemented};
use crate::operations::buckets::bucket_info;
use crate::parameters::encryption;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetBucketEncryption`: what was set, or else `aws:kms` by the bucket's level.
pub(crate) async fn bucket_encryption(
    vault: &Vault,
    request: S3Request<GetBucketEncryptionInput>,
) -> S3Result<S3Response<GetBucketEncryptionOutput>> {
    let caller = Caller::of(&request)?;
    let info = bucket_info(vault, &caller, &request.input.bucket).await?;
    let found = found(vault, &caller, &info.name).await?;
    let algorithm = if found.aes256 {
        ServerSideEncryption::AES256
    } else {
        ServerSideEncryption::AWS_KMS
    };
    let by_default = ServerSideEncryptionByDefault {
        kms_master_key_id: (!found.aes256).then_some(info.level),
        sse_algorithm: ServerSideEncryption::from_static(algorithm),
    };
    let rule = ServerSideEncryptionRule {
        apply_server_side_encryption_by_default: Some(by_default),
        bucket_key_enabled: Some(found.bucket_key),
    };
    let configuration = ServerSideEncryptionConfiguration { rules: vec![rule] };
    let mut response = S3Response::new(GetBucketEncryptionOutput {
        server_side_encryption_configuration: Some(configuration),
    });
    response.extensions.insert(BeforeEnd {
        end: "</Rule>",
        xml: blocked_types(found),
    });
    Ok(response)
}

/// `PutBucketEncryption`.
pub(crate) async fn put_bucket_encryption(
    vault: &Vault,
    request: S3Request<PutBucketEncryptionInput>,
) -> S3Result<S3Response<PutBucketEncryptionOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let info = bucket_info(vault, &caller, &request.input.bucket).await?;
    let document = request.extensions.get::<Arc<CanonicalXml>>();
    let document = document.map_or_else(Bytes::new, |document| document.text.clone());
    let rules = request.input.server_side_encryption_configuration.rules;
    let [rule] = rules.as_slice() else {
        return Err(s3_error!(
            MalformedXML,
            "An encryption configuration has one rule"
        ));
    };
    if is_empty(rule, &document) {
        return Err(s3_error!(MalformedXML, "A rule sets something"));
    }
    let wanted = BucketEncryption {
        aes256: is_aes256(rule, &info.level)?,
        bucket_key: rule.bucket_key_enabled.unwrap_or(false),
        customer_keys: allows_customer_keys(&document)?,
    };
    set(vault, &caller, &info.name, wanted).await?;
    Ok(S3Response::new(PutBucketEncryptionOutput::default()))
}

/// `DeleteBucketEncryption`: puts back what holds where none was set.
pub(crate) async fn delete_bucket_encryption(
    vault: &Vault,
    request: S3Request<DeleteBucketEncryptionInput>,
) -> S3Result<S3Response<DeleteBucketEncryptionOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    set(vault, &caller, &bucket, BucketEncryption::default()).await?;
    Ok(S3Response::new(DeleteBucketEncryptionOutput::default()))
}

/// Which encryption a bucket takes no objects of, for which s3s has no fields.
fn blocked_types(encryption: BucketEncryption) -> String {
    let blocked = if encryption.customer_keys {
        "NONE"
    } else {
        "SSE-C"
    };
    format!("<{BLOCKED}><EncryptionType>{blocked}</EncryptionType></{BLOCKED}>")
}

/// Whether a configuration lets clients bring keys along, which takes `NONE`: what says nothing of
/// it blocks them, as on AWS since April 2026.
fn allows_customer_keys(document: &[u8]) -> S3Result<bool> {
    let malformed = || s3_error!(MalformedXML, "EncryptionType is SSE-C or NONE");
    let text = std::str::from_utf8(document).map_err(|_| malformed())?;
    let Some((_, rest)) = text.split_once(&format!("<{BLOCKED}>")) else {
        return Ok(false);
    };
    let (blocked, _) = rest
        .split_once(&format!("</{BLOCKED}>"))
        .ok_or_else(malformed)?;
    match blocked.trim() {
        "<EncryptionType>NONE</EncryptionType>" => Ok(true),
        "<EncryptionType>SSE-C</EncryptionType>" | "" => Ok(false),
        _ => Err(malformed()),
    }
}

/// Whether a rule says nothing. It would put back what is set.
fn is_empty(rule: &ServerSideEncryptionRule, document: &[u8]) -> bool {
    let text = std::str::from_utf8(document).unwrap_or("");
    rule.apply_server_side_encryption_by_default.is_none()
        && rule.bucket_key_enabled.is_none()
        && !text.contains(&format!("<{BLOCKED}>"))
}

fn is_aes256(rule: &ServerSideEncryptionRule, level: &str) -> S3Result<bool> {
    let Some(by_default) = &rule.apply_server_side_encryption_by_default else {
        return Ok(false);
    };
    match by_default.sse_algorithm.as_str() {
        ServerSideEncryption::AES256 if by_default.kms_master_key_id.is_none() => Ok(true),
        ServerSideEncryption::AES256 => Err(s3_error!(
            InvalidArgument,
            "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms"
        )),
        ServerSideEncryption::AWS_KMS => {
            let named = by_default.kms_master_key_id.as_deref();
            named.map_or(Ok(()), |named| encryption::check_key(named, level))?;
            Ok(false)
        }
        ServerSideEncryption::AWS_KMS_DSSE => {
            Err(not_implemented("Encryption in two layers (aws:kms:dsse)"))
        }
        _ => Err(s3_error!(MalformedXML, "SSEAlgorithm is AES256 or aws:kms")),
    }
}

async fn found(vault: &Vault, caller: &Caller, bucket: &BucketName) -> S3Result<BucketEncryption> {
    let read = vault.bucket_configuration(&caller.subject, bucket, Encryption);
    let document = read.await.map_err(|error| caller.refused(error))?;
    BucketEncryption::of_document(document.as_deref()).map_err(from_vault)
}

/// What is so already is not set again: programs that always set `aws:kms` may not be allowed to
/// change it.
async fn set(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
    wanted: BucketEncryption,
) -> S3Result {
    if found(vault, caller, bucket).await? == wanted {
        return Ok(());
    }
    vault
        .set_bucket_configuration(&caller.subject, bucket, Encryption, wanted.to_document())
        .await
        .map_err(|error| caller.refused(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_clients_are_blocked_unless_none_is() {
        let of = |inner: &str| {
            let document = format!("<Rule><{BLOCKED}>{inner}</{BLOCKED}></Rule>");
            allows_customer_keys(document.as_bytes()).ok()
        };
        assert_eq!(allows_customer_keys(b"<Rule></Rule>").ok(), Some(false));
        assert_eq!(of("<EncryptionType>NONE</EncryptionType>"), Some(true));
        assert_eq!(of("<EncryptionType>SSE-C</EncryptionType>"), Some(false));
        assert_eq!(of(""), Some(false));
        assert_eq!(of("<EncryptionType>SSE-KMS</EncryptionType>"), None);
    }
}
