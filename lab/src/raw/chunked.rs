//! The experiment of C (2023): one stream of AES-128-CTR, split in chunks, once through AF_ALG and
//! once through OpenSSL's C functions.

use std::time::{Duration, Instant};

use coffer_seal::random_bytes;

use crate::algorithm::Algorithm;
use crate::cipher::roster::roster;
use crate::cipher::{AfAlgOperation, open_ssl_stream};
use crate::contender::{Contender, Placement};
use crate::cost::thread_cpu_seconds;
use crate::error::{LabError, Result};
use crate::record::{Axis, Experiment, Sample};
use crate::rounds::{Effort, Entrant, Plan, run};

const CHUNKS: [usize; 5] = [64, 256, 1024, 4096, 65_536];
const QUICK_CHUNKS: [usize; 2] = [1024, 65_536];

type Stream = Box<dyn FnMut(&mut [u8]) -> Result<()>>;

/// Measures the stream.
pub(super) fn chunked(effort: Effort) -> Result<Experiment> {
    let contenders = contenders();
    let key = random_bytes::<16>();
    let iv = random_bytes::<16>();
    for one in contenders.iter().filter(|one| one.availability.runs()) {
        check(one, &key, &iv)?;
    }
    let duration = effort.last(if effort.quick { 50 } else { 200 });
    let chunks: &[usize] = if effort.quick { &QUICK_CHUNKS } else { &CHUNKS };
    let entrants = chunks.iter().flat_map(|&chunk| {
        let runs = |one: &&Contender| one.availability.runs();
        let those = contenders
            .iter()
            .enumerate()
            .filter(move |(_, one)| runs(one));
        let (key, iv) = (key, iv);
        those.map(move |(contender, one)| {
            let one = one.clone();
            Entrant {
                contender,
                x: chunk as u64,
                measure: Box::new(move || measure(open(&one, &key, &iv)?, chunk, duration)),
            }
        })
    });
    let entrants = entrants.collect();
    let plan = Plan {
        whole_machine: false,
        id: "raw/chunked-ctr".into(),
        title: "The experiment of C: one stream of AES-128-CTR in chunks, encrypt".into(),
        axis: Axis::BlockBytes,
        how: "One thread, one counter for the whole stream, a call (OpenSSL) or a sendmsg and a \
              recvmsg (AF_ALG) for each chunk."
            .into(),
        contenders,
        entrants,
    };
    run(plan, effort)
}

/// OpenSSL, and all that AF_ALG offers with the key from the program.
fn contenders() -> Vec<Contender> {
    let all = roster(Algorithm::Ctr128)
        .into_iter()
        .map(|one| one.contender);
    all.filter(|one| {
        let by_serial = one.name.ends_with("key by serial");
        one.name == "OpenSSL" || (one.placement == Placement::Kernel && !by_serial)
    })
    .collect()
}

fn open(one: &Contender, key: &[u8], iv: &[u8]) -> Result<Stream> {
    if one.placement == Placement::User {
        return Ok(Box::new(open_ssl_stream(key, iv)?));
    }
    let name = one
        .name
        .trim_start_matches("AF_ALG ")
        .trim_start_matches("driver ");
    let operation = AfAlgOperation::new(name, key)?;
    operation.begin_encrypting(iv)?;
    Ok(Box::new(move |data| operation.go_on(data)))
}

/// In chunks it must come to the same as in one piece.
fn check(one: &Contender, key: &[u8], iv: &[u8]) -> Result<()> {
    let whole = roster(Algorithm::Ctr128);
    let whole = whole
        .iter()
        .find(|other| other.contender.name == "AES in plain C");
    let Some(whole) = whole else { return Ok(()) };
    let mut expected = vec![7; 10_000];
    (whole.expand)(key)?.encrypt(iv, &[], &mut expected, &mut [0; 16])?;
    let mut found = vec![7; 10_000];
    let mut stream = open(one, key, iv)?;
    for chunk in found.chunks_mut(1024) {
        stream(chunk)?;
    }
    if expected == found {
        return Ok(());
    }
    Err(LabError::Disagree {
        contender: one.name.clone(),
        case: "a stream in chunks of 1 KiB".into(),
        expected: hex::encode(&expected[1024..1040]),
        found: hex::encode(&found[1024..1040]),
    })
}

fn measure(mut stream: Stream, chunk: usize, duration: Duration) -> Result<Sample> {
    let mut buffer = vec![0x5a; chunk];
    let turns = (65_536 / chunk).max(1);
    let (start, cpu) = (Instant::now(), thread_cpu_seconds());
    let mut bytes = 0;
    while start.elapsed() < duration {
        for _ in 0..turns {
            stream(&mut buffer)?;
        }
        bytes += turns * chunk;
    }
    Ok(Sample {
        bytes: bytes as u64,
        wall_seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: thread_cpu_seconds() - cpu,
        counts: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_in_chunks_is_the_message_in_one_piece() {
        let (key, iv) = (random_bytes::<16>(), random_bytes::<16>());
        let contenders = contenders();
        assert!(
            contenders.len() >= 2,
            "OpenSSL, and AF_ALG even where it can't run"
        );
        for one in contenders.iter().filter(|one| one.availability.runs()) {
            check(one, &key, &iv).unwrap();
        }
    }
}
