//! From a file or a stream to an object.

mod announced;

mod beginning;

mod state;

mod verdict;

mod commit;

mod ending;

mod completed;

mod parts;

mod stream;

mod whole;

use std::mem;
use std::path::Path;
use std::sync::Arc;

use hyper::body::Bytes;
use tokio::task::block_in_place;

use crate::limits::PART_BYTES;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Moved};
use crate::mover::journal::{Journal, Noting};
use crate::mover::source::Source;
use crate::mover::times::{MTIME_HEADER, mtime_text};
use crate::s3::checksum::{Algorithm, Checksum, checksum};
use crate::s3::{Doubted, ObjectName, Sent, Stored};
use crate::sealed::UNVERIFIED;

pub(crate) use self::beginning::begin_upload;
use self::ending::end_journal;

/// What was stored, and how.
struct Done {
    stored: Stored,
    sent: Checksum,
    bytes: u64,
    kept_bytes: u64,
    was_sealed: bool,
    /// Where it stands that it was begun: until it is known to be whole, the same command looks for
    /// it there, and does not store it again.
    journal: Option<Journal>,
    /// Uploads of before that may still be at the server.
    to_end: Vec<String>,
}

impl Mover {
    /// Stores a file as an object.
    ///
    /// # Errors
    /// [`MoverError`]; of a file in parts the parts stay, where they may be taken up again.
    pub async fn put(
        self: &Arc<Self>,
        from: &Path,
        name: &ObjectName,
    ) -> Result<Moved, MoverError> {
        let source = block_in_place(|| Source::open(from))?;
        let bytes = source.seen().bytes;
        self.tell(&Event::Found { files: 1, bytes });
        let stored = self.put_known(source, from, name, None).await?;
        Ok(stored.0)
    }

    /// The same with a file that is open, and was told, and perhaps is noted with others of its
    /// folder. Gives the object's entity tag as well.
    pub(super) async fn put_known(
        self: &Arc<Self>,
        source: Source,
        from: &Path,
        name: &ObjectName,
        noting: Option<&Noting<'_>>,
    ) -> Result<(Moved, String), MoverError> {
        let done = if source.seen().bytes <= PART_BYTES {
            self.put_whole(&source, from, name, noting).await?
        } else {
            self.put_parts(source, from, name).await?
        };
        let etag = done.stored.etag.clone();
        let from = from.display().to_string();
        Ok((self.stored(done, from, name).await?, etag))
    }

    /// Headers of an object that was a file.
    fn headers_of(&self, source: &Source) -> Vec<(String, String)> {
        let mut headers = self.options.headers.clone();
        if !headers.iter().any(|(name, _)| name == MTIME_HEADER) {
            headers.push((MTIME_HEADER.to_owned(), mtime_text(source.modified())));
        }
        headers
    }

    async fn put_whole(
        &self,
        source: &Source,
        from: &Path,
        name: &ObjectName,
        noting: Option<&Noting<'_>>,
    ) -> Result<Done, MoverError> {
        let _permit = self.permits.acquire().await.map_err(|_| MoverError::Lost)?;
        let read = || {
            let body = source.read(&(0..source.seen().bytes))?;
            // What was read is what was there, if nothing changed until now.
            source.check_unchanged().map(|()| Bytes::from(body))
        };
        let body = block_in_place(read)?;
        self.put_once((source, from), body, name, noting).await
    }

    /// Stores what is in memory. `doubted` is told that the server called it doubtful.
    async fn put_bytes(
        &self,
        body: Bytes,
        name: &ObjectName,
        headers: &[(String, String)],
        doubted: Option<&Doubted<'_>>,
    ) -> Result<Done, MoverError> {
        let bytes = body.len() as u64;
        let sent = checksum(Algorithm::Crc64Nvme, &body);
        let done = |stored, was_sealed| Done {
            stored,
            sent: sent.clone(),
            bytes,
            kept_bytes: 0,
            was_sealed,
            journal: None,
            to_end: Vec::new(),
        };
        let mut attempt = 0;
        while let Some(ticket) = self.announced(&body, name, None, headers).await? {
            match self
                .commit(name, headers, ticket, (&sent, bytes), doubted)
                .await
            {
                Ok(stored) => return Ok(done(stored, true)),
                Err(error) => {
                    attempt += 1;
                    self.after_commit(attempt, error, bytes).await?;
                }
            }
        }
        let told = (Some(self.sent()), doubted);
        let stored = self.client.put_object_told(name, headers, body, told);
        Ok(done(stored.await?, false))
    }

    /// Tells of bytes that go out.
    fn sent(&self) -> Sent {
        let watch = Arc::clone(&self.watch);
        Arc::new(move |bytes| watch.event(&Event::Bytes(bytes)))
    }

    /// Waits until what was stored is known to be whole, and tells of it. From then on, the same
    /// command stores it again, but not before.
    async fn stored(
        &self,
        mut done: Done,
        from: String,
        name: &ObjectName,
    ) -> Result<Moved, MoverError> {
        let (journal, to_end) = (done.journal.take(), mem::take(&mut done.to_end));
        let moved = self.compared(done, from, name).await;
        if let Some(journal) = journal
            && !moved.as_ref().is_err_and(MoverError::may_go_on)
        {
            end_journal(journal, to_end);
        }
        let moved = moved?;
        self.tell(&Event::Done(&moved));
        Ok(moved)
    }

    /// Compares what the server told with what was sent, and waits until it has opened what came
    /// sealed.
    async fn compared(
        &self,
        done: Done,
        from: String,
        name: &ObjectName,
    ) -> Result<Moved, MoverError> {
        let is_told = is_as_sent(name, done.stored.checksum.as_ref(), &done.sent)?;
        let waits = done.stored.is_unverified && !self.options.waits_for_verdict;
        if waits {
            self.tell(&Event::Note(&format!(
                "s3://{}/{} is stored, unverified: the server opens and compares it later",
                name.bucket, name.key
            )));
        } else if done.stored.is_unverified {
            self.verdict(name, &done).await?;
        }
        Ok(Moved {
            from,
            to: format!("s3://{}/{}", name.bucket, name.key),
            bytes: done.bytes,
            kept_bytes: done.kept_bytes,
            checksum: Some(done.sent.to_string()),
            verified: is_told && !waits,
            checked: None,
            stored: waits.then_some(UNVERIFIED),
            transfer: self.transfer_of(done.was_sealed),
            version_id: done.stored.version_id,
        })
    }
}

/// Whether a server tells a checksum of the kind that was sent, of what it stored.
///
/// # Errors
/// [`MoverError::StoredOtherwise`] where it is another one.
pub(crate) fn is_as_sent(
    name: &ObjectName,
    told: Option<&Checksum>,
    sent: &Checksum,
) -> Result<bool, MoverError> {
    match told.filter(|told| told.algorithm == sent.algorithm) {
        None => Ok(false),
        Some(told) if told == sent => Ok(true),
        Some(told) => Err(MoverError::StoredOtherwise {
            object: format!("s3://{}/{}", name.bucket, name.key),
            told: told.to_string(),
            sent: sent.to_string(),
        }),
    }
}
