//! The loop of table A (2007): AES-256-CBC over a buffer of 1 KB, as two calls of 512 B under the
//! same IV, encrypted and then decrypted, over and over.

use std::time::{Duration, Instant};

use coffer_seal::random_bytes;

use crate::cipher::algorithm::{Algorithm, BLOCK_BYTES, TAG_BYTES};
use crate::cipher::{CipherContender, KernelModule, PlainLoop};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::record::{Axis, Experiment, Sample};
use coffer_measure::cpu_time::thread_cpu_seconds;

/// The experiment.
pub(super) const ID: &str = "raw/table-a-loop";

const BUFFER_BYTES: usize = 1024;
const CALL_BYTES: usize = 512;

/// Turns between two looks at the clock.
const TURNS: usize = 64;

/// Turns that are asked of C at a time, where the loop is in C too.
const TURNS_IN_C: u64 = 256;

/// Measures the loop: of `roster` through the call of each library, and of AES in plain C also with
/// the loop itself in C, in this program and in the kernel's `module`.
pub(super) fn loop_of_a(
    roster: &[CipherContender],
    module: &Contender,
    effort: Effort,
) -> Result<Experiment> {
    let duration = effort.last(if effort.quick { 50 } else { 300 });
    let runs = |one: &&CipherContender| one.contender.availability.runs();
    let those = roster.iter().enumerate().filter(|(_, one)| runs(one));
    let mut entrants: Vec<Entrant<'_>> = those
        .map(|(contender, one)| Entrant {
            contender,
            x: 0,
            measure: Box::new(move || measure(one, duration)),
        })
        .collect();
    let mut contenders: Vec<Contender> = roster.iter().map(|one| one.contender.clone()).collect();
    entrants.push(Entrant {
        contender: contenders.len(),
        x: 0,
        measure: Box::new(move || in_program(duration)),
    });
    contenders.push(
        Contender::new(
            "AES in plain C, loop in C",
            Placement::User,
            "lab/c, compiled by cc",
        )
        .set("the same files as the kernel module's, -O2"),
    );
    if module.availability.runs() {
        entrants.push(Entrant {
            contender: contenders.len(),
            x: 0,
            measure: Box::new(move || in_kernel(duration)),
        });
    }
    contenders.push(module.clone());
    let plan = Plan {
        figure: Figure::CpuSpeed,
        whole_machine: false,
        id: ID.into(),
        title: "The loop of A: AES-256-CBC, 1 KB as two calls of 512 B, there and back".into(),
        axis: Axis::Single,
        how:
            "One thread; a turn encrypts and decrypts the buffer. Every byte counts twice, once a \
              direction: only so do the published figures fit those of `openssl speed` beside \
              them. A did a million turns; here it is as many as fit the time."
                .into(),
        contenders,
        entrants,
    };
    run(plan, effort)
}

fn in_program(duration: Duration) -> Result<Sample> {
    let cipher = PlainLoop::new(&random_bytes());
    in_c(duration, |iv, buffer| {
        let start = Instant::now();
        cipher.run(iv, buffer, CALL_BYTES, TURNS_IN_C);
        Ok(start.elapsed().as_secs_f64())
    })
}

fn in_kernel(duration: Duration) -> Result<Sample> {
    let mut module = KernelModule::open(&random_bytes::<32>())?;
    in_c(duration, |iv, buffer| {
        module.run_loop(iv, buffer, CALL_BYTES as u32, TURNS_IN_C)
    })
}

/// Adds up what the loop itself takes, without the way to it.
fn in_c(
    duration: Duration,
    mut turn: impl FnMut(&[u8; BLOCK_BYTES], &mut [u8]) -> Result<f64>,
) -> Result<Sample> {
    let iv = random_bytes();
    let plaintext = random_bytes::<BUFFER_BYTES>();
    let mut buffer = plaintext;
    let (mut wall_seconds, mut turns) = (0.0, 0);
    let cpu = thread_cpu_seconds();
    while wall_seconds < duration.as_secs_f64() {
        wall_seconds += turn(&iv, &mut buffer)?;
        turns += TURNS_IN_C;
    }
    let cpu_seconds = thread_cpu_seconds() - cpu;
    compare("AES in plain C, loop in C", &plaintext, &buffer)?;
    Ok(Sample {
        bytes: turns * 2 * BUFFER_BYTES as u64,
        wall_seconds,
        cpu_seconds,
        counts: None,
        latency: None,
    })
}

fn compare(contender: &str, expected: &[u8], found: &[u8]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(LabError::Disagree {
        contender: contender.to_owned(),
        case: "the loop of A".into(),
        expected: hex::encode(&expected[..16]),
        found: hex::encode(&found[..16]),
    })
}

fn measure(one: &CipherContender, duration: Duration) -> Result<Sample> {
    let key = random_bytes::<32>();
    let mut cipher = (one.expand)(&key[..Algorithm::Cbc256.key_bytes()])?;
    let iv = random_bytes::<16>();
    let plaintext = random_bytes::<BUFFER_BYTES>();
    let mut buffer = plaintext;
    let mut tag = [0; TAG_BYTES];
    let (start, cpu) = (Instant::now(), thread_cpu_seconds());
    let mut turns = 0;
    while start.elapsed() < duration {
        for _ in 0..TURNS {
            for call in buffer.chunks_exact_mut(CALL_BYTES) {
                cipher.encrypt(&iv, &[], call, &mut tag)?;
            }
            for call in buffer.chunks_exact_mut(CALL_BYTES) {
                cipher.decrypt(&iv, &[], call, &tag)?;
            }
        }
        turns += TURNS;
    }
    let wall_seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = thread_cpu_seconds() - cpu;
    compare(&one.contender.name, &plaintext, &buffer)?;
    Ok(Sample {
        bytes: (turns * BUFFER_BYTES * 2) as u64,
        wall_seconds,
        cpu_seconds,
        counts: None,
        latency: None,
    })
}
