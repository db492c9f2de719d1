//! The task that writes records between the heads of an engine's log: what waits for the log is in
//! the next of them, and one conditional creation answers all who waited when it was formed.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use coffer_durable::now_ms;
use coffer_replica::limits::GAP_MIN_MS;
use coffer_replica::{CopyWriter, Covers, Head, RecordWriter};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::is_passing;
use super::Round;
use super::forming::Forming;
use super::records::{InHead, Records};
use crate::copies::{CopyState, Entry, Progress, Synchronous};
use crate::error::{Result, VaultError};
use crate::limits::{COPY_LAST_ROUND, COPY_LOOKS_EVERY, COPY_SYNC_RETRY_MAX, ENGINE_GATHERS_MAX};
use crate::vault::Inner;

/// By which cursor pages are noted for records, where there are any.
pub(in super::super) fn records_cursor(entry: &Entry) -> Option<u32> {
    let with = entry.keystore.as_ref();
    let is_of_engine = with.is_some_and(|with| with.is_of_engine);
    // Those of copies count from 0.
    is_of_engine.then_some(entry.cursor | 1 << 31)
}

/// The records of one log.
pub(super) struct Recording {
    cursor: u32,
    records: Arc<Records>,
    task: Option<(DropGuard, JoinHandle<()>)>,
}

/// What writes them.
struct Recorder {
    inner: Weak<Inner>,
    entry: Entry,
    cursor: u32,
    records: Arc<Records>,
    synchronous: Arc<Synchronous>,
    progress: Arc<Progress>,
    writer: RecordWriter,
    /// How many waited for the last record, and how long that took.
    waited: u64,
    took: Duration,
}

/// What came of forming a record.
enum Step {
    /// The log has all.
    Done,
    /// Only a head can say it, or has to come first.
    WantsHead,
}

impl Recording {
    pub(super) fn new(cursor: u32) -> Self {
        Self {
            cursor,
            records: Arc::default(),
            task: None,
        }
    }
}

/// The side of rounds.
impl Round {
    /// Begins to write records, where there are to be any, behind a head that has all.
    pub(in super::super) fn begin_records(&mut self, writer: &CopyWriter) {
        let (Some(recording), Some(synchronous)) = (&mut self.recording, &self.synchronous) else {
            return;
        };
        if recording.task.is_some() || recording.records.in_head().is_none() {
            return;
        }
        let recorder = Recorder {
            inner: self.inner.clone(),
            entry: self.entry.clone(),
            cursor: recording.cursor,
            records: recording.records.clone(),
            synchronous: synchronous.clone(),
            progress: self.progress.clone(),
            writer: writer.records(),
            waited: 0,
            took: Duration::ZERO,
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(recorder.run(stop.clone()));
        recording.task = Some((stop.drop_guard(), task));
    }

    /// Ends it, with the record that is under way if that is soon done.
    pub(in super::super) async fn end_records(&mut self) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        recording.records.want_head();
        if let Some((stop, mut task)) = recording.task.take() {
            drop(stop);
            if timeout(COPY_LAST_ROUND, &mut task).await.is_err() {
                task.abort();
                // What it had taken is given back by then.
                let _ = task.await;
            }
        }
    }

    /// Whether a round is to be done now. What records met that can't go on is told here.
    pub(in super::super) fn is_head_due(&self) -> Result<bool> {
        let Some(recording) = &self.recording else {
            return Ok(true);
        };
        recording.records.check()?;
        Ok(recording.records.is_head_due() || self.wants_head)
    }

    /// Whether records answer what waits.
    pub(super) fn is_recording(&self) -> bool {
        let recording = self.recording.as_ref();
        recording.is_some_and(|recording| recording.task.is_some())
    }

    /// A round has ended, however it did.
    pub(in super::super) fn round_ended(&self) {
        if let Some(recording) = &self.recording {
            recording.records.tell_problem(self.problem());
            recording.records.round_ended();
        }
    }

    /// What rounds and records share, where there are records.
    pub(in super::super) fn records(&self) -> Option<&Records> {
        self.recording.as_ref().map(|recording| &*recording.records)
    }

    /// Before this time all that was acknowledged is in the log.
    pub(super) fn complete_ms(&self) -> i64 {
        let recorded = self.records().map_or(0, Records::complete_ms);
        self.complete_ms.max(recorded)
    }

    pub(super) fn note_complete(&self, at_ms: i64) {
        if let Some(records) = self.records() {
            records.complete(at_ms);
        }
    }

    /// Has the next head say up to which number records are in it.
    pub(super) fn cover(&self, next: &mut Head, number: u64) {
        if self.recording.is_some() {
            let files = next.covers.map_or(0, |covers| covers.files);
            next.covers = Some(Covers { number, files });
        }
    }

    /// The log has this head.
    pub(super) fn note_in_head(&self, inner: &Inner, head: &Head) {
        if let (true, Some(in_log)) = (self.recording.is_some(), self.files.in_log) {
            inner.freshness.log_has(in_log);
        }
        let (Some(records), Some(system_commits)) = (self.records(), self.files.system_commits)
        else {
            return;
        };
        let keystore = head.keystore.as_ref();
        let in_head = InHead {
            system_commits,
            keystore_generation: keystore.map_or(0, |keystore| keystore.generation()),
        };
        records.head_written(head, in_head);
    }

    /// Blobs that are new are taken by one at a time.
    pub(in super::super) async fn alone_with_blobs(&self) -> Option<OwnedMutexGuard<()>> {
        let blobs = self.records()?.blobs.clone();
        Some(blobs.lock_owned().await)
    }
}

impl Recorder {
    async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.synchronous.one_waits() => self.gather().await,
                // What is not waited for.
                () = sleep(COPY_LOOKS_EVERY) => {}
            }
            match self.step().await {
                Ok(Step::Done) => {}
                Ok(Step::WantsHead) => self.records.head(&stop).await,
                Err(error) if is_passing(&error) => {
                    tracing::warn!(copy = self.entry.name, %error, "a record was not written yet");
                    let problem = error.to_string();
                    self.progress.failed(CopyState::Failing, problem);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = sleep(COPY_SYNC_RETRY_MAX) => {}
                    }
                }
                Err(error) => return self.records.fail(error),
            }
        }
    }

    /// Those who were answered together ask again together: as many as waited for the last record
    /// are waited for, for a short time.
    async fn gather(&self) {
        let gathers = async {
            while self.synchronous.waiting() < self.waited {
                self.synchronous.one_more().await;
            }
        };
        let _ = timeout((self.took / 4).min(ENGINE_GATHERS_MAX), gathers).await;
    }

    async fn step(&mut self) -> Result<Step> {
        let (began_ms, began) = (now_ms(), Instant::now());
        // Before anything is read.
        let covers = self.synchronous.asked();
        let waiting = self.synchronous.waiting();
        let inner = self.inner.upgrade().ok_or(VaultError::ShuttingDown)?;
        if self.records.are_full() {
            return Ok(Step::WantsHead);
        }
        let forming = Forming {
            inner: &inner,
            records: &self.records,
            writer: &self.writer,
            progress: &self.progress,
            cursors: (self.entry.cursor, self.cursor),
        };
        let Some(mut formed) = forming.form().await? else {
            return Ok(Step::WantsHead);
        };
        let after_ms = self.records.complete_ms();
        if !formed.is_empty() {
            // A time without a state is named by heads.
            if began_ms - after_ms > GAP_MIN_MS {
                return Ok(Step::WantsHead);
            }
            (formed.record.as_of_ms, formed.record.after_ms) = (began_ms, after_ms);
            let record = formed.record.clone();
            inner.gate.check_right()?;
            let put = Instant::now();
            let (known, length_bytes) = self.writer.append(record).await?;
            formed.arrived();
            let files = formed.record.files.as_ref();
            let written = (known.number, length_bytes);
            self.records.written(written, formed.commits(), files);
            self.progress.recorded(formed.commits());
            self.progress.put(length_bytes);
            (self.waited, self.took) = (waiting, put.elapsed());
        }
        // What is answered later than the lease lasts acknowledges nothing: by then another may
        // have gone on, and numbers be free again.
        inner.gate.check_right()?;
        self.records.complete(began_ms);
        self.synchronous.reach(covers);
        let problem = self.records.problem();
        self.progress.complete(began_ms, began, problem);
        Ok(Step::Done)
    }
}
