//! The loop of table A (2007): AES-256-CBC over a buffer of 1 KB, as two calls of 512 B under the
//! same IV, encrypted and then decrypted, over and over.

use std::time::{Duration, Instant};

use coffer_seal::random_bytes;

use crate::algorithm::{Algorithm, TAG_BYTES};
use crate::cipher::CipherContender;
use crate::cost::thread_cpu_seconds;
use crate::error::{LabError, Result};
use crate::record::{Axis, Experiment, Sample};
use crate::rounds::{Effort, Entrant, Plan, run};

const BUFFER_BYTES: usize = 1024;
const CALL_BYTES: usize = 512;

/// Turns between two looks at the clock.
const TURNS: usize = 64;

/// Measures the loop.
pub(super) fn loop_of_a(roster: &[CipherContender], effort: Effort) -> Result<Experiment> {
    let duration = Duration::from_millis(if effort.quick { 50 } else { 300 });
    let runs = |one: &&CipherContender| one.contender.availability.runs();
    let those = roster.iter().enumerate().filter(|(_, one)| runs(one));
    let plan = Plan {
        whole_machine: false,
        id: "raw/table-a-loop".into(),
        title: "The loop of A: AES-256-CBC, 1 KB as two calls of 512 B, there and back".into(),
        axis: Axis::Single,
        how:
            "One thread; a turn encrypts and decrypts the buffer. Every byte counts twice, once a \
              direction: only so do the published figures fit those of `openssl speed` beside \
              them. A did a million turns; here it is as many as fit the time."
                .into(),
        contenders: roster.iter().map(|one| one.contender.clone()).collect(),
        entrants: those
            .map(|(contender, one)| Entrant {
                contender,
                x: 0,
                measure: Box::new(move || measure(one, duration)),
            })
            .collect(),
    };
    run(plan, effort)
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
    if buffer != plaintext {
        return Err(LabError::Disagree {
            contender: one.contender.name.clone(),
            case: "the loop of A".into(),
            expected: hex::encode(&plaintext[..16]),
            found: hex::encode(&buffer[..16]),
        });
    }
    Ok(Sample {
        bytes: (turns * BUFFER_BYTES * 2) as u64,
        wall_seconds,
        cpu_seconds,
        counts: None,
    })
}
