//! Files that go as one piece, and may have been stored by a command before this one that was ended
//! and did not learn of it. In a bucket with versions, to store one again makes another version.
//!
//! That it was begun is noted until it is answered, or called doubtful; whether it is there, and no
//! older than that, the server tells.

use std::path::Path;

use hyper::body::Bytes;
use tokio::task::block_in_place;

use super::Done;
use super::state::{BegunWhole, journal_of_whole};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::journal::Journal;
use crate::mover::source::Source;
use crate::s3::checksum::{Algorithm, checksum};
use crate::s3::{Awaited, KeptTime, ObjectName};

impl Mover {
    /// Stores a file that is in memory, unless that was done.
    pub(super) async fn put_once(
        &self,
        (source, from): (&Source, &Path),
        body: Bytes,
        name: &ObjectName,
    ) -> Result<Done, MoverError> {
        let headers = self.headers_of(source);
        let Some((journal, begun)) = self.begun_whole(source, from, name, &headers) else {
            return self.put_bytes(body, name, &headers, None).await;
        };
        if let Some(done) = self.stored_before(&journal, &begun, &body, name).await? {
            journal.remove();
            return Ok(done);
        }
        // What can't be noted goes all the same.
        let _ = block_in_place(|| journal.begin(&begun));
        let doubted = || journal.clear();
        let done = self.put_bytes(body, name, &headers, Some(&doubted)).await;
        if !done.as_ref().is_err_and(MoverError::may_go_on) {
            journal.remove();
        }
        done
    }

    /// The journal of a file, and what it is to say; none, where there is no place for it, or
    /// another process stores the file.
    fn begun_whole(
        &self,
        source: &Source,
        from: &Path,
        name: &ObjectName,
        headers: &[(String, String)],
    ) -> Option<(Journal, BegunWhole)> {
        let state = self.options.state.as_deref()?;
        let endpoint = self.client.endpoint().text();
        let began = KeptTime::now()?;
        let journal = block_in_place(|| journal_of_whole(state, endpoint, from, name)).ok()?;
        let begun = BegunWhole {
            source: source.seen().clone(),
            headers: headers.to_vec(),
            began,
        };
        Some((journal, begun))
    }

    /// What is stored of this file since it was noted that this was begun.
    ///
    /// # Errors
    /// When the server can't be asked now.
    async fn stored_before(
        &self,
        journal: &Journal,
        begun: &BegunWhole,
        body: &Bytes,
        name: &ObjectName,
    ) -> Result<Option<Done>, MoverError> {
        let noted = block_in_place(|| journal.read::<BegunWhole, ()>());
        let is_same =
            |noted: &BegunWhole| noted.source == begun.source && noted.headers == begun.headers;
        let noted = noted.map(|(noted, _)| noted).filter(is_same);
        let Some(began) = noted.and_then(|noted| noted.began.since()) else {
            return Ok(None);
        };
        let bytes = body.len() as u64;
        let sent = checksum(Algorithm::Crc64Nvme, body);
        let awaited = Awaited {
            name,
            headers: &begun.headers,
            bytes,
            checksum: Some(&sent),
            etag: &|| Some(hex::encode(checksum(Algorithm::Md5, body).value)),
            began,
            sent: None,
            doubted: None,
        };
        let Some(mut stored) = self.client.found(&awaited).await? else {
            return Ok(None);
        };
        stored.is_unverified |= self.is_unverified(name, &stored).await;
        self.tell(&Event::Kept(bytes));
        Ok(Some(Done {
            stored,
            sent,
            bytes,
            kept_bytes: bytes,
            was_sealed: false,
        }))
    }
}
