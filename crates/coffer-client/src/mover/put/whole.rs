//! Files that go as one piece, and may have been stored by a command before this one that was ended
//! and did not learn of it. In a bucket with versions, to store one again makes another version.
//!
//! That it was begun is noted until it is known to be whole, or called doubtful, in a journal of
//! its own or with others of its folder; whether it is there, and no older than that, the server
//! tells.

use std::path::Path;

use hyper::body::Bytes;
use tokio::task::block_in_place;

use super::Done;
use super::state::{BegunWhole, journal_of_whole};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::journal::{Journal, Noting};
use crate::mover::source::Source;
use crate::s3::checksum::{Algorithm, checksum};
use crate::s3::{Awaited, KeptTime, ObjectName, Since};

/// Where it stands that a file was begun.
enum Note<'a> {
    Own(Journal, BegunWhole),
    OfFolder(&'a Noting<'a>, KeptTime),
}

impl Note<'_> {
    /// When a command before this one began the same.
    fn began(&self) -> Option<Since> {
        match self {
            Self::OfFolder(noting, _) => noting.began(),
            Self::Own(journal, begun) => {
                let (noted, _) = block_in_place(|| journal.read::<BegunWhole, ()>())?;
                let is_same = noted.source == begun.source && noted.headers == begun.headers;
                noted.began.since().filter(|_| is_same)
            }
        }
    }

    /// That it is begun now. What can't be noted goes all the same.
    fn begin(&self) {
        match self {
            Self::OfFolder(noting, now) => noting.begin(now.clone()),
            Self::Own(journal, begun) => {
                let _ = block_in_place(|| journal.begin(begun));
            }
        }
    }

    /// That what is there may not be what was begun.
    fn clear(&self) {
        match self {
            Self::OfFolder(noting, _) => noting.end(),
            Self::Own(journal, _) => journal.clear(),
        }
    }

    /// That it will not be stored.
    fn end(self) {
        match self {
            Self::OfFolder(noting, _) => noting.end(),
            Self::Own(journal, _) => journal.remove(),
        }
    }

    /// What is stored, with its own journal. Of a folder's file, more is noted later.
    fn kept_with(self, done: Done) -> Done {
        match self {
            Self::OfFolder(..) => done,
            Self::Own(journal, _) => Done {
                journal: Some(journal),
                ..done
            },
        }
    }
}

impl Mover {
    /// Stores a file that is in memory, unless that was done.
    pub(super) async fn put_once(
        &self,
        (source, from): (&Source, &Path),
        body: Bytes,
        name: &ObjectName,
        noting: Option<&Noting<'_>>,
    ) -> Result<Done, MoverError> {
        let headers = self.headers_of(source);
        let Some(note) = self.note_of((source, from), name, &headers, noting) else {
            return self.put_bytes(body, name, &headers, None).await;
        };
        if let Some(began) = note.began()
            && let Some(done) = self.stored_before(began, &headers, &body, name).await?
        {
            return Ok(note.kept_with(done));
        }
        note.begin();
        let doubted = || note.clear();
        match self.put_bytes(body, name, &headers, Some(&doubted)).await {
            Ok(done) => Ok(note.kept_with(done)),
            Err(error) => {
                // Who is not let in has stored nothing.
                if !error.may_go_on() || error.is_of_access() {
                    note.end();
                }
                Err(error)
            }
        }
    }

    /// Where it is to stand that a file was begun: with others of its folder, or in a journal of
    /// its own; nowhere, where there is no place for that, or another process stores the file.
    fn note_of<'a>(
        &self,
        (source, from): (&Source, &Path),
        name: &ObjectName,
        headers: &[(String, String)],
        noting: Option<&'a Noting<'a>>,
    ) -> Option<Note<'a>> {
        let began = KeptTime::now()?;
        if let Some(noting) = noting {
            return Some(Note::OfFolder(noting, began));
        }
        let state = self.options.state.as_deref()?;
        let endpoint = self.client.endpoint().text();
        let journal = block_in_place(|| journal_of_whole(state, endpoint, from, name)).ok()?;
        let begun = BegunWhole {
            source: source.seen().clone(),
            headers: headers.to_vec(),
            began,
        };
        Some(Note::Own(journal, begun))
    }

    /// What is stored of this file since that was begun.
    ///
    /// # Errors
    /// When the server can't be asked now.
    async fn stored_before(
        &self,
        began: Since,
        headers: &[(String, String)],
        body: &Bytes,
        name: &ObjectName,
    ) -> Result<Option<Done>, MoverError> {
        let bytes = body.len() as u64;
        let sent = checksum(Algorithm::Crc64Nvme, body);
        let awaited = Awaited {
            name,
            headers,
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
            journal: None,
            to_end: Vec::new(),
        }))
    }
}
