//! The task that writes records between the heads of an engine's log: what waits for the log is in
//! the next of them, and one conditional creation answers all who waited when it was formed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use coffer_durable::now_ms;
use coffer_replica::limits::GAP_MIN_MS;
use coffer_replica::{CopyWriter, Covers, Head, RecordWriter};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::{is_of_here, is_passing};
use super::Round;
use super::fencing::is_of_another;
use super::forming::{Formed, Forming};
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

/// What records are formed of, and whether they may be written.
pub(crate) trait RecordSource: Send + Sync + 'static {
    /// All that the log lacks; none, where only a head can say it.
    fn form(&self) -> impl Future<Output = Result<Option<Formed>>> + Send;

    /// Refuses what may be another gateway's to write by now.
    fn check_right(&self) -> Result<()>;

    /// The time of day, in milliseconds since 1970.
    fn now_ms(&self) -> i64 {
        now_ms()
    }
}

/// What a served vault has that its log lacks.
struct ServedVault {
    inner: Weak<Inner>,
    records: Arc<Records>,
    writer: RecordWriter,
    progress: Arc<Progress>,
    /// By whom blobs are taken, and by whom pages are.
    cursors: (u32, u32),
}

impl RecordSource for ServedVault {
    async fn form(&self) -> Result<Option<Formed>> {
        let inner = self.inner.upgrade().ok_or(VaultError::ShuttingDown)?;
        let forming = Forming {
            inner: &inner,
            records: &self.records,
            writer: &self.writer,
            progress: &self.progress,
            cursors: self.cursors,
        };
        forming.form().await
    }

    fn check_right(&self) -> Result<()> {
        let inner = self.inner.upgrade().ok_or(VaultError::ShuttingDown)?;
        inner.gate.check_right()
    }
}

/// What writes them.
pub(crate) struct Recorder<S> {
    source: S,
    name: String,
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
        let source = ServedVault {
            inner: self.inner.clone(),
            records: recording.records.clone(),
            writer: writer.records(),
            progress: self.progress.clone(),
            cursors: (self.entry.cursor, recording.cursor),
        };
        let recorder = Recorder::new(
            source,
            &self.entry.name,
            (&recording.records, synchronous, &self.progress),
            writer.records(),
        );
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

impl<S: RecordSource> Recorder<S> {
    pub(crate) fn new(
        source: S,
        name: &str,
        (records, synchronous, progress): (&Arc<Records>, &Arc<Synchronous>, &Arc<Progress>),
        writer: RecordWriter,
    ) -> Self {
        Self {
            source,
            name: name.to_owned(),
            records: records.clone(),
            synchronous: synchronous.clone(),
            progress: progress.clone(),
            writer,
            waited: 0,
            took: Duration::ZERO,
        }
    }

    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.synchronous.one_waits() => self.gather().await,
                // What is not waited for.
                () = sleep(COPY_LOOKS_EVERY) => {}
            }
            match self.step().await {
                Ok(Step::Done) => {}
                Ok(Step::WantsHead) => self.records.head(&stop).await,
                Err(error) if is_passing(&error) => {
                    tracing::warn!(copy = self.name, %error, "a record was not written yet");
                    let problem = error.to_string();
                    self.progress.failed(CopyState::Failing, problem);
                    self.progress.fails_here(is_of_here(&error));
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = sleep(COPY_SYNC_RETRY_MAX) => {}
                    }
                }
                Err(error) => {
                    if is_of_another(&error) {
                        self.synchronous.end_right();
                    }
                    return self.records.fail(error);
                }
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
        let (began_ms, began) = (self.source.now_ms(), Instant::now());
        // Before anything is read.
        let covers = self.synchronous.asked();
        let waiting = self.synchronous.waiting();
        if self.records.are_full() {
            return Ok(Step::WantsHead);
        }
        let Some(mut formed) = self.source.form().await? else {
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
            self.source.check_right()?;
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
        self.synchronous.reach(covers)?;
        self.records.complete(began_ms);
        let problem = self.records.problem();
        self.progress.complete(began_ms, began.into_std(), problem);
        Ok(Step::Done)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests;
