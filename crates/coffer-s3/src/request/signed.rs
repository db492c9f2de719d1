//! How a request was signed, as policies ask for it.

use http::{HeaderMap, HeaderValue};

use crate::signature::payload::CONTENT_SHA256;
use crate::signature::requirements::{Form, Presented, value_of};
use crate::signature::signer::DateTime;

/// Where and how a signature stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignedForm {
    /// In the header.
    Header,
    /// In the query, by version 4.
    Query,
    /// In the query, by version 2.
    QueryVersion2,
    /// In the fields of a form, by version 4.
    Form,
    /// In the fields of a form, by version 2.
    FormVersion2,
}

impl SignedForm {
    /// `s3:authType`.
    pub(crate) fn auth_type(self) -> &'static str {
        match self {
            Self::Header => "REST-HEADER",
            Self::Query | Self::QueryVersion2 => "REST-QUERY-STRING",
            Self::Form | Self::FormVersion2 => "POST",
        }
    }

    /// `s3:signatureversion`.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Header | Self::Query | Self::Form => "AWS4-HMAC-SHA256",
            Self::QueryVersion2 | Self::FormVersion2 => "AWS",
        }
    }
}

/// How a request was signed.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) form: SignedForm,
    /// When, in seconds since 1970, where a query or a form says so: else headers do, which are
    /// read when they are asked for.
    pub(crate) at_seconds: Option<i64>,
    /// `x-amz-content-sha256`, as it was sent.
    pub(crate) content_sha256: Option<HeaderValue>,
}

impl Signed {
    /// As the head of a request has it, whose signature was right; none for one that has none.
    pub(crate) fn of(presented: &Presented<'_>, headers: &HeaderMap) -> Option<Self> {
        let form = match presented.form {
            Form::Unsigned => return None,
            Form::Header(_) => SignedForm::Header,
            Form::Presigned => SignedForm::Query,
            Form::PresignedVersion2 => SignedForm::QueryVersion2,
        };
        let date = match form {
            SignedForm::Header => None,
            _ => value_of(&presented.query, "X-Amz-Date"),
        };
        let date = date.and_then(DateTime::parse);
        Some(Self {
            form,
            at_seconds: date.map(|date| date.unix_seconds),
            content_sha256: headers.get(CONTENT_SHA256).cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_called_as_policies_call_them() {
        for (form, auth_type, version) in [
            (SignedForm::Header, "REST-HEADER", "AWS4-HMAC-SHA256"),
            (SignedForm::Query, "REST-QUERY-STRING", "AWS4-HMAC-SHA256"),
            (SignedForm::QueryVersion2, "REST-QUERY-STRING", "AWS"),
            (SignedForm::Form, "POST", "AWS4-HMAC-SHA256"),
            (SignedForm::FormVersion2, "POST", "AWS"),
        ] {
            assert_eq!((form.auth_type(), form.version()), (auth_type, version));
        }
    }
}
