//! Commits of what came sealed. A ticket is good for one commit: where the answer to that is lost,
//! the next one learns only that there is no such ticket, and what is stored has to be looked at.

use http::Method;

use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::s3::checksum::Checksum;
use crate::s3::{Awaited, Doubted, ObjectName, S3Error, Since, Stored};

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
        doubted: Option<&Doubted<'_>>,
    ) -> Result<Stored, S3Error> {
        let sum = (sent.algorithm.header().to_owned(), sent.text());
        let request = name.request(Method::PUT).headers(headers);
        let request = request.headers(&[ticket, sum]);
        let awaited = Awaited {
            name,
            headers,
            bytes,
            checksum: Some(sent),
            // A server that takes sealed bytes tells checksums.
            etag: &|| None,
            began: Since::now(),
            sent: None,
            doubted,
        };
        self.client.commit_object(&awaited, &request).await
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
