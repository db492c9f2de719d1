//! What S3 requires of a signature besides that it is right.
//!
//! S3 wants `host` and every `x-amz-` header signed, and so must our own `x-coffer-` ones be: with
//! a presigned URL that does not cover them, a client could add `x-amz-copy-source` and read any
//! object as the signer.
//!
//! Requests signed by version 2 in headers are refused, for no client of today makes them. URLs
//! that are presigned by it are another matter (`version_2`), and so are HTML forms (`forms`).

use http::{HeaderMap, HeaderValue, header};
use s3s::region::Region;
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::{details, mismatches};
use crate::http::number;
use crate::http::percent::form_pairs;
use crate::limits::PRESIGNED_MAX_SECONDS;
use crate::signature::signer::REQUEST;

/// Not covered by every signature: the payload's hash is part of what is signed in any case, and
/// content delivery networks add the other.
const UNSIGNED_HEADERS: [&str; 2] = ["x-amz-content-sha256", "x-amz-cf-id"];

/// What our own headers begin with.
const OWN: &str = "x-coffer-";

/// What a query has that signs by version 4, besides its signature.
const PRESIGNED: [&str; 5] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-SignedHeaders",
    "X-Amz-Expires",
];

/// What this server calls its region, where a client wants to know.
pub(crate) const REGION: &str = "us-east-1";

/// The parameters of a query, decoded.
pub(crate) type Pairs = Vec<(String, String)>;

/// Where a request has its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form<'a> {
    /// Nowhere: it is refused once the operation is known.
    Unsigned,
    /// In the `Authorization` header, which says this.
    Header(Authorization<'a>),
    /// In the query.
    Presigned,
    /// In the query, by version 2.
    PresignedVersion2,
}

/// The signature that a request presents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Presented<'a> {
    pub(crate) form: Form<'a>,
    pub(crate) query: Pairs,
}

/// The first value of a parameter.
pub(crate) fn value_of<'a>(query: &'a Pairs, name: &str) -> Option<&'a str> {
    let pair = query.iter().find(|(key, _)| key == name);
    pair.map(|(_, value)| value.as_str())
}

/// Finds the signature of a request, and refuses one that does not cover what it must.
pub(crate) fn check<'a>(query: &str, headers: &'a HeaderMap) -> S3Result<Presented<'a>> {
    let query = form_pairs(query).ok_or_else(|| {
        s3_error!(
            InvalidURI,
            "The query of the address is not percent-encoded UTF-8"
        )
    })?;
    let of_query = |name: &str| value_of(&query, name);
    let form = match (
        authorization(headers)?,
        of_query("X-Amz-Signature"),
        of_query("Signature"),
    ) {
        (None, None, None) => {
            refuse_parts(&query)?;
            Form::Unsigned
        }
        (Some(value), None, None) => {
            let said = Authorization::parse(value.to_str().unwrap_or(""))?;
            check_region(said.credential)?;
            covers(said.signed_headers, headers)?;
            Form::Header(said)
        }
        (None, Some(_), None) => {
            if PRESIGNED.iter().any(|name| of_query(name).is_none()) {
                return Err(lacks_parameters());
            }
            check_region(of_query("X-Amz-Credential").unwrap_or(""))?;
            check_life(of_query("X-Amz-Expires").unwrap_or(""))?;
            covers(of_query("X-Amz-SignedHeaders").unwrap_or(""), headers)?;
            Form::Presigned
        }
        (None, None, Some(_)) => Form::PresignedVersion2,
        _ => return Err(two_signatures()),
    };
    Ok(Presented { form, query })
}

/// The signature is not that of the request.
pub(crate) fn does_not_match() -> S3Error {
    s3_error!(
        SignatureDoesNotMatch,
        "The request signature we calculated does not match the signature you provided. Check \
         your key and signing method."
    )
}

/// A query that signs by version 4 lacks a parameter.
pub(crate) fn lacks_parameters() -> S3Error {
    s3_error!(
        AuthorizationQueryParametersError,
        "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, \
         X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters."
    )
}

/// What stands in the `Authorization` header is none.
pub(crate) fn malformed(what: &str) -> S3Error {
    s3_error!(
        AuthorizationHeaderMalformed,
        "The authorization header is malformed; {what}"
    )
}

/// What an `Authorization` header of version 4 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Authorization<'a> {
    pub(crate) credential: &'a str,
    pub(crate) signed_headers: &'a str,
    pub(crate) signature: &'a str,
}

impl<'a> Authorization<'a> {
    /// Reads it, or refuses what is none, as S3 does before it looks at any of its parts.
    pub(crate) fn parse(text: &'a str) -> S3Result<Self> {
        const NAMES: [&str; 3] = ["Credential", "SignedHeaders", "Signature"];
        let Some(text) = text.strip_prefix(REQUEST) else {
            return Err(mismatches::no_scheme(text));
        };
        let (mut found, mut wrong, mut count) = ([None; 3], None, 0);
        for component in text.split(',').map(str::trim_start) {
            count += 1;
            let Some((name, value)) = component.split_once('=') else {
                wrong = wrong.or(Some(component.trim_end()));
                continue;
            };
            if let Some(place) = NAMES.iter().position(|known| *known == name) {
                found[place].get_or_insert(value);
            }
        }
        if count < NAMES.len() {
            return Err(malformed(
                "the authorization header requires three components: Credential, SignedHeaders, \
                 and Signature.",
            ));
        }
        if let Some(wrong) = wrong {
            let what = format!("the authorization component \"{wrong}\" is malformed.");
            return Err(malformed(&what));
        }
        let value = |place: usize| {
            found[place].ok_or_else(|| malformed(&format!("missing {}.", NAMES[place])))
        };
        Ok(Self {
            credential: value(0)?,
            signed_headers: value(1)?,
            signature: value(2)?,
        })
    }
}

/// Refuses parts of a signature without it: they name an access key that nothing vouches for.
fn refuse_parts(query: &Pairs) -> S3Result {
    let has = |name: &str| value_of(query, name).is_some();
    if PRESIGNED.into_iter().any(has) {
        return Err(lacks_parameters());
    }
    if has("AWSAccessKeyId") {
        return Err(s3_error!(
            AccessDenied,
            "Query-string authentication requires the Signature, Expires and AWSAccessKeyId \
             parameters"
        ));
    }
    Ok(())
}

fn two_signatures() -> S3Error {
    s3_error!(
        InvalidArgument,
        "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, the Signature \
         query parameter or the Authorization header should be specified"
    )
}

/// The `Authorization` header, if there is one.
fn authorization(headers: &HeaderMap) -> S3Result<Option<&HeaderValue>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(s3_error!(
            InvalidRequest,
            "There may be only one Authorization header"
        ));
    }
    let scheme = value.as_bytes().get(..4);
    if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"AWS ")) {
        return Err(s3_error!(
            InvalidRequest,
            "The authorization mechanism you have provided is not supported. Please use \
             AWS4-HMAC-SHA256."
        ));
    }
    Ok(Some(value))
}

/// How long a presigned URL is good for; what is no number is refused with the signature.
fn check_life(seconds: &str) -> S3Result {
    match number::<u64>(seconds) {
        Some(seconds) if seconds > PRESIGNED_MAX_SECONDS => Err(s3_error!(
            AuthorizationQueryParametersError,
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires \
             must be less than 604800 seconds"
        )),
        _ => Ok(()),
    }
}

/// Any region will do that is spelled like one. S3 answers a wrong region so, and names the right
/// one; s3cmd signs for `US` at first and relies on it.
fn check_region(credential: &str) -> S3Result {
    let region = credential.split('/').nth(2).unwrap_or("");
    if matches!(region, "" | REGION) || Region::new(region.into()).is_ok() {
        return Ok(());
    }
    Err(s3_error!(
        AuthorizationHeaderMalformed,
        "The authorization header is malformed; the region '{region}' is wrong; expecting \
         '{REGION}'"
    ))
}

fn covers(signed: &str, headers: &HeaderMap) -> S3Result {
    let is_signed = |name: &str| signed.split(';').any(|signed| signed == name);
    if !is_signed("host") && headers.contains_key(header::HOST) {
        return Err(s3_error!(
            AccessDenied,
            "'Host' must be a 'SignedHeader' in the AWS Authorization."
        ));
    }
    let has_meaning = |name: &str| name.starts_with("x-amz-") || name.starts_with(OWN);
    let is_exempt = |name: &str| !has_meaning(name) || UNSIGNED_HEADERS.contains(&name);
    let names = headers.keys().map(|name| name.as_str());
    let unsigned: Vec<_> = names
        .filter(|name| !is_exempt(name) && !is_signed(name))
        .collect();
    refuse_unsigned(&unsigned)
}

/// Refuses our own headers with a URL presigned by version 2, which signs `x-amz-` headers and no
/// others.
pub(crate) fn refuse_own_headers(headers: &HeaderMap) -> S3Result {
    let names = headers.keys().map(|name| name.as_str());
    let own: Vec<_> = names.filter(|name| name.starts_with(OWN)).collect();
    refuse_unsigned(&own)
}

fn refuse_unsigned(unsigned: &[&str]) -> S3Result {
    if unsigned.is_empty() {
        return Ok(());
    }
    let error = s3_error!(
        AccessDenied,
        "There were headers present in the request which were not signed"
    );
    let unsigned = vec![("HeadersNotSigned", unsigned.join(", "))];
    Err(details::with(error, unsigned))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn code(query: &str, pairs: &[(&'static str, &str)]) -> Option<String> {
        let header = |(name, value): &(&'static str, &str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        let headers = pairs.iter().map(header).collect();
        check(query, &headers)
            .err()
            .map(|error| error.code().as_str().to_owned())
    }

    const SIGNED: &str = concat!(
        "AWS4-HMAC-SHA256 Credential=A/20260101/r/s3/aws4_request, ",
        "SignedHeaders=host;x-amz-date, Signature=0"
    );

    #[test]
    fn every_amz_header_must_be_signed() {
        let signed = ("authorization", SIGNED);
        let host = ("host", "h");
        assert_eq!(code("", &[signed, host, ("x-amz-date", "d")]), None);
        assert_eq!(
            code("", &[signed, host, ("x-amz-content-sha256", "e")]),
            None
        );
        let denied = Some("AccessDenied".to_owned());
        assert_eq!(
            code("", &[signed, host, ("x-amz-copy-source", "b/k")]),
            denied
        );
        assert_eq!(code("", &[signed, host, ("x-coffer-etag", "md5")]), denied);
        let query = &presigned("host", 60);
        assert_eq!(code(query, &[host]), None);
        assert_eq!(code(query, &[host, ("x-amz-copy-source", "b/k")]), denied);
        let query = &presigned("host%3Bx-amz-acl", 60);
        assert_eq!(code(query, &[host, ("x-amz-acl", "private")]), None);
        let query = &presigned("range", 60);
        assert_eq!(code(query, &[host]), denied);
    }

    #[test]
    fn regions_that_are_none_are_told_as_s3_does() {
        let us = SIGNED.replace("/r/", "/US/");
        let error = code("", &[("authorization", &us)]);
        assert_eq!(error.as_deref(), Some("AuthorizationHeaderMalformed"));
        let query = presigned("host", 60).replace("%2Fr%2F", "%2FEU%2F");
        let error = code(&query, &[]);
        assert_eq!(error.as_deref(), Some("AuthorizationHeaderMalformed"));
    }

    /// A query that signs, but for being right.
    fn presigned(signed: &str, seconds: u32) -> String {
        format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F20260101%2Fr%2Fs3%2Faws4_request\
             &X-Amz-Date=20260101T000000Z&X-Amz-SignedHeaders={signed}&X-Amz-Expires={seconds}\
             &X-Amz-Signature=0"
        )
    }

    #[test]
    fn presigned_urls_live_a_week_at_most() {
        assert_eq!(code(&presigned("host", 604_800), &[]), None);
        let error = code(&presigned("host", 604_801), &[]);
        assert_eq!(error.as_deref(), Some("AuthorizationQueryParametersError"));
    }

    #[test]
    fn presigned_urls_that_lack_a_parameter_are_told_so() {
        let whole = presigned("host", 60);
        assert_eq!(code(&whole, &[]), None);
        for pair in whole.split('&') {
            let lacking = whole.replace(pair, "x=y");
            let error = code(&lacking, &[]);
            let expected = Some("AuthorizationQueryParametersError");
            assert_eq!(error.as_deref(), expected, "{lacking}");
        }
    }

    #[test]
    fn headers_that_are_no_signatures_are_told_as_s3_does() {
        let told = |text: &str| code("", &[("authorization", text)]);
        let malformed = Some("AuthorizationHeaderMalformed".to_owned());
        for part in ["Credential", "SignedHeaders", "Signature"] {
            assert_eq!(told(&SIGNED.replace(part, "Other")), malformed, "{part}");
        }
        assert_eq!(told(&SIGNED.replace(", Signature=0", "")), malformed);
        assert_eq!(told(&SIGNED.replace("Signature=0", "Signature")), malformed);
        let argument = Some("InvalidArgument".to_owned());
        assert_eq!(told("Bearer token"), argument);
    }

    #[test]
    fn other_ways_to_sign_are_refused() {
        let invalid = Some("InvalidRequest".to_owned());
        assert_eq!(code("", &[("authorization", "AWS AK:sig")]), invalid);
        let both = code("X-Amz-Signature=0", &[("authorization", SIGNED)]);
        assert_eq!(both.as_deref(), Some("InvalidArgument"));
        let both = code("Signatur%65=x&X-Amz-Signature=0", &[]);
        assert_eq!(both.as_deref(), Some("InvalidArgument"));
    }
}
