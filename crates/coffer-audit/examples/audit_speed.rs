//! How many durable records a second many threads get:
//! `cargo run --release -p coffer-audit --example audit_speed [THREADS] [FOLDER]`

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, process, thread};

use coffer_audit::{AuditKey, AuditLog, CheckpointKey, Event, Options, Outcome};
use coffer_seal::{KeystoreId, SecretKey};

fn main() -> Result<(), Box<dyn Error>> {
    let threads: usize = env::args().nth(1).map_or(Ok(32), |count| count.parse())?;
    let folder = env::args().nth(2).map_or_else(env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("audit-speed-{}", process::id()));
    let key = AuditKey::new(SecretKey::generate(), KeystoreId([1; 16]));
    let signer = Box::new(CheckpointKey::from_seed(&SecretKey::generate()));
    let (log, _) = AuditLog::open(&folder, key, signer, Options::default())?;
    let start = Instant::now();
    let append_all = |thread: usize| {
        let mut count = 0_u32;
        while start.elapsed() < Duration::from_secs(5) {
            let event = Event::new("object.read", "COFFERAUDITED", Outcome::Done);
            let event = event.with("bucket", "evidence").with("object", thread);
            if log.append(event).is_ok() {
                count += 1;
            }
        }
        count
    };
    let count: u32 = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || append_all(thread)))
            .collect();
        running.into_iter().filter_map(|run| run.join().ok()).sum()
    });
    println!(
        "{:.0} durable records a second, {threads} threads",
        f64::from(count) / start.elapsed().as_secs_f64()
    );
    log.close()?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
