//! A file as an upload in parts, which is taken up again where it broke off.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::body::Bytes;
use tokio::task::block_in_place;

use super::ending::forget;
use super::state::{Begun, StoredPart, ToEnd, journal};
use super::{Done, is_as_sent};
use crate::limits::PART_BYTES;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::journal::Journal;
use crate::mover::plan::{part_bytes, pieces};
use crate::mover::source::Source;
use crate::mover::together::Together;
use crate::s3::checksum::{Algorithm, checksum, crc, of_pieces};
use crate::s3::{Awaited, DonePart, ListedPart, ObjectName, Since, etag_of_parts};

const ALGORITHM: Algorithm = Algorithm::Crc64Nvme;

/// An upload under way, as all its parts see it.
pub(super) struct Upload {
    pub(super) name: ObjectName,
    pub(super) upload_id: String,
    /// Whether the server compares checksums; else it gets MD5s, which all know.
    pub(super) compares: bool,
    /// What the object is to have.
    pub(super) headers: Vec<(String, String)>,
    /// When it was begun. Some servers have the object be as old.
    pub(super) began: Since,
}

/// A part that is stored.
pub(super) struct Part {
    pub(super) done: DonePart,
    pub(super) crc: u64,
    pub(super) bytes: u64,
    pub(super) was_kept: bool,
    pub(super) was_sealed: bool,
    /// Whether the server has not opened it yet; none of a part that was listed, which tells
    /// nothing of it.
    pub(super) is_unverified: Option<bool>,
}

/// What is there of before.
#[derive(Default)]
struct Before {
    listed: HashMap<u32, ListedPart>,
    noted: HashMap<u32, StoredPart>,
}

impl Mover {
    pub(super) async fn put_parts(
        self: &Arc<Self>,
        source: Source,
        from: &Path,
        name: &ObjectName,
    ) -> Result<Done, MoverError> {
        let journal = self.journal_of(from, name)?;
        let part_bytes = part_bytes(source.seen().bytes);
        let noted = journal.as_deref();
        if let Some(done) = self.completed_before(&source, name, noted).await? {
            return Ok(keeping(done, journal));
        }
        let begun = self.begin(&source, name, part_bytes, noted).await;
        let (begun, before) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                if matches!(error, MoverError::Local { .. }) {
                    forget(journal, Vec::new());
                }
                return Err(error);
            }
        };
        let mut to_end = begun.to_end.clone();
        let upload = Arc::new(Upload {
            name: name.clone(),
            began: begun.began(),
            upload_id: begun.upload_id,
            compares: begun.compares,
            headers: begun.headers,
        });
        let source = Arc::new(source);
        let parts = self
            .all_parts(&source, &upload, part_bytes, before, journal.as_ref())
            .await;
        let checked = parts.and_then(|parts| source.check_unchanged().map(|()| parts));
        let completed = match checked {
            Ok(parts) => self.complete(&upload, parts).await,
            Err(error) => Err(error),
        };
        match completed {
            Ok(done) => Ok(Done {
                to_end: self.end_uploads(name, to_end).await,
                ..keeping(done, journal)
            }),
            Err(error) if journal.is_none() || !error.may_go_on() => {
                to_end.insert(0, upload.upload_id.clone());
                if !error.is_of_access() {
                    to_end = self.end_uploads(name, to_end).await;
                }
                forget(journal, to_end);
                Err(error)
            }
            Err(error) => Err(error.with_kept(STORED)),
        }
    }

    /// Opens the journal of an upload. Where there is no place for it, the upload goes without.
    fn journal_of(
        &self,
        from: &Path,
        name: &ObjectName,
    ) -> Result<Option<Arc<Journal>>, MoverError> {
        let endpoint = self.client.endpoint().text();
        let Some(state) = self.options.state.as_deref() else {
            return Ok(None);
        };
        match block_in_place(|| journal(state, endpoint, from, name)) {
            Ok(journal) => Ok(Some(Arc::new(journal))),
            Err(error @ MoverError::Local { .. }) => {
                if !self.told.unnoted.swap(true, Relaxed) {
                    self.tell(&Event::Note(&format!(
                        "{error}: an upload that breaks off will begin anew; set XDG_STATE_HOME to \
                         a folder that can be written, and it goes on"
                    )));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Finds the upload that was begun before of the same file, or begins one.
    async fn begin(
        self: &Arc<Self>,
        source: &Source,
        name: &ObjectName,
        part_bytes: u64,
        journal: Option<&Journal>,
    ) -> Result<(Begun, Before), MoverError> {
        let headers = self.headers_of(source);
        let was = journal.and_then(Journal::read::<Begun, StoredPart>);
        let left = journal.and_then(Journal::read::<ToEnd, StoredPart>);
        let mut to_end = left.map(|(left, _)| left.to_end).unwrap_or_default();
        if let Some((begun, noted)) = was {
            let is_same = begun.source == *source.seen()
                && begun.part_bytes == part_bytes
                && begun.headers == headers;
            let listed = if is_same {
                self.client.list_parts(name, &begun.upload_id).await
            } else {
                to_end.insert(0, begun.upload_id.clone());
                Ok(Vec::new())
            };
            match listed {
                Ok(listed) if is_same => {
                    let before = Before {
                        listed: listed.into_iter().map(|part| (part.number, part)).collect(),
                        noted: noted.into_iter().map(|part| (part.number, part)).collect(),
                    };
                    return Ok((begun, before));
                }
                Ok(_) => {}
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let to_end = self.end_uploads(name, to_end).await;
        let start = self.begin_upload(name, &headers).await?;
        let begun = Begun {
            upload_id: start.upload_id,
            compares: start.compares,
            part_bytes,
            source: source.seen().clone(),
            headers,
            seconds: start.began_seconds,
            to_end,
        };
        if let Some(journal) = journal
            && let Err(error) = block_in_place(|| journal.begin(&begun))
        {
            // It is noted nowhere, so nothing would go on with it.
            let _ = self.client.abort_upload(name, &begun.upload_id).await;
            return Err(error);
        }
        Ok((begun, Before::default()))
    }

    async fn all_parts(
        self: &Arc<Self>,
        source: &Arc<Source>,
        upload: &Arc<Upload>,
        part_bytes: u64,
        mut before: Before,
        journal: Option<&Arc<Journal>>,
    ) -> Result<Vec<Part>, MoverError> {
        let mut together = Together::new(&self.permits);
        for (number, range) in (1..).zip(pieces(source.seen().bytes, part_bytes)) {
            let before = (before.listed.remove(&number), before.noted.remove(&number));
            let (mover, source) = (Arc::clone(self), Arc::clone(source));
            let (upload, journal) = (Arc::clone(upload), journal.cloned());
            let permits = self.permits_of(&range);
            let work = move |permit| async move {
                let part = mover.part(&source, &upload, number, range, before).await?;
                if let (Some(journal), false) = (journal, part.was_kept) {
                    let noted = StoredPart {
                        number,
                        etag: part.done.etag.clone(),
                        crc: part.crc,
                    };
                    block_in_place(|| journal.add(&noted))?;
                }
                drop(permit);
                Ok(part)
            };
            if !together.add(permits, work).await {
                break;
            }
        }
        let mut parts: Vec<Part> = together.all().await?;
        parts.sort_unstable_by_key(|part| part.done.number);
        Ok(parts)
    }

    /// A permit for each usual part, so that what is held in memory has an end.
    pub(super) fn permits_of(&self, range: &Range<u64>) -> u32 {
        let wanted = (range.end - range.start).div_ceil(PART_BYTES) as usize;
        wanted.min(self.options.jobs) as u32
    }

    async fn part(
        &self,
        source: &Source,
        upload: &Upload,
        number: u32,
        range: Range<u64>,
        (listed, noted): (Option<ListedPart>, Option<StoredPart>),
    ) -> Result<Part, MoverError> {
        let read = || {
            let body = source.read(&range)?;
            let sum = checksum(ALGORITHM, &body);
            Ok::<_, MoverError>((Bytes::from(body), sum))
        };
        let (body, sum) = block_in_place(read)?;
        if let Some(listed) = listed.filter(|listed| listed.bytes == body.len() as u64) {
            let number_of = u64::from_be_bytes(sum.value.clone().try_into().unwrap_or_default());
            let is_noted = noted.is_some_and(|it| it.etag == listed.etag && it.crc == number_of);
            if listed.checksum.as_deref() == Some(&sum.text()) || is_noted {
                self.tell(&Event::Kept(listed.bytes));
                return Ok(Part {
                    bytes: listed.bytes,
                    done: DonePart {
                        number,
                        etag: listed.etag,
                        checksum: upload.compares.then(|| sum.text()),
                    },
                    crc: number_of,
                    was_kept: true,
                    was_sealed: false,
                    is_unverified: None,
                });
            }
        }
        self.send_part(upload, number, body).await
    }

    /// Stores a part that is in memory.
    pub(super) async fn send_part(
        &self,
        upload: &Upload,
        number: u32,
        body: Bytes,
    ) -> Result<Part, MoverError> {
        let bytes = body.len() as u64;
        let polynomial = ALGORITHM.crc().ok_or(MoverError::Lost)?;
        let number_of = block_in_place(|| crc(polynomial, &body));
        let sum = of_pieces(ALGORITHM, [(number_of, bytes)]).ok_or(MoverError::Lost)?;
        let header = if upload.compares {
            (ALGORITHM.header().to_owned(), sum.text())
        } else {
            let md5 = block_in_place(|| checksum(Algorithm::Md5, &body)).value;
            ("content-md5".to_owned(), BASE64.encode(md5))
        };
        let part = (upload.upload_id.as_str(), number);
        let done = |etag, was_sealed, is_unverified| Part {
            done: DonePart {
                number,
                etag,
                checksum: upload.compares.then(|| sum.text()),
            },
            crc: number_of,
            bytes,
            was_kept: false,
            was_sealed,
            is_unverified,
        };
        let mut attempt = 0;
        loop {
            let ticket = self.announced(&body, &upload.name, Some(part), &[]).await?;
            let was_sealed = ticket.is_some();
            let (body, sent) = if was_sealed {
                (Bytes::new(), None)
            } else {
                (body.clone(), Some(self.sent()))
            };
            let headers: Vec<_> = { ticket.into_iter() }.chain([header.clone()]).collect();
            let storing = self
                .client
                .upload_part(&upload.name, part, &headers, body, sent);
            let error = match storing.await {
                Ok(stored) => {
                    is_as_sent(&upload.name, stored.checksum.as_ref(), &sum)?;
                    return Ok(done(stored.etag, was_sealed, Some(stored.is_unverified)));
                }
                Err(error) => error,
            };
            // The answer to a commit may be lost, and the part be there.
            if error.is_used_up()
                && let Some(etag) = self.held_part(&upload.name, part, (&sum, bytes)).await
            {
                return Ok(done(etag, was_sealed, None));
            }
            attempt += 1;
            self.after_commit(attempt, error, bytes).await?;
        }
    }

    /// Makes the object of its parts. Where the answer is lost, the object tells whether it is
    /// there.
    pub(super) async fn complete(
        &self,
        upload: &Upload,
        parts: Vec<Part>,
    ) -> Result<Done, MoverError> {
        let sums = parts.iter().map(|part| (part.crc, part.bytes));
        let sent = of_pieces(ALGORITHM, sums).ok_or(MoverError::Lost)?;
        let bytes = parts.iter().map(|part| part.bytes).sum();
        let kept = parts.iter().filter(|part| part.was_kept);
        let kept_bytes = kept.map(|part| part.bytes).sum();
        let was_sealed = parts.iter().any(|part| part.was_sealed);
        let is_unverified = parts.iter().any(|part| part.is_unverified == Some(true));
        let may_be = parts.iter().any(|part| part.is_unverified.is_none());
        let done: Vec<DonePart> = parts.into_iter().map(|part| part.done).collect();
        let whole = upload.compares.then_some(&sent);
        let awaited = Awaited {
            name: &upload.name,
            headers: &upload.headers,
            bytes,
            checksum: Some(&sent),
            etag: &|| etag_of_parts(&done),
            began: upload.began,
            sent: None,
            doubted: None,
        };
        let mut stored = self
            .client
            .complete_upload(&awaited, &upload.upload_id, &done, whole)
            .await?;
        // Parts that were listed may have come sealed; the answer to this tells nothing of it.
        stored.is_unverified |=
            is_unverified || may_be && self.is_unverified(&upload.name, &stored).await;
        Ok(Done {
            stored,
            sent,
            bytes,
            kept_bytes,
            was_sealed,
            journal: None,
            to_end: Vec::new(),
        })
    }
}

/// What is stored, with its journal, which is kept until that is known to be whole.
fn keeping(done: Done, journal: Option<Arc<Journal>>) -> Done {
    let journal = journal.and_then(Arc::into_inner);
    Done { journal, ..done }
}

/// What stays of an upload that the server does not let go on.
const STORED: &str = "what was stored of it is kept: the same command, once it is let in again (by \
                      new credentials, or a login), goes on from there";
