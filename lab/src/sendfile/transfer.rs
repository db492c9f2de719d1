//! Transfers of one file in one way, measured once: the client's clock, and what the server's
//! thread cost.

use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing, LabError, Result};
use crate::host::kernel_tls;
use crate::measuring::observe;
use crate::record::{Counts, Latency, Sample};
use crate::sendfile::way::{Files, Keys, Way};
use crate::sendfile::{client, server};
use coffer_measure::cpu_time::ThreadCost;
use coffer_measure::loopback::tcp_pair;
use coffer_measure::tls::Tls;

/// Of fewer transfers it says nothing what 99 % of them stay within.
const TIMED_MIN: u64 = 50;

/// What is transferred.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) way: Way,
    pub(super) files: &'a Files,
    pub(super) keys: &'a Keys,
    pub(super) tls: &'a Tls,
    pub(super) transfers: u64,
    /// Each transfer has a connection of its own, whose making is measured too.
    pub(super) each_connects: bool,
    /// The server's thread waits for those who observe it, and tells them when it begins and ends.
    pub(super) observed: bool,
}

/// Measures once.
pub(super) fn measure(task: &Task<'_>) -> Result<Sample> {
    let (connections, each) = if task.each_connects {
        (task.transfers, 1)
    } else {
        (1, task.transfers)
    };
    thread::scope(|scope| {
        let (ready, told) = mpsc::channel();
        let (calls, called) = mpsc::channel();
        let serving = scope.spawn(move || serve(task, each, &called, &ready));
        let received = (|| -> Result<(f64, Vec<Duration>)> {
            let begun = Instant::now();
            let (mut start, mut took) = (None, Vec::new());
            for _ in 0..connections {
                let called = Instant::now();
                let mut client = connect(task, &calls)?;
                let _ = told.recv();
                // Where connections are not measured, the clock starts behind the first.
                let first = if task.each_connects {
                    begun
                } else {
                    Instant::now()
                };
                start.get_or_insert(first);
                for _ in 0..each {
                    // Connecting counts where each transfer does.
                    let asked = if task.each_connects {
                        called
                    } else {
                        Instant::now()
                    };
                    client.fetch(task.files, task.keys)?;
                    took.push(asked.elapsed());
                }
            }
            Ok((start.unwrap_or(begun).elapsed().as_secs_f64(), took))
        })();
        drop(calls);
        let served = serving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sample(task, received?, &served?)
    })
}

/// The client's end of a new connection; the other goes to the server.
fn connect(task: &Task<'_>, calls: &mpsc::Sender<TcpStream>) -> Result<client::Client> {
    let (at_client, at_server) = tcp_pair().doing(|| "connecting".into())?;
    if task.way.through_kernel_tls() {
        kernel_tls::enable(&at_server, &at_client).doing(|| "kernel TLS".into())?;
    }
    // When the server is gone it says itself what happened.
    let _ = calls.send(at_server);
    client::Client::connect(task.way, at_client, task.tls)
}

/// The server's thread; tells when it is ready, and in the end what it cost.
fn serve(
    task: &Task<'_>,
    each: u64,
    called: &mpsc::Receiver<TcpStream>,
    ready: &mpsc::Sender<()>,
) -> Result<ThreadCost> {
    let mark = || {
        if task.observed {
            observe::mark();
        }
    };
    let mut before = None;
    for stream in called {
        if task.each_connects {
            before.get_or_insert_with(ThreadCost::so_far);
        }
        let mut server = server::Server::connect(task.way, stream, task.tls, task.keys)?;
        if task.observed {
            observe::wait().doing(|| "waiting to be observed".into())?;
        }
        // The client can't be told when it is gone: then it says itself what happened.
        let _ = ready.send(());
        before.get_or_insert_with(ThreadCost::so_far);
        mark();
        for _ in 0..each {
            server.serve(task.files, task.keys)?;
        }
        mark();
        if !task.each_connects {
            break;
        }
    }
    let (before, after) = (
        before.unwrap_or_else(ThreadCost::so_far),
        ThreadCost::so_far(),
    );
    Ok(ThreadCost {
        cpu_seconds: after.cpu_seconds - before.cpu_seconds,
        context_switches: after.context_switches - before.context_switches,
    })
}

fn sample(
    task: &Task<'_>,
    (wall_seconds, took): (f64, Vec<Duration>),
    served: &ThreadCost,
) -> Result<Sample> {
    if wall_seconds <= 0.0 {
        return Err(LabError::Data {
            file: "sendfile".into(),
            what: "took no time".into(),
        });
    }
    Ok(Sample {
        bytes: task.files.bytes * task.transfers,
        wall_seconds,
        cpu_seconds: served.cpu_seconds,
        counts: Some(Counts {
            transfers: task.transfers,
            context_switches: Some(served.context_switches),
        }),
        latency: Latency::of(took).filter(|_| task.transfers >= TIMED_MIN),
    })
}
