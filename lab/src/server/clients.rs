//! All clients at once: each asks again when it has been answered.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::record::{Latency, Sample};
use crate::server::process::Server;

/// Asks for `bytes` at a time, for `duration`.
pub(super) fn measure(
    server: &Server,
    clients: usize,
    bytes: u32,
    duration: Duration,
) -> Result<Sample> {
    let connected: Result<Vec<_>> = (0..clients).map(|_| server.connect()).collect();
    let connected = connected?;
    let (cpu, start) = (server.cpu_seconds(), Instant::now());
    let answers: Result<Vec<Vec<f64>>> = thread::scope(|scope| {
        let asking: Vec<_> = connected
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || -> Result<Vec<f64>> {
                    let mut answers = Vec::new();
                    while start.elapsed() < duration {
                        let asked = Instant::now();
                        client.ask(bytes)?;
                        answers.push(asked.elapsed().as_secs_f64());
                    }
                    Ok(answers)
                })
            })
            .collect();
        let joined = asking.into_iter().map(|thread| match thread.join() {
            Ok(answers) => answers,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    let wall_seconds = start.elapsed().as_secs_f64();
    let answers = answers?.concat();
    Ok(Sample {
        bytes: answers.len() as u64 * u64::from(bytes),
        wall_seconds,
        cpu_seconds: server.cpu_seconds() - cpu,
        counts: None,
        latency: Latency::of(answers),
    })
}
