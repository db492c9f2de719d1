//! Who signed a request, and how its body is to be checked.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use coffer_vault::{Subject, Vault};
use http::request::Parts;
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::details;
use crate::http::hosts::Domains;
use crate::limits::ECHO_MAX_BYTES;
use crate::signature::payload::Payload;
use crate::signature::requirements::{Form, Presented};
use crate::signature::signer::{DateTime, LastSigningKey, Scope};
use crate::signature::version_2;
use crate::signature::version_4;

/// The subject whose access key signed a request rightly, and what it signed of the body; `None`
/// for a request that is not signed.
pub(crate) fn authenticate(
    vault: &Vault,
    domains: &Domains,
    last_key: &LastSigningKey,
    head: &Parts,
    presented: &Presented<'_>,
) -> S3Result<Option<(Arc<Subject>, Payload)>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = i64::try_from(now.map_or(0, |since| since.as_secs())).unwrap_or(i64::MAX);
    let mut signer = String::new();
    let mut secret = |id: &str| {
        id.clone_into(&mut signer);
        let secret = vault.secret_access_key(id);
        secret.ok_or_else(|| no_access_key(vault, id))
    };
    let mut signed_by = |scope: Scope<'_>, at: DateTime<'_>| {
        let secret = secret(scope.access_key_id)?;
        Ok(last_key.signer(secret, scope, at))
    };
    let query = &presented.query;
    let payload = match &presented.form {
        Form::Unsigned => return Ok(None),
        Form::Header(said) => version_4::check_header(*said, head, query, now, &mut signed_by)?,
        Form::Presigned => version_4::check_presigned(head, query, now, &mut signed_by)?,
        Form::PresignedVersion2 => {
            version_2::check_presigned(head, query, domains, now, &mut secret)?;
            Payload::Unsigned
        }
    };
    let subject = vault.subject(&signer);
    let subject = subject.ok_or_else(|| no_access_key(vault, &signer))?;
    Ok(Some((subject, payload)))
}

pub(crate) fn no_access_key(vault: &Vault, id: &str) -> S3Error {
    if vault.is_access_key_in_doubt(id) {
        return s3_error!(
            ServiceUnavailable,
            "The server's disk failed when this access key was changed: it is out of use until it \
             is known whether that has happened. Please try again."
        );
    }
    let error = s3_error!(
        InvalidAccessKeyId,
        "The AWS Access Key Id you provided does not exist in our records."
    );
    let sent = (id.len() <= ECHO_MAX_BYTES).then(|| ("AWSAccessKeyId", id.to_owned()));
    details::with(error, sent.into_iter().collect())
}
