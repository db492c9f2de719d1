//! A version from the source to the target: in one piece or in parts, summed as it passes.

mod seen;

mod time;

mod begun;

mod guard;

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use hyper::body::Bytes;
use tokio::task::block_in_place;

use crate::limits::PART_BYTES;
use crate::migrate::Migration;
use crate::migrate::body::{Body, Opened, check, same};
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::{Begun, Given, Part, identity};
use crate::migrate::place::Place;
use crate::migrate::report::Proof;
use crate::mover::{Event, MoverError, Together, is_as_sent, pieces};
use crate::s3::checksum::{Algorithm, Checksum, checksum, crc, of_pieces};
use crate::s3::{DonePart, ListedVersion, ObjectName, Sent, Stored};

pub(super) use self::seen::Seen;
pub(super) use self::time::second;

use self::guard::Write;

const ALGORITHM: Algorithm = Algorithm::Crc64Nvme;

/// A version that is at the target.
pub(super) struct Landed {
    /// Its id there.
    pub(super) version_id: Option<String>,
    /// What tells it from others there.
    pub(super) identity: String,
    /// By which second it was there, where that tells it from others, too.
    pub(super) by: Option<u32>,
    pub(super) etag: String,
    pub(super) checksum: Checksum,
    pub(super) proof: Proof,
}

/// An upload under way, as all its parts see it.
struct Upload {
    name: ObjectName,
    begun: Begun,
    body: Body,
    given: Given,
    /// The kind of checksum that the source tells, if it can be put together of parts' ones.
    also: Option<Algorithm>,
}

/// A part that is stored.
struct Sum {
    done: DonePart,
    bytes: u64,
    crc: u64,
    also: Option<u64>,
}

impl Migration {
    /// Moves the bytes of a version, with all that it is beside them, to where that was seen.
    pub(super) async fn land(
        self: &Arc<Self>,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        seen: &Seen,
    ) -> Result<Landed, MigrateError> {
        let small = of.object.bytes <= PART_BYTES;
        let permits = self.permits_for(of.object.bytes.min(PART_BYTES));
        let permit = self.permits.acquire_many(permits).await;
        let permit = permit.map_err(|_| MoverError::Lost)?;
        let opened = place.open(key, of).await?;
        if let Some(lost) = opened.attributes.lost.first() {
            let what = place.what(key, of);
            self.tell(&Event::Note(&format!("{what}: {lost} does not come along")));
        }
        let name = place.at_target(key);
        let is_whole = small && opened.whole.is_some();
        let (stored, sum, is_told) = if let Some(whole) = opened.whole.clone().filter(|_| small) {
            let what = (&**place, key, of);
            let landed = self.land_whole(what, &name, &opened, whole, seen).await;
            drop(permit);
            landed?
        } else {
            drop(permit);
            let to = (&name, seen);
            self.land_parts(place, key, of, to, opened).await?
        };
        let identity_there = identity(stored_id(&stored), &stored.etag);
        let by = self.there_by(place, &name, &stored, is_whole).await;
        let proven = self.proven(&name, stored, (sum, is_told), by).await;
        if let Err(MigrateError::Mover(MoverError::StoredOtherwise { .. })) = &proven {
            // It is of this migration, and the next run puts the right one there.
            place.ledger.spoilt(key, (&identity_there, by))?;
        }
        proven
    }

    /// Has the target say what it stored.
    async fn proven(
        &self,
        name: &ObjectName,
        stored: Stored,
        (sum, is_told): (Checksum, bool),
        by: Option<u32>,
    ) -> Result<Landed, MigrateError> {
        let version_id = stored_id(&stored).map(str::to_owned);
        let told = match stored.checksum.filter(|told| told.algorithm == ALGORITHM) {
            Some(told) => told,
            None => {
                let name = ObjectName {
                    version_id: version_id.clone(),
                    ..name.clone()
                };
                let head = self.target.head_object(&name).await?;
                let told = head.checksum.filter(|told| told.algorithm == ALGORITHM);
                told.ok_or(MigrateError::Unproven)?
            }
        };
        is_as_sent(name, Some(&told), &sum)?;
        Ok(Landed {
            identity: identity(version_id.as_deref(), &stored.etag),
            etag: stored.etag,
            version_id,
            checksum: sum,
            by,
            proof: if is_told {
                Proof::BothTell
            } else {
                Proof::TargetTells
            },
        })
    }

    fn sent(&self) -> Sent {
        let watch = Arc::clone(&self.watch);
        Arc::new(move |bytes| watch.event(&Event::Bytes(bytes)))
    }

    async fn land_whole(
        &self,
        what: (&Place, &str, &ListedVersion),
        name: &ObjectName,
        opened: &Opened,
        whole: Bytes,
        seen: &Seen,
    ) -> Result<(Stored, Checksum, bool), MigrateError> {
        if let Some(told) = &opened.told {
            check(told, &whole)?;
        }
        let sum = block_in_place(|| checksum(ALGORITHM, &whole));
        let mut headers = opened.attributes.to_store(opened.tags.clone());
        headers.push((ALGORITHM.header().to_owned(), sum.text()));
        // The entity tag stays what it was, where it was the MD5.
        let (_, _, of) = what;
        let tagged = hex::decode(of.object.etag.trim_matches('"')).ok();
        if let Some(tagged) = tagged.filter(|tagged| tagged.len() == 16) {
            let md5 = block_in_place(|| checksum(Algorithm::Md5, &whole));
            if md5.value == tagged {
                headers.push(("content-md5".to_owned(), md5.text()));
            }
        }
        let request = name.request(Method::PUT).headers(&headers);
        let write = Write::Whole {
            request: &request,
            body: &whole,
        };
        let stored = { self.store(what, name, seen, &write, (&sum, opened.given())) }.await?;
        Ok((stored, sum, opened.told.is_some()))
    }

    async fn land_parts(
        self: &Arc<Self>,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        (name, seen): (&ObjectName, &Seen),
        opened: Opened,
    ) -> Result<(Stored, Checksum, bool), MigrateError> {
        let headers = opened.attributes.to_store(opened.tags.clone());
        let (what, given) = ((&**place, key, of), opened.given());
        let (mut begun, mut before) = self.begun(what, name, &headers).await?;
        let told = { opened.told }.filter(|told| told.algorithm.crc().is_some());
        let also = told.as_ref().map(|told| told.algorithm);
        loop {
            let goes_on = !before.is_empty();
            let upload = Upload {
                name: name.clone(),
                begun,
                body: opened.body.clone(),
                given,
                also: also.filter(|also| *also != ALGORITHM),
            };
            let upload = Arc::new(upload);
            let sums = self.summed(place, &upload, of.object.bytes, before).await?;
            let joined = self.joined(what, seen, &upload, told.as_ref(), sums);
            match joined.await {
                Err(error) if goes_on && error.is_of_parts() => {
                    let what = place.what(key, of);
                    self.tell(&Event::Note(&format!(
                        "{what}: its upload begins anew, for the parts of an earlier run are not \
                         what was noted of them: {error}"
                    )));
                    self.end_upload(place, name, &upload.begun).await?;
                }
                joined => return joined,
            }
            (begun, before) = (self.begin_parts(what, name, &headers).await?, Vec::new());
        }
    }

    /// Has all parts at the target.
    async fn summed(
        self: &Arc<Self>,
        place: &Arc<Place>,
        upload: &Arc<Upload>,
        bytes: u64,
        before: Vec<Part>,
    ) -> Result<Vec<Sum>, MigrateError> {
        let sums = self.parts(place, upload, bytes, before).await;
        let checked = sums.and_then(|sums| upload.body.check_unchanged().map(|()| sums));
        // Of what is at the source by now, another upload is begun.
        if let Err(MigrateError::Mover(
            MoverError::ObjectChanged | MoverError::SourceChanged { .. },
        )) = &checked
        {
            self.end_upload(place, &upload.name, &upload.begun).await?;
        }
        checked
    }

    /// Makes the version of its parts, if they are what the source says of it.
    async fn joined(
        &self,
        what: (&Place, &str, &ListedVersion),
        seen: &Seen,
        upload: &Upload,
        told: Option<&Checksum>,
        sums: Vec<Sum>,
    ) -> Result<(Stored, Checksum, bool), MigrateError> {
        let of_all = sums.iter().map(|sum| (sum.crc, sum.bytes));
        let sum = of_pieces(ALGORITHM, of_all).ok_or(MoverError::Lost)?;
        let is_told = match (told, upload.also) {
            (None, _) => false,
            (Some(told), None) => same(told, &sum).map(|()| true)?,
            // Of parts that came in an earlier run, only one kind is known.
            (Some(told), Some(also)) => {
                let of_all: Option<Vec<_>> = { sums.iter() }
                    .map(|sum| Some((sum.also?, sum.bytes)))
                    .collect();
                match of_all.and_then(|of_all| of_pieces(also, of_all)) {
                    Some(found) => same(told, &found).map(|()| true)?,
                    None => false,
                }
            }
        };
        let done: Vec<DonePart> = sums.into_iter().map(|sum| sum.done).collect();
        let whole = upload.begun.compares.then_some(&sum);
        let write = Write::Complete {
            upload_id: &upload.begun.upload_id,
            parts: &done,
            whole,
        };
        let storing = self.store(what, &upload.name, seen, &write, (&sum, upload.given));
        let stored = storing.await?;
        Ok((stored, sum, is_told))
    }

    async fn parts(
        self: &Arc<Self>,
        place: &Arc<Place>,
        upload: &Arc<Upload>,
        bytes: u64,
        before: Vec<Part>,
    ) -> Result<Vec<Sum>, MigrateError> {
        let mut sums = Vec::new();
        let mut together = Together::new(&self.permits);
        for (number, range) in (1..).zip(pieces(bytes, upload.begun.part_bytes)) {
            let bytes = range.end - range.start;
            let noted = before.iter().find(|part| part.number == number).cloned();
            // A target that compares no checksums would take whatever stands in a note for true.
            if let Some(part) = noted.clone().filter(|_| upload.begun.compares) {
                self.tell(&Event::Kept(bytes));
                sums.push(Sum {
                    done: done_part(upload, number, part.etag.clone(), part.crc, bytes)?,
                    bytes,
                    crc: part.crc,
                    also: None,
                });
                continue;
            }
            let permits = self.permits_for(bytes);
            let (migration, place) = (Arc::clone(self), Arc::clone(place));
            let upload = Arc::clone(upload);
            let work = move |permit| async move {
                let sum = migration.part(&place, &upload, number, range, noted).await;
                drop(permit);
                match sum {
                    Err(MigrateError::Mover(error)) => Err(error),
                    sum => Ok(sum),
                }
            };
            if !together.add(permits, work).await {
                break;
            }
        }
        for sum in together.all().await? {
            sums.push(sum?);
        }
        sums.sort_unstable_by_key(|sum| sum.done.number);
        Ok(sums)
    }

    async fn part(
        &self,
        place: &Place,
        upload: &Upload,
        number: u32,
        range: Range<u64>,
        noted: Option<Part>,
    ) -> Result<Sum, MigrateError> {
        let bytes = range.end - range.start;
        let piece = upload.body.piece(range).await?;
        let polynomial = ALGORITHM.crc().ok_or(MoverError::Lost)?;
        let of_piece = block_in_place(|| crc(polynomial, &piece));
        let also = { upload.also.and_then(Algorithm::crc) }
            .map(|polynomial| block_in_place(|| crc(polynomial, &piece)));
        if let Some(noted) = noted.filter(|noted| noted.crc == of_piece) {
            self.tell(&Event::Kept(bytes));
            return Ok(Sum {
                done: done_part(upload, number, noted.etag, of_piece, bytes)?,
                bytes,
                crc: of_piece,
                also,
            });
        }
        let sum = of_pieces(ALGORITHM, [(of_piece, bytes)]).ok_or(MoverError::Lost)?;
        let header = if upload.begun.compares {
            (ALGORITHM.header().to_owned(), sum.text())
        } else {
            let md5 = block_in_place(|| checksum(Algorithm::Md5, &piece)).value;
            ("content-md5".to_owned(), BASE64.encode(md5))
        };
        let part = (upload.begun.upload_id.as_str(), number);
        let sent = Some(self.sent());
        let (target, headers) = (&self.target, [header]);
        let storing = target.upload_part(&upload.name, part, &headers, piece, sent);
        let stored = storing.await?;
        is_as_sent(&upload.name, stored.checksum.as_ref(), &sum)?;
        let noted = Part {
            number,
            etag: stored.etag.clone(),
            crc: of_piece,
        };
        place.ledger.part(&upload.begun.upload_id, noted)?;
        Ok(Sum {
            done: done_part(upload, number, stored.etag, of_piece, bytes)?,
            bytes,
            crc: of_piece,
            also,
        })
    }
}

/// The version id of what was stored, where it has one of its own.
fn stored_id(stored: &Stored) -> Option<&str> {
    stored.version_id.as_deref().filter(|id| *id != "null")
}

fn done_part(
    upload: &Upload,
    number: u32,
    etag: String,
    crc: u64,
    bytes: u64,
) -> Result<DonePart, MigrateError> {
    let sum = of_pieces(ALGORITHM, [(crc, bytes)]).ok_or(MoverError::Lost)?;
    Ok(DonePart {
        number,
        etag,
        checksum: upload.begun.compares.then(|| sum.text()),
    })
}
