//! A gateway from its start on: it follows the log, takes it over when it has the lease, and serves
//! until it has it no more. This stands for `standby` and for the program's `serve::engine`; the
//! lease, the log and the right to serve are theirs.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use coffer_replica::{BucketState, Copy, CopyReader, CopyWriter, KnownHead};
use coffer_seal::BucketId;
use futures::FutureExt;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::catalog::Catalog;
use super::history::{Answer, Ask};
use super::host::Host;
use super::owner::{Held, Owner};
use super::rounds::{Rounds, SYSTEM};
use super::world::World;
use crate::engine::{LeaseKeeper, Turn};
use crate::error::{Result, VaultError};
use crate::fence::ServingRight;
use crate::limits::STANDBY_LOOKS_EVERY;

/// As the program waits before it tries again, and for requests under way.
const RETRY: Duration = Duration::from_millis(500);

/// A gateway.
pub(super) struct Gateway {
    pub(super) host: Arc<Host>,
    world: Arc<World>,
    serving: Mutex<Option<Arc<Owner>>>,
    stop: Mutex<CancellationToken>,
    /// What it has seen of the log: its folder keeps that.
    known: Mutex<Option<KnownHead>>,
}

/// What a follower has.
struct Follower {
    copy: Copy,
    catalogs: BTreeMap<BucketId, (BucketState, Catalog)>,
    system: (u64, u64),
}

impl Gateway {
    pub(super) fn new(number: usize, world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            host: Host::new(number, &world.chance),
            world: world.clone(),
            serving: Mutex::default(),
            stop: Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// Starts it.
    pub(super) fn start(self: &Arc<Self>) {
        let stop = CancellationToken::new();
        *self.stop.lock() = stop.clone();
        self.host.spawn(self.clone().run(stop).boxed());
    }

    /// Has it come to an end.
    pub(super) fn stop(&self) {
        self.stop.lock().cancel();
    }

    /// Ends it at once; what it has in its folder is kept, or lost.
    pub(super) fn kill(&self, keeps_folder: bool) {
        self.host.die();
        *self.serving.lock() = None;
        if !keeps_folder {
            *self.known.lock() = None;
        }
    }

    /// Whether it serves.
    pub(super) fn serves(&self) -> bool {
        self.serving.lock().is_some()
    }

    /// Answers a call, if it serves.
    pub(super) async fn call(self: Arc<Self>, bucket: Option<BucketId>, ask: Ask) -> Answer {
        let serving = self.serving.lock().clone();
        match serving {
            Some(owner) => owner.call(bucket, ask).await,
            None => Answer::Refused,
        }
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) {
        let store = self.world.network.store_from(self.host.number);
        let address = format!("gateway-{}", self.host.number);
        let keeper = loop {
            let spawn = |work| self.host.spawn(work);
            match LeaseKeeper::begin_at(store.clone(), address.clone(), spawn).await {
                Ok(keeper) => break keeper,
                Err(_) => sleep(RETRY).await,
            }
        };
        while !stop.is_cancelled() {
            self.turn(&keeper, &stop).await;
            keeper.wants(false);
            if !stop.is_cancelled() {
                sleep(RETRY).await;
            }
        }
        keeper.end().await;
    }

    /// Follows, and serves when it is this one's turn.
    async fn turn(&self, keeper: &LeaseKeeper, stop: &CancellationToken) {
        let store = self.world.network.store_from(self.host.number);
        let host = self.host.clone();
        let copy = Copy::new(store, self.world.id, &self.world.key);
        let mut follower = Follower {
            copy: copy.by_clock(Arc::new(move || host.wall_ms())),
            catalogs: BTreeMap::new(),
            system: (0, 0),
        };
        let mut turns = keeper.turns();
        let mut has_state = false;
        let taken = loop {
            if stop.is_cancelled() {
                return;
            }
            let wait = if has_state && *turns.borrow_and_update() == Turn::Mine {
                let right = keeper.right();
                match self.take_over(&mut follower, right.clone()).await {
                    Ok(writer) => break (writer, right),
                    Err(error) => self.note(&format!("did not take over: {error}")),
                }
                RETRY
            } else {
                match self.follow(&mut follower).await {
                    Ok(()) => {
                        has_state = true;
                        keeper.wants(true);
                    }
                    Err(error) => self.note(&format!("falls behind: {error}")),
                }
                STANDBY_LOOKS_EVERY
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep(wait) => {}
                _ = turns.changed(), if has_state => {}
            }
        };
        self.serve(follower, taken, keeper, stop).await;
    }

    fn note(&self, what: &str) {
        self.world
            .note(&format!("gateway {}: {what}", self.host.number));
    }

    async fn follow(&self, follower: &mut Follower) -> Result<()> {
        let reader = self.newest(&follower.copy).await?;
        follower.fetch(&reader, &self.world).await
    }

    /// The log as it is now, which is not to be older than it was.
    async fn newest(&self, copy: &Copy) -> Result<CopyReader> {
        let known = self.known.lock().clone();
        let reader = CopyReader::newest(copy.clone(), known.as_ref()).await?;
        *self.known.lock() = Some(reader.known().clone());
        Ok(reader)
    }

    /// As `standby::take_over` does it.
    async fn take_over(&self, follower: &mut Follower, right: ServingRight) -> Result<CopyWriter> {
        let near = self.newest(&follower.copy).await?;
        follower.fetch(&near, &self.world).await?;
        right.check()?;
        let writer = CopyWriter::resume_engine(near.copy().clone(), Some(near.known())).await?;
        let last = CopyReader::of(&writer)?;
        *self.known.lock() = Some(last.known().clone());
        follower.fetch(&last, &self.world).await?;
        Ok(writer)
    }

    /// Serves for as long as the lease holds.
    async fn serve(
        &self,
        follower: Follower,
        (writer, right): (CopyWriter, ServingRight),
        keeper: &LeaseKeeper,
        stop: &CancellationToken,
    ) {
        self.note(&format!("serves from entry {} on", writer.known().number));
        let catalogs = follower.catalogs.into_iter();
        let catalogs = catalogs.map(|(id, (_, catalog))| (id, catalog)).collect();
        let held = Held {
            catalogs: Arc::new(Mutex::new(catalogs)),
            system: Arc::new(Mutex::new(follower.system)),
        };
        let owner = Owner::new(self.host.clone(), held, right.clone(), &self.world.chance);
        let rounds = Rounds::new(owner.clone(), writer, self.world.keep_ms);
        let end_rounds = CancellationToken::new();
        let task = self.host.spawn(rounds.run(end_rounds.clone()).boxed());
        *self.serving.lock() = Some(owner.clone());
        let mut turns = keeper.turns();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = turns.wait_for(|turn| *turn != Turn::Mine) => break,
                () = sleep(RETRY) => {
                    if !right.holds() || owner.progress.is_given_up() {
                        break;
                    }
                }
            }
        }
        self.note("serves no more");
        *self.serving.lock() = None;
        // Requests under way may end.
        sleep(RETRY).await;
        end_rounds.cancel();
        let _ = task.await;
    }
}

impl Follower {
    /// Comes as far as the log, or stays where it was.
    async fn fetch(&mut self, reader: &CopyReader, world: &World) -> Result<()> {
        let mut fetched = BTreeMap::new();
        for (id, state) in &reader.head().buckets {
            let id = BucketId::from_hex(id).ok_or(VaultError::Damaged)?;
            let before = self.catalogs.get(&id);
            if let Some(before) = before.filter(|(before, _)| before == state) {
                fetched.insert(id, before.clone());
                continue;
            }
            let file = File::from(memfd_create("catalog", MemfdFlags::empty()).map_err(io)?);
            if let Some((_, catalog)) = before {
                file.write_all_at(&catalog.bytes(), 0).map_err(io)?;
            }
            let before = before.map(|(before, _)| before);
            reader.catalog_after(id, state, before, Some(&file)).await?;
            let mut bytes = vec![0; file.metadata().map_err(io)?.len() as usize];
            file.read_exact_at(&mut bytes, 0).map_err(io)?;
            let Some(catalog) = Catalog::from_pages(&bytes, state.commits) else {
                let what = "a catalog was put together of pages of several commits";
                world.complain(what);
                return Err(VaultError::Damaged);
            };
            fetched.insert(id, (state.clone(), catalog));
        }
        let mut says = Vec::new();
        for piece in reader.head().files.get(SYSTEM).into_iter().flatten() {
            says.extend(reader.piece(piece).await?);
        }
        let word = |at: usize| {
            let word = says.get(at..at + 8).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_be_bytes)
        };
        (self.catalogs, self.system) = (fetched, (word(0), word(8)));
        Ok(())
    }
}

/// Of files in memory none is expected to fail.
fn io(error: impl Into<std::io::Error>) -> VaultError {
    coffer_replica::ReplicaError::File(error.into()).into()
}
