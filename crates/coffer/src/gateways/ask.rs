//! Asking the gateway that serves how far all has come: one question at a time, for all reads that
//! came before it was begun.

use std::collections::HashSet;
use std::sync::Arc;

use coffer_vault::{
    AskedAt, BucketId, FollowerReads, ReadAnswer, ReadLease, ReadQuestion, Settling, StandbyLink,
    Turn,
};
use http::uri::Authority;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::error::Error;
use crate::gateways::connector::GatewayConnector;
use crate::gateways::forward::{at, pool_of};
use crate::gateways::identity::GatewayIdentity;
use crate::gateways::told;
use crate::limits::{
    READS_ANSWER_MAX_BYTES, READS_ANSWER_WAIT, READS_ASKED_EVERY, READS_LOOKED_FOR_EVERY,
    READS_RENEWED_EVERY, READS_SETTLED_EVERY, READS_STANDING_RENEWED_EVERY, READS_WAITING_MAX,
};

/// Asks for all reads of a gateway that follows.
pub struct ReadAsker {
    asks: mpsc::Sender<Ask>,
    reads: FollowerReads,
    tasks: [JoinHandle<()>; 2],
}

/// A read that waits.
struct Ask {
    bucket: Option<BucketId>,
    answer: oneshot::Sender<(Arc<ReadAnswer>, AskedAt)>,
}

impl Drop for ReadAsker {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl ReadAsker {
    /// Asks whose turn it is to serve.
    ///
    /// # Errors
    /// Of the TLS library.
    pub fn begin(
        identity: &GatewayIdentity,
        turns: watch::Receiver<Turn>,
        (reads, link): (FollowerReads, StandbyLink),
    ) -> Result<Self, Error> {
        let (asks, asked) = mpsc::channel(READS_WAITING_MAX);
        let asking = Asking {
            pool: pool_of(identity)?,
            turns,
            reads: reads.clone(),
            link,
            asked,
        };
        let tended = reads.clone();
        let tending = async move {
            loop {
                sleep(READS_SETTLED_EVERY).await;
                tended.tend();
            }
        };
        Ok(Self {
            asks,
            reads,
            tasks: [tokio::spawn(asking.run()), tokio::spawn(tending)],
        })
    }

    /// Whether a read that has come may be answered here: one in this bucket, or in none.
    pub async fn lease(&self, bucket: Option<BucketId>) -> Option<ReadLease> {
        if let Some(lease) = self.reads.lease_standing(bucket) {
            return Some(lease);
        }
        let (answer, answered) = oneshot::channel();
        self.asks.try_send(Ask { bucket, answer }).ok()?;
        let (answer, asked) = answered.await.ok()?;
        self.reads.lease(&answer, asked, bucket)
    }
}

/// What asks.
struct Asking {
    pool: Client<GatewayConnector, Full<Bytes>>,
    turns: watch::Receiver<Turn>,
    reads: FollowerReads,
    /// What brings other states.
    link: StandbyLink,
    asked: mpsc::Receiver<Ask>,
}

impl Asking {
    async fn run(mut self) {
        let mut settling = None;
        let mut looked: Option<Instant> = None;
        let mut began = Instant::now();
        while let Some(mut waiting) = self.due(settling, began).await {
            while let Ok(ask) = self.asked.try_recv() {
                waiting.push(ask);
            }
            began = Instant::now();
            settling = self.ask(waiting).await;
            let is_due = looked.is_none_or(|at| at.elapsed() >= READS_LOOKED_FOR_EVERY);
            if is_due && settling == Some(Settling::Behind) {
                self.link.look();
                looked = Some(Instant::now());
            }
            sleep_until(began + READS_ASKED_EVERY).await;
        }
    }

    /// When it is to be asked again: the read that waits, if any does. None, when none can any
    /// more.
    async fn due(&mut self, settling: Option<Settling>, last: Instant) -> Option<Vec<Ask>> {
        // It is asked whether it may go on, whether anyone reads or not.
        let pause = match settling {
            Some(Settling::Settled) => READS_RENEWED_EVERY,
            _ => READS_SETTLED_EVERY,
        };
        let end = last + pause;
        let mut next = last;
        loop {
            // And about what is being read that needs no question yet.
            next += READS_STANDING_RENEWED_EVERY;
            let until = if self.reads.are_standing() {
                next.min(end)
            } else {
                end
            };
            match timeout_at(until, self.asked.recv()).await {
                Ok(ask) => return ask.map(|ask| vec![ask]),
                Err(_) if until == end || self.reads.are_being_used() => return Some(Vec::new()),
                Err(_) => {}
            }
        }
    }

    /// Asks for these, and tells them; who is told nothing can't be answered here. None, where none
    /// could be asked.
    async fn ask(&self, waiting: Vec<Ask>) -> Option<Settling> {
        let buckets: HashSet<BucketId> = waiting.iter().filter_map(|ask| ask.bucket).collect();
        let (question, asked) = self.reads.question(buckets);
        let answer = timeout(READS_ANSWER_WAIT, self.put(&question)).await;
        let answer = answer.ok().flatten()?;
        let answer = Arc::new(answer);
        let settling = self.reads.take(&answer, asked);
        for ask in waiting {
            let _ = ask.answer.send((answer.clone(), asked));
        }
        Some(settling)
    }

    async fn put(&self, question: &ReadQuestion) -> Option<ReadAnswer> {
        let address = match &*self.turns.borrow() {
            Turn::Other { address } => address.parse().ok()?,
            Turn::Mine | Turn::Unknown => return None,
        };
        put_at(&self.pool, &address, question).await
    }
}

/// Whether the gateway at this address serves the engine now, as it says itself: none says so that
/// has not the engine's key.
///
/// # Errors
/// Of the TLS library.
pub async fn serves(identity: &GatewayIdentity, address: &str) -> Result<bool, Error> {
    let Ok(address) = address.parse() else {
        return Ok(false);
    };
    let pool = pool_of(identity)?;
    let (question, _) = FollowerReads::default().question([]);
    let answer = timeout(READS_ANSWER_WAIT, put_at(&pool, &address, &question)).await;
    Ok(answer.is_ok_and(|answer| answer.is_some()))
}

async fn put_at(
    pool: &Client<GatewayConnector, Full<Bytes>>,
    address: &Authority,
    question: &ReadQuestion,
) -> Option<ReadAnswer> {
    let body = serde_json::to_vec(question).ok()?;
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = at(address, &"/".parse().ok()?)?;
    told::mark_question(request.headers_mut());
    let answer = pool.request(request).await;
    let answer = answer.inspect_err(|error| {
        tracing::debug!(%error, to = %address, "the gateway that serves was not asked");
    });
    let answer = answer.ok().filter(|answer| answer.status().is_success())?;
    let body = Limited::new(answer.into_body(), READS_ANSWER_MAX_BYTES);
    let body = body.collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}
