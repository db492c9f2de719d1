//! The log as others use it: from many threads, with one that writes.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::error::AuditError;
use crate::event::Event;
use crate::format::checkpoint::{CheckpointSigner, PUBLIC_KEY_BYTES};
use crate::format::record::{AuditKey, Recorded};
use crate::limits::PRUNE_MIN_AGE;
use crate::read::copy::{LogExtent, copy};
use crate::read::end::End;
use crate::read::reader::Reader;
use crate::verify::finding::Report;
use crate::verify::verifier::verify_on;
use crate::write::open::{Opened, open_on};
use crate::write::prune::{Order, Pruned, find_old};
use crate::write::queue::{Answer, Batch, Queue};
use crate::write::writer::{Options, Writer};
use coffer_durable::{Disk, Folder, now_ms, sync_folder};
use parking_lot::{Condvar, Mutex};

/// An open audit log. One process has it open at a time: its caller holds the data folder's lock.
pub struct AuditLog {
    folder: PathBuf,
    key: AuditKey,
    shared: Arc<Shared>,
    /// Held while it is pruned: one at a time.
    pruning: Mutex<()>,
    thread: Mutex<Option<JoinHandle<Result<(), AuditError>>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    pushed: Condvar,
    /// Where the log ends, as far as it is durable.
    end: Arc<Mutex<End>>,
    /// Why the last group could not be written.
    failure: Mutex<Option<AuditError>>,
}

impl AuditLog {
    /// Opens the log in a folder, which is made if it is not there, and begins a log if there is
    /// none. Blocks.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written, or is of a later version. Damage is no error: the log
    /// goes on in a new segment, and [`Opened::damage`] says what was found.
    pub fn open(
        folder: &Path,
        key: AuditKey,
        signer: Box<dyn CheckpointSigner>,
        options: Options,
    ) -> Result<(Self, Opened), AuditError> {
        make_folder(folder).map_err(AuditError::io("make", "the folder"))?;
        let disk = Box::new(Folder::new(folder));
        let (writer, opened) = open_on(disk, key.clone(), signer, options)?;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            pushed: Condvar::new(),
            end: Arc::new(Mutex::new(writer.end())),
            failure: Mutex::default(),
        });
        let writing = shared.clone();
        let thread = thread::Builder::new()
            .name("coffer-audit".to_owned())
            .spawn(move || writing.write_all(writer))
            .map_err(AuditError::io("start", "the writing thread"))?;
        let log = Self {
            folder: folder.to_path_buf(),
            key,
            shared,
            pruning: Mutex::new(()),
            thread: Mutex::new(Some(thread)),
        };
        Ok((log, opened))
    }

    /// Records an event, and returns when it is durable. Blocks.
    ///
    /// # Errors
    ///
    /// When it couldn't be written, is no event, or the log is closed. The next call tries again.
    pub fn append(&self, event: Event) -> Result<Recorded, AuditError> {
        let (told, outcome) = sync_channel(1);
        // That the caller is gone is no reason to fail.
        self.append_then(event, move |recorded| drop(told.send(recorded)))?;
        outcome.recv().unwrap_or(Err(AuditError::Closed))
    }

    /// Queues an event, and calls `then` from another thread when it is durable, or couldn't be
    /// written; `then` must not block. It is dropped uncalled if the writing thread breaks off.
    ///
    /// # Errors
    ///
    /// When it is no event, too many wait, or the log is closed; `then` is not called.
    pub fn append_then(
        &self,
        event: Event,
        then: impl FnOnce(Result<Recorded, AuditError>) + Send + 'static,
    ) -> Result<(), AuditError> {
        let event = event.encode(now_ms())?;
        let answer: Answer = Box::new(then);
        self.shared.queue.lock().push(event, answer)?;
        self.shared.pushed.notify_one();
        Ok(())
    }

    /// Records an event that need not be waited for: within a second. When too many wait it is
    /// dropped, and their count recorded. Does not block.
    ///
    /// # Errors
    ///
    /// When it is no event.
    pub fn note(&self, event: Event) -> Result<(), AuditError> {
        let event = event.encode(now_ms())?;
        self.shared.queue.lock().push_note(event);
        self.shared.pushed.notify_one();
        Ok(())
    }

    /// The last durable record.
    pub fn last(&self) -> Recorded {
        self.shared.end.lock().last
    }

    /// Why the last group could not be written; `None` when it could.
    pub fn failure(&self) -> Option<AuditError> {
        self.shared.failure.lock().clone()
    }

    /// Reads from record `from` on, as far as the log is durable by then.
    pub fn reader(&self, from: u64) -> Reader {
        let disk = Box::new(Folder::new(&self.folder));
        Reader::new(disk, self.key.clone(), from, Some(self.shared.end.clone()))
    }

    /// As [`verify`](crate::verify::verifier()), up to where the log is durable now. Blocks.
    ///
    /// # Errors
    ///
    /// As [`verify`](crate::verify::verifier()).
    pub fn verify(
        &self,
        public_key: &[u8; PUBLIC_KEY_BYTES],
        wanted: Option<&Recorded>,
    ) -> Result<Report, AuditError> {
        let disk = Folder::new(&self.folder);
        loop {
            let end = *self.shared.end.lock();
            let report = verify_on(&disk, &self.key, public_key, wanted, Some(&end));
            // What was pruned meanwhile may have been found missing.
            if self.shared.end.lock().cut == end.cut {
                return report;
            }
        }
    }

    /// Removes the segments all of whose records are from before this time, in milliseconds since
    /// 1970, and none that is younger than [`PRUNE_MIN_AGE`]; a signed record says what was
    /// removed, with these details. `None`: there was no such segment. Old records that share the
    /// last segment with younger ones are parted from those that come, so that they can go later.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// [`AuditError::Unreadable`] when what is old does not verify: it is kept. Otherwise when a
    /// file couldn't be read, written or removed; what is left of the latter goes with the next
    /// call or start.
    pub fn prune(
        &self,
        before_ms: i64,
        details: Vec<(&'static str, String)>,
    ) -> Result<Option<Pruned>, AuditError> {
        let min_age_ms = i64::try_from(PRUNE_MIN_AGE.as_millis()).unwrap_or(i64::MAX);
        self.prune_before(before_ms.min(now_ms().saturating_sub(min_age_ms)), details)
    }

    pub(crate) fn prune_before(
        &self,
        before_ms: i64,
        details: Vec<(&'static str, String)>,
    ) -> Result<Option<Pruned>, AuditError> {
        let _pruning = self.pruning.lock();
        let disk = || -> Box<dyn Disk> { Box::new(Folder::new(&self.folder)) };
        let old = find_old(disk, &self.key, &self.shared.end, before_ms)?;
        let (told, outcome) = sync_channel(1);
        let order = Order { old, details, told };
        self.shared.queue.lock().push_order(order)?;
        self.shared.pushed.notify_one();
        outcome.recv().unwrap_or(Err(AuditError::Closed))
    }

    /// Copies the log, as far as it is durable now, into another folder, which is made anew, and
    /// gives the last record that the copy has. Records are written meanwhile, none is pruned.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written; what is in the folder then is no log.
    pub fn copy_into(&self, folder: &Path) -> Result<Recorded, AuditError> {
        let _pruning = self.pruning.lock();
        let made = match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => make_folder(folder),
        };
        made.map_err(AuditError::io("make", "the folder of a copy"))?;
        let end = *self.shared.end.lock();
        copy(&self.folder, folder, &self.key, &end)?;
        Ok(end.last)
    }

    /// What of the log is durable now, for who copies it as it grows.
    pub fn extent(&self) -> LogExtent {
        let end = *self.shared.end.lock();
        LogExtent::new(&end, &self.key)
    }

    /// Takes no more events, writes those that wait and a last checkpoint. Blocks.
    ///
    /// # Errors
    ///
    /// When that couldn't be written; the log is closed all the same.
    pub fn close(&self) -> Result<(), AuditError> {
        self.shared.queue.lock().is_closed = true;
        self.shared.pushed.notify_one();
        let thread = self.thread.lock().take();
        match thread.map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(closed)) => closed,
            Some(Err(_panicked)) => Err(AuditError::Closed),
        }
    }
}

/// Makes the folder, if it is not there, and its name durable.
fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Also of one that is there: its maker may have been stopped before this.
    path.parent().map_or(Ok(()), sync_folder)
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // Who wants to know calls `close`.
        let _ = self.close();
    }
}

impl Shared {
    /// Writes group after group, until the log is closed.
    fn write_all(&self, mut writer: Writer) -> Result<(), AuditError> {
        let closing = CloseOnPanic(self);
        while let Some(mut batch) = self.next_batch() {
            let order = batch.order.take();
            let outcome = writer.write(&batch.events);
            *self.end.lock() = writer.end();
            self.answer(batch, outcome);
            if let Some(order) = order {
                order.run(&mut writer, &self.end);
            }
        }
        let closed = writer.close();
        *self.end.lock() = writer.end();
        std::mem::forget(closing);
        closed
    }

    /// Waits for something to write; `None` when there is nothing and the log is closed.
    fn next_batch(&self) -> Option<Batch> {
        let mut queue = self.queue.lock();
        loop {
            let now = Instant::now();
            if queue.is_due(now) {
                return Some(queue.take());
            }
            if queue.is_closed {
                return None;
            }
            match queue.notes_due() {
                None => self.pushed.wait(&mut queue),
                Some(due) => drop(self.pushed.wait_until(&mut queue, due)),
            }
        }
    }

    fn answer(&self, mut batch: Batch, outcome: Result<Vec<Recorded>, AuditError>) {
        let failure = outcome.as_ref().err().cloned();
        if let Some(error) = &failure {
            let mut queue = self.queue.lock();
            if queue.is_closed {
                tracing::error!(%error, "the last notes were not written");
            } else {
                queue.take_back(&mut batch);
            }
        }
        let has_failed = failure.is_some();
        if let (Some(error), None) = (&failure, &*self.failure.lock()) {
            tracing::error!(%error, "the audit log can't be written: what needs it is refused");
        }
        if std::mem::replace(&mut *self.failure.lock(), failure).is_some() && !has_failed {
            tracing::info!("the audit log can be written again");
        }
        match outcome {
            Ok(recorded) => {
                for (answer, recorded) in batch.answers.into_iter().zip(recorded) {
                    answer(Ok(recorded));
                }
            }
            Err(error) => {
                for answer in batch.answers {
                    answer(Err(error.clone()));
                }
            }
        }
    }
}

/// Should writing panic, no caller waits for what is never written.
struct CloseOnPanic<'a>(&'a Shared);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.is_closed = true;
        while queue.is_due(Instant::now()) {
            drop(queue.take());
        }
    }
}
