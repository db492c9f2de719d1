//! How a request of S3 fails: what the server said, and what to do.

#[cfg(test)]
mod tests;

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use time::OffsetDateTime;

use crate::error::ClientError;
use crate::limits::{PART_BYTES, S3_MESSAGE_CHARACTERS};
use crate::s3::xml::Element;

mod access;

mod advice;

mod outcome;

pub(super) use self::access::{PAGE, is_login};
use self::advice::{advice, advice_of_source};
pub(crate) use self::advice::{advice_of_lock, date_of, without_bucket};
pub use self::outcome::Outcome;

/// Why a request of S3 did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// The server could not be reached, or there is nothing to reach it with.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server said no.
    #[error("the server answered {code}: {message}{advice}")]
    Refused {
        /// The status.
        status: u16,
        /// S3's code.
        code: String,
        /// The server's words.
        message: String,
        /// What to do, where that is known.
        advice: String,
        /// How long to wait, if the server said so.
        retry_after: Option<Duration>,
        /// What became of the request, where the server says that asking again does not help.
        outcome: Option<Outcome>,
    },
    /// The connection ended, or stood still.
    #[error("the connection to {endpoint} broke: {problem}")]
    Broken {
        /// The server.
        endpoint: String,
        /// Why.
        problem: String,
    },
    /// Something else is there than was asked for, by its content.
    #[error("the object was replaced while it was read")]
    Replaced,
    /// A list has a name in it that was not asked for.
    #[error(
        "{endpoint} lists {key}, which does not begin with {prefix}, as was asked for: nothing is \
         done by such a list; name objects one by one, or use a service that heeds prefixes",
        key = key.escape_debug(),
        prefix = prefix.escape_debug()
    )]
    Unasked {
        /// The server.
        endpoint: String,
        /// What was asked for.
        prefix: String,
        /// What is listed.
        key: String,
    },
    /// It gives whole objects alone.
    #[error(
        "{endpoint} gave the whole object where a part of it was asked for: it knows no ranges, by \
         which objects of more than {mib} MiB are fetched, and the rest of any after a break; `aws \
         s3api get-object` fetches this one whole",
        mib = PART_BYTES >> 20
    )]
    NoRanges {
        /// The server.
        endpoint: String,
    },
    /// The answer is not what S3 answers.
    #[error(
        "{endpoint} gave an answer that {problem}; is there an S3 service at that address, and no \
         login page or proxy that answers in its place?"
    )]
    Unreadable {
        /// The server.
        endpoint: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// What is wrong with an answer about an object that S3 can't have given: a login page, as it may
/// be, is no object, and nothing was stored there.
pub(crate) const NO_ETAG: &str = "is no S3 answer: it has no ETag";

impl S3Error {
    /// S3's code, if the server answered with one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the server failed, and what was asked for may have happened: not where it had no
    /// turn for it, or says what became of it.
    pub fn is_doubtful(&self) -> bool {
        let fails = matches!(
            self,
            Self::Refused {
                status: 500 | 503,
                ..
            }
        );
        fails && self.code() != Some("SlowDown") && !self.is_certain()
    }

    /// Whether the server answered that there is no such thing.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Whether it answered that something else is there than was expected.
    pub fn is_changed(&self) -> bool {
        matches!(self, Self::Replaced | Self::Refused { status: 412, .. })
    }

    /// Whether the service says that it does no such thing.
    pub(crate) fn is_not_offered(&self) -> bool {
        let codes = ["NotImplemented", "MethodNotAllowed", "NotSupported"];
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// Whether it may be that the server does not know the checksum that came with a request.
    pub(crate) fn is_about_checksums(&self) -> bool {
        let codes = ["InvalidArgument", "InvalidRequest", "NotImplemented"];
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// Whether a request was refused for what it says, and not for when, how slowly, or by whom.
    pub(crate) fn is_of_content(&self) -> bool {
        let elsewhere = ["IncompleteBody", "RequestTimeout", "SlowDown"];
        match self {
            Self::Refused {
                status: 400, code, ..
            } => !self.is_of_key() && !elsewhere.contains(&code.as_str()),
            _ => false,
        }
    }

    /// Whether the ticket of a commit is no good, or was: the commit may have happened, and its
    /// answer be lost.
    pub(crate) fn is_used_up(&self) -> bool {
        self.code() == Some("NoSuchTransfer")
    }

    /// Whether an upload is gone, as it is after it was completed.
    pub(crate) fn is_gone(&self) -> bool {
        self.code() == Some("NoSuchUpload")
    }

    /// Whether no answer tells what was done: none came, or not all of it, or what stands before
    /// the server has lost it. With 500 and 503 a server says itself that something may have been
    /// done, and may not be safe where reads show it: that is no lost answer.
    pub(crate) fn is_without_answer(&self) -> bool {
        match self {
            Self::Broken { .. } | Self::Unreadable { .. } => true,
            Self::Refused { status, .. } => matches!(status, 502 | 504),
            Self::Client(_) | Self::Replaced | Self::Unasked { .. } | Self::NoRanges { .. } => {
                false
            }
        }
    }

    /// Whether the same request may go well after a while.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Broken { .. } | Self::Client(ClientError::Unreachable { .. }) => true,
            Self::Refused { status, code, .. } => {
                let damaged_on_the_way = [
                    "BadDigest",
                    "IncompleteBody",
                    "RequestTimeout",
                    "SlowDown",
                    "XAmzContentChecksumMismatch",
                    "XAmzContentSHA256Mismatch",
                ];
                matches!(status, 429 | 500 | 502 | 503 | 504)
                    || damaged_on_the_way.contains(&code.as_str())
            }
            Self::Client(_)
            | Self::Replaced
            | Self::Unasked { .. }
            | Self::NoRanges { .. }
            | Self::Unreadable { .. } => false,
        }
    }

    /// The same of the source of a migration.
    pub(super) fn of_source(mut self) -> Self {
        if let Self::Refused { code, advice, .. } = &mut self
            && let Some(of_source) = advice_of_source(code)
        {
            *advice = format!("; {of_source}");
        }
        self
    }

    /// The same of a request that named this bucket and no other.
    pub(super) fn of_bucket(mut self, bucket: &str) -> Self {
        if let Self::Refused { code, advice, .. } = &mut self
            && code == "NoSuchBucket"
        {
            let bucket = plain(bucket);
            *advice = format!("; there is no bucket {bucket}: {}", without_bucket(&bucket));
        }
        self
    }

    /// What an answer that is no success says. `now` is the time of this machine.
    pub(super) fn of_answer(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: OffsetDateTime,
    ) -> Self {
        let document = Element::parse(body).ok();
        let document = document.filter(|document| document.name == "Error");
        let said = |name| {
            let text = document.as_ref()?.text_of(name)?;
            Some(plain(text))
        };
        let code = said("Code").unwrap_or_else(|| code_of(status).to_owned());
        let message = said("Message").filter(|message| !message.is_empty());
        let reason = || status.canonical_reason().unwrap_or("no reason given");
        // An answer to HEAD has no body, and so does not tell why.
        let advice = match status.as_u16() {
            _ if document.is_none() && is_of_administration(body) => {
                "; the administration of a coffer answers there: S3 has a port of its own, 9000 \
                 unless the server was told otherwise (--listen)"
                    .to_owned()
            }
            401 | 403 if body.is_empty() => "; the answer tells no reason: the access key may be \
                 unknown, its secret wrong, or it may not do that"
                .to_owned(),
            _ => advice(&code, message.as_deref().unwrap_or_default(), headers, now),
        };
        let seconds = headers
            .get("retry-after")
            .and_then(|value| value.to_str().ok());
        Self::Refused {
            status: status.as_u16(),
            advice,
            message: message.unwrap_or_else(|| reason().to_owned()),
            code,
            retry_after: seconds
                .and_then(|seconds| seconds.parse().ok())
                .map(Duration::from_secs),
            outcome: Outcome::of(headers),
        }
    }
}

#[cfg(test)]
impl S3Error {
    /// An answer of this status and code.
    pub(crate) fn refused(status: u16, code: &str) -> Self {
        Self::Refused {
            status,
            code: code.to_owned(),
            message: String::new(),
            advice: String::new(),
            retry_after: None,
            outcome: None,
        }
    }
}

/// What a status means where the answer has no body, as that to HEAD.
fn code_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        301 | 307 => "PermanentRedirect",
        304 => "NotModified",
        400 => "BadRequest",
        401 | 403 => "AccessDenied",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        412 => "PreconditionFailed",
        416 => "InvalidRange",
        429 | 503 => "SlowDown",
        500 => "InternalError",
        501 => "NotImplemented",
        _ => "UnknownError",
    }
}

/// Whether an answer is one of a coffer's administration, which refuses by JSON.
fn is_of_administration(body: &[u8]) -> bool {
    let told: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    told.is_some_and(|told| told.pointer("/error/code").is_some())
}

/// Whether a port that speaks TLS answers plain HTTP by a sentence, as many servers do. S3's own
/// refusals are XML. An answer without a body, as any to HEAD, shows nothing of it.
pub(super) fn is_for_https(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let names_tls = ["HTTPS", "https://", "TLS", "SSL"];
    let names_tls = names_tls.iter().any(|name| text.contains(name));
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let is_sentence = kind.is_some_and(|kind| kind.starts_with(b"text/"));
    status == StatusCode::BAD_REQUEST && is_sentence && names_tls
}

/// Words of a server that can't move a terminal's cursor, and have an end.
fn plain(text: &str) -> String {
    let characters = text.chars().take(S3_MESSAGE_CHARACTERS);
    let line = characters.map(|c| if c.is_control() { ' ' } else { c });
    line.collect::<String>().trim_end_matches('.').to_owned()
}
