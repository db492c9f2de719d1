//! A store in memory, and what lies between it and the machines: requests and answers come late,
//! twice, or never; and what was asked for is done, however it was answered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::chance::Chance;

/// How long an answer is waited for, as with the stores of clouds.
const PATIENCE: Duration = Duration::from_secs(20);

/// What goes wrong with requests, each once in so many; never, where that is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    /// So many milliseconds a way may take.
    pub(super) slow_ms: u64,
    /// The request does not arrive.
    pub(super) lost: u64,
    /// It arrives when it is waited for no more.
    pub(super) late: u64,
    /// The store does nothing, and says so.
    pub(super) refused: u64,
    /// It is done, and the answer does not arrive.
    pub(super) unheard: u64,
    /// It is done twice.
    pub(super) twice: u64,
}

/// Which ways of a machine are cut off, or long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    pub(super) there: bool,
    pub(super) back: bool,
    /// How much longer each way takes.
    pub(super) slow: Duration,
    /// How much longer the way there takes.
    pub(super) held: Duration,
}

/// The store, and the ways to it.
pub(super) struct Network {
    inner: InMemory,
    chance: Chance,
    weather: Mutex<Weather>,
    cuts: Mutex<Vec<Cut>>,
}

/// The store as one machine reaches it.
#[derive(Clone)]
pub(super) struct FarStore {
    network: Arc<Network>,
    host: usize,
}

/// What becomes of one request.
struct Fate {
    there: Duration,
    back: Duration,
    /// How long nothing is heard where no answer comes.
    silence: Duration,
    /// After which time the connection breaks while the request is on its way.
    broken: Duration,
    /// After which time it is done once more, and whether that is what is heard.
    again: Option<(Duration, bool)>,
    is_lost: bool,
    is_refused: bool,
    is_unheard: bool,
}

impl Network {
    pub(super) fn new(hosts: usize, chance: &Chance) -> Arc<Self> {
        Arc::new(Self {
            inner: InMemory::new(),
            chance: chance.clone(),
            weather: Mutex::default(),
            cuts: Mutex::new(vec![Cut::default(); hosts]),
        })
    }

    /// The store, as who stands beside it reaches it.
    pub(super) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.inner.clone())
    }

    /// The store, as a machine reaches it.
    pub(super) fn store_from(self: &Arc<Self>, host: usize) -> Arc<dyn ObjectStore> {
        let network = self.clone();
        Arc::new(FarStore { network, host })
    }

    pub(super) fn set_weather(&self, weather: Weather) {
        *self.weather.lock() = weather;
    }

    pub(super) fn cut(&self, host: usize, cut: Cut) {
        self.cuts.lock()[host] = cut;
    }

    fn cut_of(&self, host: usize) -> Cut {
        self.cuts.lock()[host]
    }

    fn fate(&self, host: usize) -> Fate {
        let (chance, weather) = (&self.chance, *self.weather.lock());
        let cut = self.cut_of(host);
        let way = || chance.millis(1, 5 + weather.slow_ms) + cut.slow;
        let (mut there, mut broken) = (way() + cut.held, PATIENCE);
        if chance.once_in(weather.late) {
            let (from, until) = chance.of_these(&[(200, 4_000), (1_000, 60_000)]);
            there += chance.millis(from, until);
            if chance.once_in(2) {
                broken = chance.millis(10, 3_000);
            }
        }
        let is_told_soon = chance.once_in(2);
        let is_twice = chance.once_in(weather.twice);
        Fate {
            there,
            back: way(),
            broken,
            silence: if is_told_soon { way() } else { PATIENCE },
            again: is_twice.then(|| (chance.millis(1, 10_000), chance.once_in(2))),
            is_lost: chance.once_in(weather.lost),
            is_refused: chance.once_in(weather.refused),
            is_unheard: chance.once_in(weather.unheard),
        }
    }
}

fn failed(why: &'static str) -> Error {
    Error::Generic {
        store: "far",
        source: why.into(),
    }
}

impl FarStore {
    /// Asks the store for something. What is on its way goes on, whatever becomes of who asked.
    async fn ask<T: Send + 'static>(
        &self,
        run: impl Fn(InMemory) -> BoxFuture<'static, Result<T>> + Send + Sync + 'static,
    ) -> Result<T> {
        let (network, host, fate) = (
            self.network.clone(),
            self.host,
            self.network.fate(self.host),
        );
        let (answer, answered) = oneshot::channel();
        let broken = fate.broken;
        let is_sent = !network.cut_of(host).there && !fate.is_lost;
        tokio::spawn(async move {
            sleep(fate.there).await;
            let mut done = None;
            if fate.is_refused {
                done = Some(Err(failed("slow down")));
            } else if is_sent && !network.cut_of(host).there {
                done = Some(run(network.inner.clone()).await);
            }
            if let (true, Some((after, is_heard))) = (done.is_some(), fate.again) {
                sleep(after).await;
                let second = run(network.inner.clone()).await;
                if is_heard {
                    done = Some(second);
                }
            }
            sleep(fate.back).await;
            match done.filter(|_| !fate.is_unheard && !network.cut_of(host).back) {
                Some(done) => drop(answer.send(done)),
                // Then the connection breaks.
                None => sleep(fate.silence).await,
            }
        });
        match timeout(broken, answered).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(failed("the connection broke")),
            Err(_) => Err(failed("timed out")),
        }
    }
}

impl fmt::Debug for FarStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("far")
    }
}

impl fmt::Display for FarStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("far")
    }
}

#[async_trait]
impl ObjectStore for FarStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let location = location.clone();
        self.ask(move |store| {
            let (location, payload) = (location.clone(), payload.clone());
            let options = options.clone();
            async move { store.put_opts(&location, payload, options).await }.boxed()
        })
        .await
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(failed("no blobs are put here"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let location = location.clone();
        self.ask(move |store| {
            let (location, options) = (location.clone(), options.clone());
            async move { store.get_opts(&location, options).await }.boxed()
        })
        .await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let removed = locations.then(move |location| {
            let this = this.clone();
            async move {
                let location = location?;
                let path = location.clone();
                this.ask(move |store| {
                    let path = path.clone();
                    async move { store.delete(&path).await }.boxed()
                })
                .await?;
                Ok(location)
            }
        });
        removed.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (this, prefix) = (self.clone(), prefix.cloned());
        let found = async move {
            this.ask(move |store| {
                let listed = store.list(prefix.as_ref());
                listed.try_collect::<Vec<_>>().boxed()
            })
            .await
        };
        let found = stream::once(found);
        let found = found.map_ok(|found| stream::iter(found.into_iter().map(Ok)));
        found.try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned();
        self.ask(move |store| {
            let prefix = prefix.clone();
            async move { store.list_with_delimiter(prefix.as_ref()).await }.boxed()
        })
        .await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(failed("nothing is copied here"))
    }
}
