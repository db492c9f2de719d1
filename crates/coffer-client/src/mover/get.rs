//! From an object to a file or a stream.

mod compare;

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::{JoinHandle, block_in_place};

use self::compare::{Checked, Compared, Told, same, unproven};
use crate::limits::PART_BYTES;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Moved};
use crate::mover::fetch::Sink;
use crate::mover::plan::pieces;
use crate::mover::target::{Content, Piece, Target};
use crate::mover::times::{MTIME_HEADER, mtime};
use crate::mover::together::Together;
use crate::mover::{Mover, alone};
use crate::s3::checksum::{Algorithm, of_pieces};
use crate::s3::{Answer, Composite, ObjectHead, ObjectName, Wanted};

/// A piece that is there, and how it came.
struct Here {
    piece: Piece,
    was_kept: bool,
    was_sealed: bool,
}

/// A piece on its way to a stream, by a task that ends with what waits for it.
struct Fetching {
    task: JoinHandle<Result<(u64, bool), MoverError>>,
    sink: Arc<Sink>,
}

impl Fetching {
    /// Ends it. A task that is still at work when the runtime goes would panic.
    async fn end(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Mover {
    /// Fetches an object to a file. One that is there is replaced, when all has come.
    ///
    /// # Errors
    /// [`MoverError`]; what came stays beside the file, for the next time.
    pub async fn get(self: &Arc<Self>, name: &ObjectName, to: &Path) -> Result<Moved, MoverError> {
        let head = self.head(name).await?;
        let bytes = head.bytes;
        self.tell(&Event::Found { files: 1, bytes });
        self.fetch_known(name, &head, (to, to), None).await
    }

    /// The same with an object of which something is known, and of which an answer may have begun
    /// to come: to a file that is reached by a path, and told by another.
    pub(super) async fn fetch_known(
        self: &Arc<Self>,
        name: &ObjectName,
        head: &ObjectHead,
        (path, to): (&Path, &Path),
        first: Option<Answer>,
    ) -> Result<Moved, MoverError> {
        let told = head.checksum.as_ref().map(|checksum| checksum.algorithm);
        let algorithm = told.filter(|told| told.crc().is_some());
        let algorithm = algorithm.unwrap_or(Algorithm::Crc64Nvme);
        let wanted = Wanted::of(name, head);
        let content = self.content_of(&wanted, algorithm);
        let (target, noted) = block_in_place(|| Target::open(path, &content))?;
        let target = Arc::new(target);
        let here = self
            .all_pieces(&wanted, &target, noted, algorithm, first)
            .await;
        let here = match here {
            Ok(here) => here,
            Err(error) => {
                // What still receives was told to stop.
                alone(&target).await;
                return Err(ended(&target, error));
            }
        };
        let target = Arc::into_inner(target).ok_or(MoverError::Lost)?;
        let compared = match self.compare(name, head, &target, &here, algorithm).await {
            Ok(compared) => compared,
            Err(error) => return Err(ended(&target, error)),
        };
        let modified = head.header(MTIME_HEADER).and_then(mtime);
        block_in_place(|| target.finish(modified))?;
        Ok(self.fetched(name, head, &here, compared, to.display().to_string()))
    }

    fn content_of(&self, wanted: &Wanted, crc: Algorithm) -> Content {
        let ObjectName {
            bucket,
            key,
            version_id,
        } = wanted.name.clone();
        Content {
            endpoint: self.client.endpoint().text().to_owned(),
            bucket,
            key,
            version_id,
            etag: wanted.noted_tag(),
            modified: wanted.modified.clone(),
            bytes: wanted.bytes,
            piece_bytes: PART_BYTES,
            crc: crc.name().to_owned(),
        }
    }

    /// Has all pieces in the file: those of before, if they still sum up to what was noted, and
    /// the others from the server, many beside each other.
    async fn all_pieces(
        self: &Arc<Self>,
        wanted: &Wanted,
        target: &Arc<Target>,
        noted: Vec<Piece>,
        algorithm: Algorithm,
        mut first: Option<Answer>,
    ) -> Result<Vec<Here>, MoverError> {
        let mut together = Together::new(&self.permits);
        for range in pieces(wanted.bytes, PART_BYTES) {
            let noted = { noted.iter() }.find(|piece| (piece.start..piece.end) == range);
            let (mover, wanted) = (Arc::clone(self), wanted.clone());
            let (target, noted) = (Arc::clone(target), noted.cloned());
            let first = first.take();
            let work = move |permit| async move {
                let piece = mover
                    .piece(wanted, target, range, noted, algorithm, first)
                    .await;
                drop(permit);
                piece
            };
            if !together.add(1, work).await {
                break;
            }
        }
        let mut here: Vec<Here> = together.all().await?;
        here.sort_unstable_by_key(|here| here.piece.start);
        Ok(here)
    }

    async fn piece(
        self: Arc<Self>,
        wanted: Wanted,
        target: Arc<Target>,
        range: Range<u64>,
        noted: Option<Piece>,
        algorithm: Algorithm,
        first: Option<Answer>,
    ) -> Result<Here, MoverError> {
        if let Some(piece) = noted {
            let found = block_in_place(|| target.sum(range.clone(), algorithm))?;
            if of_pieces(algorithm, [(piece.crc, range.end - range.start)]) == Some(found) {
                self.tell(&Event::Kept(range.end - range.start));
                return Ok(Here {
                    piece,
                    was_kept: true,
                    was_sealed: false,
                });
            }
        }
        let sink = Arc::new(Sink::File(Arc::clone(&target)));
        let fetched = self.fetch(&wanted, range.clone(), algorithm, sink, first);
        let (crc, was_sealed) = fetched.await?;
        let piece = Piece {
            start: range.start,
            end: range.end,
            crc,
        };
        block_in_place(|| target.note(&piece))?;
        target.begin_to_sync();
        Ok(Here {
            piece,
            was_kept: false,
            was_sealed,
        })
    }

    /// Compares what came with what the server tells.
    async fn compare(
        &self,
        name: &ObjectName,
        head: &ObjectHead,
        target: &Target,
        here: &[Here],
        algorithm: Algorithm,
    ) -> Result<Compared, MoverError> {
        let pieces =
            { here.iter() }.map(|here| (here.piece.crc, here.piece.end - here.piece.start));
        let of_all = of_pieces(algorithm, pieces).ok_or(MoverError::Lost)?;
        let was_all_sealed = here.iter().all(|here| here.was_sealed) && !here.is_empty();
        let may_be_none = head.composite.as_ref().is_some_and(Composite::is_likely);
        if was_all_sealed && may_be_none && head.checksum.is_none() {
            // Seals prove more than what may be no checksum.
            return Ok(unproven(&of_all, true));
        }
        match self.told(name, head).await? {
            Told::Nothing => Ok(unproven(&of_all, was_all_sealed)),
            Told::Whole(told) if told.algorithm == algorithm => {
                same(of_all.to_string(), told.to_string(), Checked::Whole)
            }
            told => self.compare_file(target, head.bytes, &told),
        }
    }

    fn fetched(
        &self,
        name: &ObjectName,
        head: &ObjectHead,
        here: &[Here],
        compared: Compared,
        to: String,
    ) -> Moved {
        self.tell_of_unproven(name, head, compared.checked);
        let kept = here.iter().filter(|here| here.was_kept);
        let moved = Moved {
            from: format!("s3://{}/{}", name.bucket, name.key),
            to,
            bytes: head.bytes,
            kept_bytes: kept.map(|here| here.piece.end - here.piece.start).sum(),
            checksum: Some(compared.found),
            verified: compared.checked.is_by_checksum(),
            checked: Some(compared.checked.word()),
            stored: None,
            transfer: self.transfer_of(here.iter().any(|here| here.was_sealed)),
            version_id: head.version_id.clone(),
        };
        self.tell(&Event::Done(&moved));
        moved
    }

    pub(super) fn transfer_of(&self, was_sealed: bool) -> &'static str {
        match (was_sealed, self.client.endpoint().is_https()) {
            (true, _) => "sealed",
            (false, true) => "tls",
            (false, false) => "http",
        }
    }

    /// Fetches an object to a stream, in order. What was written when it fails, was written.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn fetch_stream(
        self: &Arc<Self>,
        name: &ObjectName,
        out: &mut (dyn Write + Send),
    ) -> Result<Moved, MoverError> {
        let head = self.head(name).await?;
        let bytes = head.bytes;
        self.tell(&Event::Found { files: 1, bytes });
        let wanted = Wanted::of(name, &head);
        let told = self.told(name, &head).await?;
        let mut summing = told.summing();
        let mut waiting = VecDeque::new();
        let mut write = |piece: &[u8]| {
            let written = block_in_place(|| {
                summing.update(piece);
                out.write_all(piece)
            });
            written.map_err(MoverError::local("writing", Path::new("standard output")))
        };
        let written = self.write_pieces(&wanted, &mut waiting, &mut write).await;
        for fetching in waiting {
            fetching.end().await;
        }
        let (was_sealed, was_all_sealed) = written?;
        out.flush()
            .map_err(MoverError::local("writing", Path::new("standard output")))?;
        let compared = summing.compared(&told, was_all_sealed);
        let compared = compared.map_err(MoverError::of_output)?;
        let here = Here {
            piece: Piece {
                start: 0,
                end: 0,
                crc: 0,
            },
            was_kept: false,
            was_sealed,
        };
        Ok(self.fetched(name, &head, &[here], compared, "-".to_owned()))
    }

    /// Fetches pieces, many beside each other, and writes them in order. Those that are under way
    /// when it fails are left in `waiting`. Gives whether any went sealed, and whether all did.
    async fn write_pieces(
        self: &Arc<Self>,
        wanted: &Wanted,
        waiting: &mut VecDeque<Fetching>,
        write: &mut (dyn FnMut(&[u8]) -> Result<(), MoverError> + Send),
    ) -> Result<(bool, bool), MoverError> {
        let mut rest = pieces(wanted.bytes, PART_BYTES);
        let mut spare: Vec<Vec<u8>> = Vec::new();
        let (mut was_sealed, mut was_all_sealed) = (false, wanted.bytes > 0);
        loop {
            while waiting.len() < self.options.jobs
                && let Some(range) = rest.next()
            {
                // What was written before is room for what comes: fresh memory would cost more than
                // all that is done with it.
                let mut memory = spare.pop().unwrap_or_default();
                memory.reserve_exact((range.end - range.start) as usize);
                let sink = Arc::new(Sink::Memory(Mutex::new(memory)));
                let (mover, wanted, into) = (Arc::clone(self), wanted.clone(), Arc::clone(&sink));
                let task = tokio::spawn(async move {
                    mover
                        .fetch(&wanted, range, Algorithm::Crc64Nvme, into, None)
                        .await
                });
                waiting.push_back(Fetching { task, sink });
            }
            let Some(mut fetching) = waiting.pop_front() else {
                return Ok((was_sealed, was_all_sealed));
            };
            let (_, is_sealed) = (&mut fetching.task)
                .await
                .unwrap_or(Err(MoverError::Lost))?;
            was_sealed |= is_sealed;
            was_all_sealed &= is_sealed;
            if let Sink::Memory(piece) = &*fetching.sink {
                let mut piece = std::mem::take(&mut *piece.lock());
                write(&piece)?;
                piece.clear();
                spare.push(piece);
            }
        }
    }
}

/// The error of a file that did not come whole. What is there of it is removed, unless it is worth
/// keeping: pieces that are noted, for what may go well later.
fn ended(target: &Target, error: MoverError) -> MoverError {
    if target.has_pieces() {
        if error.is_of_access() {
            return error.with_kept(FETCHED);
        }
        if error.may_go_on() {
            return error;
        }
    }
    target.discard();
    error
}

/// What stays of a file whose object can't be read any more.
const FETCHED: &str = "what was fetched of it is kept: the same command, once it is let in again \
                       (by new credentials, or a login), goes on from there";

/// Where an object of this name goes: into a folder, or to a file.
///
/// # Errors
/// [`MoverError::Unsuitable`] when it goes into a folder, and has no name there.
pub fn target_path(key: &str, to: &Path) -> Result<PathBuf, MoverError> {
    let path = to.to_owned();
    if !to.as_os_str().as_encoded_bytes().ends_with(b"/") && !path.is_dir() {
        return Ok(path);
    }
    let name = key.rsplit('/').next().unwrap_or_default();
    if matches!(name, "" | "." | "..") || name.contains('\0') {
        return Err(MoverError::Unsuitable {
            path,
            problem: "is a folder, and the object's name has no name for a file in it: -r fetches \
                      all objects whose names begin so, and a target that names a file this one",
        });
    }
    Ok(path.join(name))
}
