//! Who signed the policy of a form.

use std::sync::Arc;

use coffer_vault::{Subject, Vault};
use s3s::{S3Result, s3_error};

use crate::errors::details::of_argument;
use crate::errors::mismatches::compared;
use crate::forms::fields::{Fields, missing};
use crate::parameters::customer_key::holds_a_key;
use crate::request::signed::{Signed, SignedForm};
use crate::signature::authenticate::no_access_key;
use crate::signature::requirements::does_not_match;
use crate::signature::signer::{DateTime, REQUEST, Scope, Signer};
use crate::signature::version_2;
use crate::signature::version_4::is_of_day;

/// Fields that a signature of version 4 takes, in the order in which they are looked for.
const VERSION_4: [&str; 4] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-signature",
];

/// Those of version 2, as AWS spells them.
const VERSION_2: [&str; 2] = ["AWSAccessKeyId", "signature"];

/// What a form presents as signature of its policy.
#[derive(Clone, Copy, Debug)]
enum Presented<'a> {
    Version4(Scope<'a>, DateTime<'a>),
    Version2 { access_key_id: &'a str },
}

impl Presented<'_> {
    /// The field that the signature itself stands in.
    fn signature(&self) -> &'static str {
        match self {
            Self::Version4(..) => VERSION_4[3],
            Self::Version2 { .. } => VERSION_2[1],
        }
    }
}

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
/// As S3: `InvalidArgument` where a field is missing or can't be read, and those of a wrong
/// signature.
pub(crate) fn subject(vault: &Vault, fields: &Fields) -> S3Result<Option<Arc<Subject>>> {
    let Some(presented) = presented(fields)? else {
        return Ok(None);
    };
    let id = match presented {
        Presented::Version4(scope, _) => scope.access_key_id,
        Presented::Version2 { access_key_id } => access_key_id,
    };
    let secret = vault.secret_access_key(id);
    let secret = secret.ok_or_else(|| no_access_key(vault, id))?;
    let policy = required(fields, "policy")?;
    let signature = required(fields, presented.signature())?;
    let is_right = match presented {
        Presented::Version4(scope, at) => {
            is_of_day(scope, at) && Signer::new(&secret, scope, at).is_of_policy(signature, policy)
        }
        Presented::Version2 { .. } => {
            version_2::is_signature(signature, &secret, policy.as_bytes())
        }
    };
    if !is_right {
        // A key that it has brought along may be among what its policy wants.
        let is_told = !fields.each().any(|(name, _)| holds_a_key(name));
        let policy = is_told.then_some(policy.as_bytes());
        return Err(compared(does_not_match(), (id, signature), policy, None));
    }
    let subject = vault.subject(id);
    subject.map(Some).ok_or_else(|| no_access_key(vault, id))
}

/// Reads the fields of a signature; none where there are none.
fn presented(fields: &Fields) -> S3Result<Option<Presented<'_>>> {
    let has = |name: &str| fields.get(&name.to_ascii_lowercase()).is_some();
    let has_any = |names: &[&str]| names.iter().any(|name| has(name));
    let (is_version_4, is_version_2) = (has_any(&VERSION_4), has_any(&VERSION_2));
    if !is_version_4 && !is_version_2 && !has("policy") {
        return Ok(None);
    }
    required(fields, "policy")?;
    // A credential goes before the id of an access key, as where it is claimed.
    if is_version_2 && !has("x-amz-credential") {
        for name in VERSION_2 {
            required(fields, name)?;
        }
        let access_key_id = required(fields, VERSION_2[0])?;
        return Ok(Some(Presented::Version2 { access_key_id }));
    }
    for name in VERSION_4 {
        required(fields, name)?;
    }
    let algorithm = required(fields, "x-amz-algorithm")?;
    if algorithm != REQUEST {
        let error = s3_error!(InvalidArgument, "Only {REQUEST} is supported");
        return Err(of_argument(error, "X-Amz-Algorithm", algorithm));
    }
    let date = required(fields, "x-amz-date")?;
    let at = DateTime::parse(date).ok_or_else(|| {
        let error = s3_error!(
            InvalidArgument,
            "X-Amz-Date must be formated via ISO8601 Long format"
        );
        of_argument(error, "X-Amz-Date", date)
    })?;
    let credential = required(fields, "x-amz-credential")?;
    let scope = Scope::parse(credential).map_err(|told| {
        let error = s3_error!(InvalidArgument, "{told}");
        of_argument(error, "x-amz-credential", credential)
    })?;
    Ok(Some(Presented::Version4(scope, at)))
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

fn required<'a>(fields: &'a Fields, name: &str) -> S3Result<&'a str> {
    let field = fields.get(&name.to_ascii_lowercase());
    field.ok_or_else(|| missing(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::details::taken;

    const WHOLE: [(&str, &str); 5] = [
        ("policy", "e30="),
        ("x-amz-algorithm", REQUEST),
        ("x-amz-credential", "AK/20260101/r/s3/aws4_request"),
        ("x-amz-date", "20260101T000000Z"),
        ("x-amz-signature", "0"),
    ];

    fn refused(pairs: &[(&str, &str)]) -> Option<(String, String)> {
        let fields = Fields::of(pairs);
        let error = presented(&fields).err()?;
        let mut headers = error.headers().cloned().unwrap_or_default();
        let told = taken(&mut headers).unwrap_or_default();
        Some((error.code().as_str().to_owned(), told))
    }

    #[test]
    fn a_field_that_is_missing_is_named() {
        let nothing = Fields::of(&[("key", "k")]);
        assert!(matches!(presented(&nothing), Ok(None)));
        let version_2 = [
            ("policy", "e30="),
            ("awsaccesskeyid", "AK"),
            ("signature", "0"),
        ];
        for whole in [&WHOLE[..], &version_2[..]] {
            assert!(refused(whole).is_none());
            for place in 0..whole.len() {
                let mut lacking = whole.to_vec();
                let (name, _) = lacking.remove(place);
                let name = VERSION_2
                    .iter()
                    .find(|known| known.eq_ignore_ascii_case(name))
                    .map_or(name, |known| *known);
                let told =
                    format!("<ArgumentName>{name}</ArgumentName><ArgumentValue></ArgumentValue>");
                assert_eq!(
                    refused(&lacking),
                    Some(("InvalidArgument".to_owned(), told))
                );
            }
        }
    }

    #[test]
    fn a_field_that_can_not_be_read_is_told() {
        for (place, value, name) in [
            (1, "other", "X-Amz-Algorithm"),
            (2, "malformed", "x-amz-credential"),
            (2, "AK/20260101/r/ec2/aws4_request", "x-amz-credential"),
            (3, "invalid", "X-Amz-Date"),
        ] {
            let mut wrong = WHOLE;
            wrong[place].1 = value;
            let told = format!(
                "<ArgumentName>{name}</ArgumentName><ArgumentValue>{value}</ArgumentValue>"
            );
            assert_eq!(refused(&wrong), Some(("InvalidArgument".to_owned(), told)));
        }
    }
}
