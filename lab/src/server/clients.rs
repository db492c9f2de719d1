//! All clients at once: each asks again when it has been answered.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::record::Sample;
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
    let answers: Result<u64> = thread::scope(|scope| {
        let asking: Vec<_> = connected
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || -> Result<u64> {
                    let mut answers = 0;
                    while start.elapsed() < duration {
                        client.ask(bytes)?;
                        answers += 1;
                    }
                    Ok(answers)
                })
            })
            .collect();
        let joined = asking.into_iter().map(|thread| match thread.join() {
            Ok(answers) => answers,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.sum()
    });
    Ok(Sample {
        bytes: answers? * u64::from(bytes),
        wall_seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: server.cpu_seconds() - cpu,
        counts: None,
    })
}
