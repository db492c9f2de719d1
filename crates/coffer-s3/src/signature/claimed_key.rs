//! Whom a request claims to be of: kept until the answer is known, to tell of signatures that were
//! refused.

use coffer_vault::SignInFailure;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Request, Uri};

use crate::http::percent::form_pairs;
use crate::signature::requirements::{Authorization, value_of};

/// Where the access key's id stands. It is looked for only when the signature was refused.
#[derive(Debug)]
pub(crate) enum ClaimedKey {
    /// In the `Authorization` header.
    Header(HeaderValue),
    /// In the query, if anywhere.
    Address(Uri),
    /// In a field of a form.
    Form(Option<String>),
}

impl ClaimedKey {
    pub(crate) fn of(parts: &Parts) -> Self {
        match parts.headers.get(AUTHORIZATION) {
            Some(authorization) => Self::Header(authorization.clone()),
            None => Self::Address(parts.uri.clone()),
        }
    }

    /// The access key's id, as it was sent.
    pub(crate) fn access_key_id(&self) -> Option<String> {
        match self {
            Self::Header(authorization) => in_header(authorization),
            Self::Address(uri) => in_address(uri),
            Self::Form(id) => id.clone(),
        }
    }
}

/// The access key's id that a request claims to be signed by, as it was sent. It may be any text.
/// None where no signature is presented, which then would be checked before anything is done.
pub fn claimed_access_key<B>(request: &Request<B>) -> Option<String> {
    match request.headers().get(AUTHORIZATION) {
        Some(authorization) => in_header(authorization),
        None => in_address(request.uri()),
    }
}

/// The one that the signature is checked by, whatever else the header holds.
fn in_header(authorization: &HeaderValue) -> Option<String> {
    let said = Authorization::parse(authorization.to_str().ok()?).ok()?;
    id_of(said.credential)
}

/// The one that the signature is checked by, whatever else the query names. Without a signature
/// nothing is checked, and what is named counts for nothing.
fn in_address(uri: &Uri) -> Option<String> {
    let query = form_pairs(uri.query()?)?;
    let has = |name: &str| value_of(&query, name).is_some();
    if has("X-Amz-Signature") {
        return id_of(value_of(&query, "X-Amz-Credential")?);
    }
    let id = value_of(&query, "AWSAccessKeyId").filter(|_| has("Signature"))?;
    Some(id.to_owned())
}

/// The access key's id in a credential of version 4.
fn id_of(credential: &str) -> Option<String> {
    let id = credential.split('/').next()?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// Which failure to sign in an answer's code tells of, if any.
pub(crate) fn failure(code: &str, is_signed_in: bool, claim: &ClaimedKey) -> Option<SignInFailure> {
    match code {
        // Also of a chunk of a body whose request was signed in.
        "SignatureDoesNotMatch" => Some(SignInFailure::Signature),
        "InvalidAccessKeyId" => Some(SignInFailure::AccessKey),
        "RequestTimeTooSkewed" => Some(SignInFailure::Clock),
        "AccessDenied" if !is_signed_in => match claim.access_key_id() {
            Some(_) => Some(SignInFailure::Uncovered),
            None => Some(SignInFailure::Unsigned),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Request};

    use super::*;
    use crate::signature::requirements::{Form, check};

    fn claim(uri: &str, authorization: Option<&str>) -> ClaimedKey {
        let mut request = Request::builder().uri(uri);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        ClaimedKey::of(&request.body(()).unwrap().into_parts().0)
    }

    const VERSION_4: &str = "AWS4-HMAC-SHA256 Credential=AK/20260101/r/s3/aws4_request, \
                             SignedHeaders=host, Signature=0";

    #[test]
    fn ids_are_found_wherever_they_stand() {
        // What is passed over where the signature is checked.
        let other = VERSION_4.replace(" Cred", " A=Credential=B/2026,XCredential=B/2026,Cred");
        let twice = VERSION_4.replace(", Signed", ", Credential=B/2026, Signed");
        let cases = [
            ("/", Some(VERSION_4), Some("AK")),
            ("/", Some(&*other), Some("AK")),
            ("/", Some(&*twice), Some("AK")),
            (
                "/?X-Amz-Credential=AK%2F20260101%2Fr&X-Amz-Signature=",
                None,
                Some("AK"),
            ),
            ("/?AWSAccessKeyId=AK&Signature=0", None, Some("AK")),
            (
                "/?AWSAccessKeyId=B&X-Amz-Credential=AK%2F2026&X-Amz-Signature=0",
                None,
                Some("AK"),
            ),
            (
                "/?X-Amz-Credential=B%2F2026&AWSAccessKeyId=AK&Signature=0",
                None,
                Some("AK"),
            ),
            ("/?AWSAccessKeyId=AK/B&Signature=0", None, Some("AK/B")),
            ("/?list-type=2", None, None),
            ("/", None, None),
        ];
        for (uri, authorization, id) in cases {
            let claim = claim(uri, authorization);
            assert_eq!(claim.access_key_id().as_deref(), id, "{uri}");
        }
    }

    /// Else who signs nothing counts as another, or as as many as there are names.
    #[test]
    fn what_is_served_unsigned_claims_no_key() {
        let headers = [
            "Bearer Credential=AK/2026",
            "Basic QUs6eA==",
            "AWS AK:0",
            "aws4-hmac-sha256 Credential=AK/2026, SignedHeaders=host, Signature=0",
            "AWS4-ECDSA-P256-SHA256 Credential=AK/2026, SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256 Credential=AK/2026",
            "Credential=AK/2026",
        ];
        for header in headers {
            assert_eq!(claim("/", Some(header)).access_key_id(), None, "{header}");
        }
        let parts = [
            "X-Amz-Algorithm=AWS4-HMAC-SHA256",
            "X-Amz-Credential=AK%2F20260101%2Fus-east-1%2Fs3%2Faws4_request",
            "X-Amz-Date=20260101T000000Z",
            "X-Amz-SignedHeaders=host",
            "X-Amz-Expires=60",
            "X-Amz-Signature=0",
            "AWSAccessKeyId=AK",
            "Signature=0",
            "Expires=1",
        ];
        let no_headers = HeaderMap::new();
        for chosen in 0..1_u32 << parts.len() {
            let chosen = |(place, part): (usize, &&'static str)| {
                ((chosen >> place) & 1 == 1).then_some(*part)
            };
            let query: Vec<_> = parts.iter().enumerate().filter_map(chosen).collect();
            let query = query.join("&");
            let claimed = claim(&format!("/?{query}"), None).access_key_id();
            let checked = check(&query, &no_headers);
            let is_unsigned = checked.is_ok_and(|presented| presented.form == Form::Unsigned);
            assert_eq!(is_unsigned, matches!(&*query, "" | "Expires=1"), "{query}");
            assert!(!is_unsigned || claimed.is_none(), "{query}");
        }
    }

    #[test]
    fn only_refused_signatures_are_failures() {
        let unsigned = claim("/", None);
        let failure = |code, is_signed_in| failure(code, is_signed_in, &unsigned);
        assert_eq!(
            failure("AccessDenied", false),
            Some(SignInFailure::Unsigned)
        );
        assert_eq!(failure("AccessDenied", true), None);
        assert_eq!(failure("NoSuchKey", false), None);
        let chunk = failure("SignatureDoesNotMatch", true);
        assert_eq!(chunk, Some(SignInFailure::Signature));
    }
}
