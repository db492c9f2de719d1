//! All clients at once: each asks or stores again when it has been answered; or all of them upload
//! one file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::record::{Counts, Latency, Sample};
use crate::server::client::Client;
use crate::server::process::Server;
use crate::server::protocol::REQUEST_BYTES_MAX;

/// How many requests of one file are under way at once.
pub(super) const STREAMS: usize = 4;

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Ask for bytes.
    Ask,
    /// Have bytes stored, each client at its place.
    Store,
}

impl Work {
    fn once(self, client: &mut dyn Client, bytes: usize, place: usize) -> Result<()> {
        match self {
            Self::Ask => client.ask(bytes),
            Self::Store => client.store(bytes, place),
        }
    }
}

/// How long clients go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Enough {
    /// For so long at least, and until each was answered once: of a machine that is busy with
    /// others, too, there is a speed.
    pub(super) duration: Duration,
    /// Until so many requests of all of them were answered,
    pub(super) requests: usize,
    /// unless that takes longer than this.
    pub(super) at_most: Duration,
}

impl Enough {
    fn is_it(&self, took: Duration, requests: usize) -> bool {
        took >= self.duration && (requests >= self.requests || took >= self.at_most)
    }
}

/// Moves `bytes` at a time until it is enough.
pub(super) fn measure(
    server: &Server,
    work: Work,
    clients: usize,
    bytes: usize,
    enough: Enough,
) -> Result<Sample> {
    let answered = AtomicUsize::new(0);
    let connected: Result<Vec<_>> = (0..clients).map(|_| server.connect()).collect();
    let (cpu, start) = (server.cpu_seconds(), Instant::now());
    let answers = at_once(connected?, |place, client| {
        let is_over = || {
            let requests = answered.fetch_add(1, Ordering::Relaxed) + 1;
            enough.is_it(start.elapsed(), requests)
        };
        timed(is_over, || work.once(client.as_mut(), bytes, place))
    });
    let wall_seconds = start.elapsed().as_secs_f64();
    let answers = answers?.concat();
    Ok(Sample {
        bytes: (answers.len() * bytes) as u64,
        wall_seconds,
        cpu_seconds: server.cpu_seconds() - cpu,
        counts: Some(Counts {
            transfers: answers.len() as u64,
            context_switches: None,
        }),
        latency: Latency::of(answers),
    })
}

/// Does it until, asked after each, it is over; gives what each took.
fn timed(
    is_over: impl Fn() -> bool,
    mut once: impl FnMut() -> Result<()>,
) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    loop {
        let start = Instant::now();
        once()?;
        took.push(start.elapsed());
        if is_over() {
            return Ok(took);
        }
    }
}

/// Uploads one file of so many times 1 MB: [`STREAMS`] requests at once, or by S3 in one.
pub(super) fn upload(server: &Server, requests: usize) -> Result<Sample> {
    let (cpu, start);
    match server {
        Server::S3(s3) => {
            let mut client = s3.connect()?;
            (cpu, start) = (server.cpu_seconds(), Instant::now());
            client.put_file(requests)?;
        }
        Server::Mover { .. } => {
            let connected: Result<Vec<_>> = (0..STREAMS).map(|_| server.connect()).collect();
            let connected = connected?;
            (cpu, start) = (server.cpu_seconds(), Instant::now());
            let next = AtomicUsize::new(0);
            at_once(connected, |_, client| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= requests {
                        return Ok(());
                    }
                    client.store(REQUEST_BYTES_MAX, place)?;
                }
            })?;
        }
    }
    let sample = Sample::new(
        (requests * REQUEST_BYTES_MAX) as u64,
        start.elapsed().as_secs_f64(),
        server.cpu_seconds() - cpu,
    );
    server.forget()?;
    Ok(sample)
}

/// Does something with each of some clients, on a thread each.
fn at_once<C: Send, T: Send>(
    clients: Vec<C>,
    work: impl Fn(usize, &mut C) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let work = &work;
    thread::scope(|scope| {
        let numbered = clients.into_iter().enumerate();
        let working: Vec<_> = numbered
            .map(|(place, mut client)| scope.spawn(move || work(place, &mut client)))
            .collect();
        let joined = working.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn it_goes_on_until_so_many_were_answered_but_not_for_ever() {
        let enough = Enough {
            duration: Duration::from_millis(500),
            requests: 100,
            at_most: Duration::from_secs(5),
        };
        let after = |milliseconds| Duration::from_millis(milliseconds);
        assert!(!enough.is_it(after(499), 1000));
        assert!(enough.is_it(after(500), 100));
        assert!(!enough.is_it(after(4999), 99));
        assert!(enough.is_it(after(5000), 1));
    }

    #[test]
    fn who_begins_when_time_is_over_is_answered_once() {
        assert_eq!(timed(|| true, || Ok(())).unwrap().len(), 1);
        let left = Cell::new(3);
        let is_over = || left.replace(left.get() - 1) == 0;
        assert_eq!(timed(is_over, || Ok(())).unwrap().len(), 4);
    }
}
