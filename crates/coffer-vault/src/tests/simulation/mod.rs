//! The engine of several gateways in a simulation: the same seed gives the same run, in which
//! minutes take milliseconds.
//!
//! Real are the lease and its keeper, the right to serve, what acknowledgements and readers wait
//! for, the task that writes records, what it shares with rounds, and all that reads and writes the
//! sealed log. What stands for the rest (catalogs of a few pages, rounds, following and taking
//! over) asks these in the order of the real ones. Not here: SQLCipher, blobs, keystores, the audit
//! log, buckets that come and go, forwarding, the first start of an engine:
//! `docs/decisions/0065-a-simulation-with-seeds.md`.
//!
//! `COFFER_SIMULATION_SEEDS` says how many seeds are run, `COFFER_SIMULATION_FROM` from which on;
//! `COFFER_SIMULATION_SEED` runs one, and tells all that happens in it.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

mod chance;

mod host;

mod network;

mod catalog;

mod history;

mod owner;

mod rounds;

mod world;

mod gateway;

mod clients;

mod adversary;

use self::adversary::Adversary;
use self::clients::{Client, Gateways};
use self::gateway::Gateway;
use self::history::{Answer, Ask, Call};
use self::world::{BUCKETS, World};

/// So many gateways, and so many clients.
const GATEWAYS: usize = 3;
const CLIENTS: usize = 4;

/// How many seeds are run unless it is said otherwise.
const SEEDS: u64 = 150;

/// For so long things go wrong.
const TROUBLE: Duration = Duration::from_secs(60);

/// Within this time after that, all is answered again.
const PEACE: Duration = Duration::from_secs(90);

/// What came of a run.
struct Outcome {
    calls: Vec<Call>,
    notes: Vec<String>,
    failure: Option<String>,
}

fn run(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(play(seed))
}

async fn play(seed: u64) -> Outcome {
    let world = World::begin(seed, GATEWAYS).await;
    let gateways = (0..GATEWAYS).map(|number| Gateway::new(number, &world));
    let gateways: Gateways = Arc::new(gateways.collect());
    gateways.iter().for_each(Gateway::start);
    let values = Arc::<AtomicU64>::default();
    let client = |last| Client {
        world: world.clone(),
        gateways: gateways.clone(),
        values: values.clone(),
        last,
    };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(client(number % GATEWAYS).run(TROUBLE)))
        .collect();
    let adversary = Adversary {
        world: world.clone(),
        gateways: gateways.clone(),
        is_over: Arc::new(AtomicBool::new(false)),
    };
    adversary.clone().run(TROUBLE).await;
    adversary.end();
    look_at_all(&world, client(0)).await;
    for client in clients {
        if client.await.is_err() {
            world.complain("a client's task has failed");
        }
    }
    if gateways.iter().any(|gateway| gateway.host.has_panicked()) {
        world.complain("a task of a gateway has panicked");
    }
    let calls = world.calls();
    let failure = world.complaint().or_else(|| history::check(&calls).err());
    Outcome {
        calls,
        notes: world.notes(),
        failure,
    }
}

/// Reads all that there is, when nothing goes wrong any more.
async fn look_at_all(world: &World, mut client: Client) {
    let until = world.now() + PEACE;
    for bucket in 0..=BUCKETS.len() {
        let ask = match BUCKETS.get(bucket) {
            Some(_) => Ask::List,
            None => Ask::Get { key: 0 },
        };
        while let Answer::Refused | Answer::InDoubt = client.call(bucket, ask).await {
            if world.now() > until {
                return world.complain("none serves, though nothing has gone wrong for long");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs the next seeds, until one fails.
fn run_all(next: &AtomicU64, until: u64, tells: bool) {
    loop {
        let seed = next.fetch_add(1, Ordering::SeqCst);
        if seed >= until {
            return;
        }
        let outcome = run(seed);
        if tells {
            let _ = writeln!(std::io::stderr(), "{}", outcome.notes.join("\n"));
        }
        if let Some(failure) = outcome.failure {
            next.store(until, Ordering::SeqCst);
            panic!(
                "seed {seed}: {failure}\nto see all of it: COFFER_SIMULATION_SEED={seed} cargo \
                 test -p coffer-vault --lib simulation -- --nocapture"
            );
        }
    }
}

#[test]
fn whatever_goes_wrong_nothing_acknowledged_is_lost_and_no_answer_is_stale() {
    let only = number_of("COFFER_SIMULATION_SEED");
    let from = only.or_else(|| number_of("COFFER_SIMULATION_FROM"));
    let from = from.unwrap_or(1);
    let count = number_of("COFFER_SIMULATION_SEEDS").unwrap_or(SEEDS);
    let until = only.map_or(from + count, |only| only + 1);
    let next = AtomicU64::new(from);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| run_all(&next, until, only.is_some()));
        }
    });
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 1..4 {
        let (first, second) = (run(seed), run(seed));
        assert_eq!(first.notes, second.notes, "seed {seed}");
        assert!(first.calls.iter().any(|call| call.answer == Answer::Done));
    }
}
