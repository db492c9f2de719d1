//! A gateway that serves: reads and changes of its catalogs, and what waits for the log. The rules
//! are the vault's own (`copies`, `fence`, `replica::round`); what stands for the vault's rooms of
//! objects asks them in the same places.

use std::sync::Arc;

use coffer_replica::RecordWriter;
use coffer_seal::BucketId;
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::catalog::{Catalogs, take_for_record};
use super::chance::Chance;
use super::history::{Answer, Ask};
use super::host::Host;
use crate::copies::{Progress, Synchronous, WaitedFor};
use crate::error::Result;
use crate::fence::{ChangeGate, ServingRight};
use crate::limits::ENGINE_WRITE_WAIT;
use crate::replica::round::forming::Formed;
use crate::replica::round::recorder::{RecordSource, Recorder};
use crate::replica::round::records::{InHead, Records};

/// What a gateway has of the log.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) catalogs: Catalogs,
    /// Stands for `system.db`, which heads alone say: how many commits it has, and what it says.
    pub(super) system: Arc<Mutex<(u64, u64)>>,
}

/// What serves.
pub(super) struct Owner {
    pub(super) host: Arc<Host>,
    pub(super) held: Held,
    pub(super) records: Arc<Records>,
    pub(super) synchronous: Arc<Synchronous>,
    pub(super) progress: Arc<Progress>,
    gate: ChangeGate,
    waited_for: WaitedFor,
    chance: Chance,
}

/// Of what records are formed.
struct OfOwner(Arc<Owner>);

impl Owner {
    pub(super) fn new(
        host: Arc<Host>,
        held: Held,
        right: ServingRight,
        chance: &Chance,
    ) -> Arc<Self> {
        let gate = ChangeGate::default().by_right(Some(right));
        let synchronous = Synchronous::new("engine", ENGINE_WRITE_WAIT, gate.right());
        let waited_for = WaitedFor::default();
        waited_for.hold_readers();
        waited_for.add(synchronous.clone());
        Arc::new(Self {
            host,
            held,
            records: Arc::default(),
            synchronous,
            progress: Arc::new(Progress::new()),
            gate,
            waited_for,
            chance: chance.clone(),
        })
    }

    /// Answers a call; of a bucket that is none, of what stands for `system.db`.
    pub(super) async fn call(&self, bucket: Option<BucketId>, ask: Ask) -> Answer {
        match ask {
            Ask::Get { .. } | Ask::List => {
                let read = self.read(bucket, ask).await;
                read.unwrap_or(Answer::InDoubt)
            }
            _ => self.change(bucket, ask).await,
        }
    }

    /// Time that passes in threads and disks.
    async fn work(&self) {
        sleep(self.chance.millis(0, 3)).await;
    }

    async fn read(&self, bucket: Option<BucketId>, ask: Ask) -> Result<Answer> {
        self.gate.check_right()?;
        self.work().await;
        let answer = self.look(bucket, ask);
        self.waited_for.settle_read(bucket).await?;
        Ok(answer)
    }

    fn look(&self, bucket: Option<BucketId>, ask: Ask) -> Answer {
        let mut values = match bucket {
            Some(bucket) => self.held.catalogs.lock()[&bucket].values,
            None => [self.held.system.lock().1, 0, 0],
        };
        ask.apply(&mut values)
    }

    async fn change(&self, bucket: Option<BucketId>, ask: Ask) -> Answer {
        let refused = self
            .gate
            .check()
            .and_then(|()| self.waited_for.assure_reachable());
        if refused.is_err() {
            return Answer::Refused;
        }
        self.work().await;
        let under_way = self.waited_for.begin_change(bucket);
        // That of who commits next.
        if self.gate.check().is_err() {
            return Answer::Refused;
        }
        self.work().await;
        let answer = self.commit(bucket, ask);
        self.work().await;
        let settled = match answer {
            Answer::Done | Answer::Replaced(_) => {
                self.waited_for.acknowledge_change(under_way.as_ref()).await
            }
            _ => self.waited_for.settle_read(bucket).await,
        };
        settled.map_or(Answer::InDoubt, |()| answer)
    }

    /// From here on it shows.
    fn commit(&self, bucket: Option<BucketId>, ask: Ask) -> Answer {
        let Some(bucket) = bucket else {
            let mut system = self.held.system.lock();
            let mut values = [system.1, 0, 0];
            let answer = ask.apply(&mut values);
            if answer == Answer::Done {
                *system = (system.0 + 1, values[0]);
            }
            return answer;
        };
        let mut catalogs = self.held.catalogs.lock();
        let Some(catalog) = catalogs.get_mut(&bucket) else {
            return Answer::Refused;
        };
        let (before, mut values) = (catalog.values, catalog.values);
        let answer = ask.apply(&mut values);
        for (key, (value, before)) in values.into_iter().zip(before).enumerate() {
            if value != before {
                catalog.change(key, value);
            }
        }
        answer
    }

    /// What no record can add to, as it is now.
    fn in_head_now(&self) -> InHead {
        InHead {
            system_commits: self.held.system.lock().0,
            keystore_generation: 1,
        }
    }

    /// Begins to write records.
    pub(super) fn begin_records(
        self: &Arc<Self>,
        writer: RecordWriter,
    ) -> (CancellationToken, JoinHandle<()>) {
        let with = (&self.records, &self.synchronous, &self.progress);
        let recorder = Recorder::new(OfOwner(self.clone()), "engine", with, writer);
        let stop = CancellationToken::new();
        let task = self.host.spawn(recorder.run(stop.clone()).boxed());
        (stop, task)
    }
}

impl RecordSource for OfOwner {
    async fn form(&self) -> Result<Option<Formed>> {
        let owner = &self.0;
        if owner.records.in_head().is_none() {
            return Ok(None);
        }
        let mut formed = Formed::default();
        let buckets: Vec<BucketId> = owner.held.catalogs.lock().keys().copied().collect();
        for bucket in buckets {
            let Some(known) = owner.records.commits_of(bucket) else {
                return Ok(None);
            };
            if owner.held.catalogs.lock()[&bucket].commits <= known {
                continue;
            }
            owner.work().await;
            let Some((pages, taken)) = take_for_record(&owner.held.catalogs, bucket, known) else {
                return Ok(None);
            };
            formed.record.buckets.push(pages);
            formed.taken.push(taken);
        }
        // Last, for what is below is never older than what holds it.
        owner.work().await;
        let is_all = owner.records.in_head() == Some(owner.in_head_now());
        Ok(is_all.then_some(formed))
    }

    fn check_right(&self) -> Result<()> {
        self.0.gate.check_right()
    }

    fn now_ms(&self) -> i64 {
        self.0.host.wall_ms()
    }
}
