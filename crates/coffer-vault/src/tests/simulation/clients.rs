//! Clients: each calls one gateway after the other, whichever serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use tokio::time::{sleep, timeout};

use super::catalog::KEYS;
use super::gateway::Gateway;
use super::history::{Answer, Ask, Call, DELETED};
use super::world::{BUCKETS, World};

/// How long a client waits.
const PATIENCE: Duration = Duration::from_secs(90);

/// All gateways of a run.
pub(super) type Gateways = Arc<Vec<Arc<Gateway>>>;

/// A client.
pub(super) struct Client {
    pub(super) world: Arc<World>,
    pub(super) gateways: Gateways,
    /// The values that were written by now, by all.
    pub(super) values: Arc<AtomicU64>,
    /// Where it was answered last.
    pub(super) last: usize,
}

impl Client {
    /// Goes on until then.
    pub(super) async fn run(mut self, until: Duration) {
        // What it saw last, by bucket and key.
        let mut seen = [[0; KEYS]; BUCKETS.len()];
        while self.world.now() < until {
            let bucket = self.world.chance.below(BUCKETS.len() as u64 + 1) as usize;
            let ask = self.asks(seen.get(bucket));
            let answer = self.call(bucket, ask).await;
            if let Some(seen) = seen.get_mut(bucket) {
                match (ask, answer) {
                    (_, Answer::Values(values)) => *seen = values,
                    (Ask::Get { key }, Answer::Value(value))
                    | (Ask::PutOver { key, .. }, Answer::Else(value)) => seen[key] = value,
                    _ => {}
                }
            }
            let is_idle = !self.world.reads_most || answer == Answer::Refused;
            let most = if is_idle { 400 } else { 60 };
            sleep(self.world.chance.millis(0, most)).await;
        }
    }

    /// What it asks of a bucket of which it saw this last; none: of what stands for `system.db`.
    fn asks(&self, seen: Option<&[u64; KEYS]>) -> Ask {
        let chance = &self.world.chance;
        let value = self.values.fetch_add(1, Ordering::SeqCst) + 1;
        let Some(seen) = seen else {
            return match chance.below(if self.world.reads_most { 20 } else { 4 }) {
                0 => Ask::Put { key: 0, value },
                _ => Ask::Get { key: 0 },
            };
        };
        let key = chance.below(KEYS as u64) as usize;
        if self.world.reads_most && !chance.once_in(8) {
            return Ask::Get { key };
        }
        match chance.below(10) {
            0..=2 => Ask::Get { key },
            3 => Ask::List,
            4..=6 => Ask::Put { key, value },
            7 => {
                let value = value + DELETED;
                Ask::Put { key, value }
            }
            8 => Ask::PutNew { key, value },
            _ => {
                let seen = seen[key];
                Ask::PutOver { key, seen, value }
            }
        }
    }

    /// Calls a gateway, and has it noted.
    pub(super) async fn call(&mut self, bucket: usize, ask: Ask) -> Answer {
        let (world, chance) = (&self.world, &self.world.chance);
        if chance.once_in(3) || !self.gateways[self.last].serves() {
            // Some ask one that serves no more, without knowing that.
            let all = 0..self.gateways.len();
            let serving: Vec<usize> = all.filter(|at| self.gateways[*at].serves()).collect();
            self.last = if serving.is_empty() || chance.once_in(10) {
                chance.below(self.gateways.len() as u64) as usize
            } else {
                chance.of_these(&serving)
            };
        }
        let gateway = self.gateways[self.last].clone();
        let sent = world.tick();
        sleep(chance.millis(1, 10)).await;
        let id = BUCKETS.get(bucket).copied();
        let work = gateway.clone().call(id, ask).boxed();
        // What is asked for goes on when it is waited for no more.
        let asked = gateway.host.spawn(work);
        let answer = match timeout(PATIENCE, asked).await {
            Ok(Ok(answer)) => answer,
            _ => Answer::InDoubt,
        };
        sleep(chance.millis(1, 10)).await;
        let call = Call {
            bucket,
            ask,
            answer,
            sent,
            answered: world.tick(),
        };
        world.called(call);
        answer
    }
}
