//! Commits of what came sealed. A ticket is good for one commit: where the answer to that is lost,
//! the next one learns only that there is no such ticket, and what is stored has to be looked at.

use std::time::Instant;

use http::Method;

use super::verdict::said_of;
use crate::limits::COMMIT_AGE_SLACK;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::s3::checksum::Checksum;
use crate::s3::{ObjectHead, ObjectName, S3Error, Stored};

impl Mover {
    /// Makes an object of what was sent with this ticket. Where the answer is lost, the object
    /// tells whether it is there.
    ///
    /// # Errors
    /// What the server said, or that it said nothing: then the object is not seen to be there.
    pub(super) async fn commit(
        &self,
        name: &ObjectName,
        headers: &[(String, String)],
        ticket: (String, String),
        (sent, bytes): (&Checksum, u64),
    ) -> Result<Stored, S3Error> {
        let began = Instant::now();
        let sum = (sent.algorithm.header().to_owned(), sent.text());
        let request = name.request(Method::PUT).headers(headers);
        let request = request.headers(&[ticket, sum]);
        let error = match self.client.send(&request).await {
            Ok(answer) => return Ok(Stored::of_headers(&answer.headers)),
            Err(error) if error.is_used_up() || error.is_passing() => error,
            Err(error) => return Err(error),
        };
        // One of the same bytes that is older, or has other metadata, was there before.
        let is_metadata = |name: &str| name.starts_with("x-amz-meta-");
        // What is no ASCII, or was said twice, is told in another form.
        let is_plain = |name: &str, value: &str| {
            value.is_ascii() && headers.iter().filter(|(of, _)| of == name).count() == 1
        };
        let is_told = |head: &ObjectHead, (name, value): &(String, String)| {
            let is_compared = is_metadata(name) && is_plain(name, value);
            !is_compared || head.header(name) == Some(value.trim())
        };
        let is_it = |head: &ObjectHead| {
            let oldest = began.elapsed() + COMMIT_AGE_SLACK;
            head.checksum.as_ref() == Some(sent)
                && head.bytes == bytes
                && head.age().is_some_and(|age| age <= oldest)
                && headers.iter().all(|header| is_told(head, header))
        };
        match self.client.head_object(name).await {
            Ok(head) if is_it(&head) => Ok(Stored {
                is_unverified: said_of(&head).is_some(),
                etag: head.etag,
                version_id: head.version_id,
                checksum: head.checksum,
            }),
            _ => Err(error),
        }
    }

    /// The ETag of a part whose ticket is used up, if the server holds the part.
    pub(super) async fn held_part(
        &self,
        name: &ObjectName,
        (upload_id, number): (&str, u32),
        (sum, bytes): (&Checksum, u64),
    ) -> Option<String> {
        let listed = self.client.list_parts(name, upload_id).await.ok()?;
        let part = { listed.into_iter() }.find(|part| part.number == number)?;
        let is_it = part.bytes == bytes && part.checksum.as_deref() == Some(&sum.text());
        is_it.then_some(part.etag)
    }

    /// Waits before bytes are sent again, with another ticket, or gives the error back where that
    /// would not help.
    pub(super) async fn after_commit(
        &self,
        attempt: u32,
        error: S3Error,
        bytes: u64,
    ) -> Result<(), MoverError> {
        if !error.is_used_up() {
            return Err(error.into());
        }
        let broken = S3Error::Broken {
            endpoint: self.client.endpoint().text().to_owned(),
            problem: error.to_string(),
        };
        if self.client.pause(attempt, broken).await.is_err() {
            return Err(error.into());
        }
        self.tell(&Event::Bytes(-(bytes as i64)));
        Ok(())
    }
}
