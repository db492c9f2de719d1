//! What all machines of a run share, and what is told of it.

use std::sync::Arc;
use std::time::Duration;

use coffer_replica::{BucketState, Copy, CopyId, CopyRecord, CopyWriter, Covers};
use coffer_seal::{BucketId, KeystoreId, SecretKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::chance::Chance;
use super::history::Call;
use super::network::Network;
use super::rounds::SYSTEM;

/// The buckets that there are.
pub(super) const BUCKETS: [BucketId; 2] = [BucketId([1; 16]), BucketId([2; 16])];

/// A run.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) network: Arc<Network>,
    /// The log, and its key.
    pub(super) id: CopyId,
    pub(super) key: SecretKey,
    /// Whether clients read most of the time, and often.
    pub(super) reads_most: bool,
    /// How long entries of the log stay.
    pub(super) keep_ms: i64,
    began: Instant,
    events: Mutex<Events>,
}

#[derive(Default)]
struct Events {
    /// How many there were: each has a number, in the order in which they happened.
    count: u64,
    calls: Vec<Call>,
    notes: Vec<String>,
    complaint: Option<String>,
}

impl World {
    /// A store with a log that holds empty catalogs, and no machine yet.
    pub(super) async fn begin(seed: u64, hosts: usize) -> Arc<Self> {
        let chance = Chance::of(seed);
        let network = Network::new(hosts, &chance);
        let record = CopyRecord::new(KeystoreId([1; 16]));
        // A day in small in half of the runs: then numbers are free again that others may yet use.
        let keep = chance.of_these(&[Duration::from_secs(6), Duration::from_secs(24 * 3_600)]);
        let world = Arc::new(Self {
            id: record.copy,
            key: SecretKey::generate(),
            reads_most: chance.once_in(2),
            keep_ms: keep.as_millis() as i64,
            network,
            began: Instant::now(),
            events: Mutex::default(),
            chance,
        });
        world.found(&record).await;
        world
    }

    async fn found(&self, record: &CopyRecord) {
        let copy = Copy::new(self.network.store(), self.id, &self.key);
        let copy = copy.by_clock(Arc::new(|| 1_i64));
        let mut writer = CopyWriter::begin(copy, record).await.expect("a new log");
        let mut next = writer.head().clone();
        for bucket in BUCKETS {
            let segment = Catalog::new(0, Default::default())
                .for_head(usize::MAX)
                .segment;
            let put = writer.put_segment(bucket, None, segment).await;
            let state: BucketState = put.expect("a first segment");
            next.buckets.insert(bucket.to_string(), state);
        }
        let piece = writer.put_piece(vec![0; 16]).await.expect("a first piece");
        next.files.insert(SYSTEM.to_owned(), vec![piece]);
        (next.as_of_ms, next.keep_ms) = (1, self.keep_ms);
        let number = writer.known().number;
        next.covers = Some(Covers { number, files: 0 });
        writer.commit(next).await.expect("a first head");
    }

    /// The number of what happens now.
    pub(super) fn tick(&self) -> u64 {
        let mut events = self.events.lock();
        events.count += 1;
        events.count
    }

    /// For how long it has gone on.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn called(&self, call: Call) {
        self.note(&format!("{call:?}"));
        self.events.lock().calls.push(call);
    }

    /// Notes what happened, for who looks into a run that failed.
    pub(super) fn note(&self, what: &str) {
        let note = format!("{:9.3} {what}", self.now().as_secs_f64());
        self.events.lock().notes.push(note);
    }

    /// Something is as it must never be.
    pub(super) fn complain(&self, what: &str) {
        self.note(what);
        let complaint = &mut self.events.lock().complaint;
        complaint.get_or_insert_with(|| what.to_owned());
    }

    pub(super) fn complaint(&self) -> Option<String> {
        self.events.lock().complaint.clone()
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.events.lock().calls.clone()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.events.lock().notes.clone()
    }
}
