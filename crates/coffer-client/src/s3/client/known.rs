//! What is known of a service by its answers.

use std::sync::atomic::Ordering::Relaxed;

use http::{HeaderMap, Method, StatusCode};
use time::OffsetDateTime;

use super::Client;
use crate::error::ClientError;
use crate::limits::S3_REFUSED_RETRIES;
use crate::s3::error::S3Error;
use crate::s3::request::Request;

impl Client {
    /// How often a server is asked that has never answered. Its address may be wrong: only one that
    /// refuses connections may just start, which takes seconds, and is waited for once. So is one
    /// whose connections a network resets.
    pub(super) fn retries_of_unknown(&self, attempt: u32, error: &S3Error) -> u32 {
        let may_pass = matches!(
            error,
            S3Error::Client(ClientError::Unreachable { may_pass: true, .. })
        );
        if !may_pass || self.was_waited_for.load(Relaxed) {
            return 0;
        }
        let retries = self.options.retries.min(S3_REFUSED_RETRIES);
        self.was_waited_for.store(attempt > retries, Relaxed);
        retries
    }

    /// What an answer that is no success says, with what to do about this service.
    pub(super) fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> S3Error {
        let error = S3Error::of_answer(status, headers, body, OffsetDateTime::now_utc());
        if self.options.is_source {
            return error.of_source();
        }
        error
    }

    /// The same, which names the bucket that was asked for, where only one was.
    pub(super) fn refused_to(
        &self,
        request: &Request,
        (status, headers, body): (StatusCode, &HeaderMap, &[u8]),
    ) -> S3Error {
        let error = self.refused(status, headers, body);
        match request.only_bucket() {
            Some(bucket) if !self.options.is_source => error.of_bucket(&bucket),
            _ => error,
        }
    }

    /// Whether the service takes what this access key signs, which it is asked once where no answer
    /// has shown it: for the list of buckets, whose address is written in no two ways, as that of
    /// an odd name is. To refuse that list it has to have taken the signature.
    pub(crate) async fn is_accepted(&self) -> bool {
        if self.was_accepted() {
            return true;
        }
        let answered = self.send_once(&Request::of_service(Method::GET)).await;
        let is_denied = |error: S3Error| error.code() == Some("AccessDenied");
        let is_accepted = answered.map_or_else(is_denied, |answer| answer.is_no_page());
        self.was_accepted.fetch_or(is_accepted, Relaxed);
        is_accepted
    }

    /// Whether the service is known to take what this access key signs.
    pub(crate) fn was_accepted(&self) -> bool {
        self.was_accepted.load(Relaxed)
    }
}
