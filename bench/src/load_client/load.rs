//! Many clients at once, on one thread: each connection takes the next request as soon as it has
//! the answer to its last.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use rustls::ClientConfig;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet};

use crate::error::{BenchError, Doing, Result};
use crate::load_client::connection::{Connection, Request, Scratch};
use crate::load_client::content::Content;
use coffer_measure::cpu_time::thread_cpu_seconds;

/// Nothing that is measured here takes as long.
const STALLED_AFTER: Duration = Duration::from_secs(300);

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Of each request, in nanoseconds.
    pub latencies_ns: Vec<u64>,
    /// Lengths of the bodies that went either way.
    pub body_bytes: u64,
    /// What each connection had moved when the first request of all was answered.
    pub moved_at_first_end: Vec<u64>,
    /// CPU seconds of the client's thread.
    pub client_cpu_seconds: f64,
}

/// The load client: a runtime for the thread it was made on.
pub struct Client {
    runtime: Runtime,
    scratch: Rc<Scratch>,
}

/// Connections that stand ready.
pub struct Connections(Vec<Connection>);

impl Client {
    /// For the calling thread, which should be pinned.
    pub fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .doing(|| "starting the load client".into())?;
        Ok(Self {
            runtime,
            scratch: Rc::default(),
        })
    }

    /// Runs what is not load: requests that prepare a server, or ask how it stands.
    pub fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Opens connections, one after the other.
    pub fn connect(
        &self,
        address: SocketAddr,
        config: &Arc<ClientConfig>,
        count: usize,
    ) -> Result<Connections> {
        self.runtime.block_on(async {
            let mut connections = Vec::with_capacity(count);
            for _ in 0..count {
                connections.push(Connection::open(address, Arc::clone(config)).await?);
            }
            Ok(Connections(connections))
        })
    }

    /// Sends all requests over all connections, and returns when all are answered. The first
    /// error ends the run.
    pub fn run(&self, connections: &mut Connections, requests: Vec<Request>) -> Result<Outcome> {
        let outcomes = self.run_together(vec![(connections, requests)])?;
        Ok(outcomes.into_iter().next().unwrap_or_default())
    }

    /// The same of several servers at once, each with its own connections and requests. Of each the
    /// CPU time is that of all.
    pub fn run_together(
        &self,
        groups: Vec<(&mut Connections, Vec<Request>)>,
    ) -> Result<Vec<Outcome>> {
        let cpu_before = thread_cpu_seconds();
        let start = Instant::now();
        let tasks = LocalSet::new();
        let runs = groups
            .into_iter()
            .map(|(connections, requests)| async move {
                let shared = Rc::new(Shared {
                    next: Cell::new(0),
                    requests,
                    moved_bytes: connections.0.iter().map(Connection::counted_anew).collect(),
                    scratch: Rc::clone(&self.scratch),
                    outcome: RefCell::default(),
                });
                shared.clone().drive(&mut connections.0).await?;
                let mut outcome = shared.outcome.take();
                outcome.elapsed = start.elapsed();
                Ok::<_, BenchError>(outcome)
            });
        let run = tasks.run_until(try_join_all(runs));
        let outcomes = self
            .runtime
            .block_on(async { tokio::time::timeout(STALLED_AFTER, run).await });
        let mut outcomes = outcomes.map_err(|_| BenchError::Http {
            what: "no answer for minutes".into(),
        })??;
        for outcome in &mut outcomes {
            outcome.client_cpu_seconds = thread_cpu_seconds() - cpu_before;
        }
        Ok(outcomes)
    }

    /// Sends one request on a connection of its own.
    pub fn once(
        &self,
        address: SocketAddr,
        config: &Arc<ClientConfig>,
        request: Request,
    ) -> Result<()> {
        let mut connection = self.connect(address, config, 1)?;
        self.run(&mut connection, vec![request]).map(drop)
    }
}

/// What the connections of a run have in common.
struct Shared {
    next: Cell<usize>,
    requests: Vec<Request>,
    /// Of each connection.
    moved_bytes: Vec<Rc<Cell<u64>>>,
    scratch: Rc<Scratch>,
    outcome: RefCell<Outcome>,
}

impl Shared {
    async fn drive(self: Rc<Self>, connections: &mut Vec<Connection>) -> Result<()> {
        let mut tasks = JoinSet::new();
        for connection in connections.drain(..) {
            tasks.spawn_local(Rc::clone(&self).work(connection));
        }
        while let Some(ended) = tasks.join_next().await {
            match ended {
                Ok(connection) => connections.push(connection?),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
        Ok(())
    }

    async fn work(self: Rc<Self>, mut connection: Connection) -> Result<Connection> {
        while let Some(request) = self.requests.get(self.next.replace(self.next.get() + 1)) {
            let start = Instant::now();
            connection.exchange(request, &self.scratch).await?;
            let latency_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let mut outcome = self.outcome.borrow_mut();
            if outcome.latencies_ns.is_empty() {
                outcome.moved_at_first_end = self.moved_bytes.iter().map(|it| it.get()).collect();
            }
            outcome.latencies_ns.push(latency_ns);
            outcome.body_bytes += body_bytes(request);
        }
        Ok(connection)
    }
}

fn body_bytes(request: &Request) -> u64 {
    let length_bytes = |content: Content| content.length_bytes;
    request.body.map_or(0, length_bytes) + request.expected.content().map_or(0, length_bytes)
}
