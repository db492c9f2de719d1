//! Whom a request claims to be of: kept until the answer is known, to tell of signatures that were
//! refused.

use coffer_vault::SignInFailure;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Request, Uri};

use crate::http::percent::form_pairs;
use crate::signature::requirements::value_of;

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
pub fn claimed_access_key<B>(request: &Request<B>) -> Option<String> {
    match request.headers().get(AUTHORIZATION) {
        Some(authorization) => in_header(authorization),
        None => in_address(request.uri()),
    }
}

fn in_header(authorization: &HeaderValue) -> Option<String> {
    let text = authorization.to_str().ok()?;
    let id = match text.strip_prefix("AWS ") {
        Some(version_2) => version_2.split(':').next(),
        None => {
            // Looked for in each request; the usual one begins so.
            let usual = text.strip_prefix("AWS4-HMAC-SHA256 Credential=");
            let rest = usual.or_else(|| Some(text.split_once("Credential=")?.1));
            rest.unwrap_or("").split(['/', ',']).next()
        }
    };
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The one that the signature is checked by, whatever else the query names.
fn in_address(uri: &Uri) -> Option<String> {
    let query = form_pairs(uri.query()?)?;
    let name = match value_of(&query, "Signature") {
        Some(_) => "AWSAccessKeyId",
        None => "X-Amz-Credential",
    };
    let id = value_of(&query, name)?.split('/').next()?;
    Some(id.to_owned())
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
    use http::Request;

    use super::*;

    fn claim(uri: &str, authorization: Option<&str>) -> ClaimedKey {
        let mut request = Request::builder().uri(uri);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        ClaimedKey::of(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn ids_are_found_wherever_they_stand() {
        let version_4 = "AWS4-HMAC-SHA256 Credential=AK/20260101/r/s3/aws4_request, Signature=0";
        let cases = [
            ("/", Some(version_4), Some("AK")),
            ("/", Some("AWS AK:0"), Some("AK")),
            ("/", Some("Bearer x"), None),
            ("/?X-Amz-Credential=AK%2F20260101%2Fr", None, Some("AK")),
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
            ("/?list-type=2", None, None),
            ("/", None, None),
        ];
        for (uri, authorization, id) in cases {
            let claim = claim(uri, authorization);
            assert_eq!(claim.access_key_id().as_deref(), id, "{uri}");
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
