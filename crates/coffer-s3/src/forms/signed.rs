//! Who signed the policy of a form.

use std::sync::Arc;

use coffer_vault::{Subject, Vault};
use s3s::{S3Result, s3_error};

use crate::forms::fields::Fields;
use crate::request::signed::{Signed, SignedForm};
use crate::signature::authenticate::no_access_key;
use crate::signature::requirements::does_not_match;
use crate::signature::signer::{DateTime, REQUEST, Scope, Signer};
use crate::signature::version_2;
use crate::signature::version_4::is_of_day;

/// Fields that a signature stands in.
const SIGNATURES: [&str; 2] = ["signature", "x-amz-signature"];

/// The access key's id that a form claims to be signed by, if it names one.
pub(crate) fn claimed(fields: &Fields) -> Option<&str> {
    match fields.get("x-amz-credential") {
        Some(credential) => credential.split('/').next(),
        None => fields.get("awsaccesskeyid"),
    }
}

/// The subject whose access key signed the policy rightly, by version 4 or, as SDKs still do by
/// default, by version 2; none where there is neither a policy nor anything of a signature: then
/// it is a form of who signs nothing.
///
/// # Errors
/// As S3: `AccessDenied` where there is a policy or a signature alone, and those of a wrong
/// signature.
pub(crate) fn subject(vault: &Vault, fields: &Fields) -> S3Result<Option<Arc<Subject>>> {
    let (id, policy) = match (claimed(fields), fields.get("policy")) {
        (Some(id), Some(policy)) => (id, policy),
        (None, None) if !SIGNATURES.iter().any(|name| fields.get(name).is_some()) => {
            return Ok(None);
        }
        _ => {
            return Err(s3_error!(
                AccessDenied,
                "A form needs a policy, and its signature"
            ));
        }
    };
    let secret = vault.secret_access_key(id);
    let secret = secret.ok_or_else(|| no_access_key(vault, id))?;
    let is_right = match fields.get("x-amz-credential") {
        Some(credential) => is_signed(credential, &secret, policy, fields)?,
        None => {
            let signature = required(fields, "signature")?;
            version_2::is_signature(signature, &secret, policy.as_bytes())
        }
    };
    if !is_right {
        return Err(does_not_match());
    }
    let subject = vault.subject(id);
    subject.map(Some).ok_or_else(|| no_access_key(vault, id))
}

/// How a form is signed, as policies ask for it.
pub(crate) fn as_signed(fields: &Fields) -> Signed {
    let form = match fields.get("x-amz-credential") {
        Some(_) => SignedForm::Form,
        None => SignedForm::FormVersion2,
    };
    let date = fields.get("x-amz-date").and_then(DateTime::parse);
    Signed {
        form,
        at_seconds: date.map(|date| date.unix_seconds),
        content_sha256: None,
    }
}

fn is_signed(credential: &str, secret: &str, policy: &str, fields: &Fields) -> S3Result<bool> {
    if required(fields, "x-amz-algorithm")? != REQUEST {
        return Err(s3_error!(
            InvalidRequest,
            "x-amz-algorithm of a form is {REQUEST}"
        ));
    }
    let scope = Scope::parse(credential)
        .map_err(|told| s3_error!(AuthorizationHeaderMalformed, "x-amz-credential: {told}"))?;
    let at = DateTime::parse(required(fields, "x-amz-date")?);
    let at = at.ok_or_else(|| s3_error!(InvalidRequest, "x-amz-date is no date"))?;
    if !is_of_day(scope, at) {
        return Ok(false);
    }
    let signature = required(fields, "x-amz-signature")?;
    Ok(Signer::new(secret, scope, at).is_of_policy(signature, policy))
}

fn required<'a>(fields: &'a Fields, name: &str) -> S3Result<&'a str> {
    fields
        .get(name)
        .ok_or_else(|| s3_error!(InvalidRequest, "The form has no field {name}"))
}
