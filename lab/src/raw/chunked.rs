//! The experiment of C (2023): one stream of AES-128-CTR, split in chunks, once through AF_ALG and
//! once through OpenSSL's C functions.

use std::time::Duration;

use coffer_seal::random_bytes;

use crate::cipher::algorithm::Algorithm;
use crate::cipher::roster::roster;
use crate::cipher::{AfAlgOperation, Stream, open_ssl_decrypting, open_ssl_encrypting};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};
use crate::measuring::rounds::{Effort, Entrant, Figure, Measure, Plan, run};
use crate::raw::speed::{Direction, again_and_again};
use crate::record::{Axis, Experiment, Sample};

const CHUNKS: [usize; 5] = [64, 256, 1024, 4096, 65_536];
const QUICK_CHUNKS: [usize; 2] = [1024, 65_536];

/// The experiment of a direction.
pub(super) fn id(direction: Direction) -> String {
    format!("raw/chunked-ctr/{}", direction.word())
}

/// Measures the stream, in both directions.
pub(super) fn chunked(effort: Effort) -> Result<Vec<Experiment>> {
    let contenders = contenders();
    let key = random_bytes::<16>();
    let iv = random_bytes::<16>();
    for one in contenders.iter().filter(|one| one.availability.runs()) {
        check(one, &key, &iv)?;
    }
    let directions = Direction::BOTH.into_iter();
    let measured =
        directions.map(|direction| run(plan(direction, &contenders, key, iv, effort), effort));
    measured.collect()
}

fn plan(
    direction: Direction,
    contenders: &[Contender],
    key: [u8; 16],
    iv: [u8; 16],
    effort: Effort,
) -> Plan<'static> {
    let duration = effort.last(if effort.quick { 50 } else { 200 });
    let chunks: &[usize] = if effort.quick { &QUICK_CHUNKS } else { &CHUNKS };
    let entrants = chunks.iter().flat_map(|&chunk| {
        let runs = |one: &&Contender| one.availability.runs();
        let those = contenders
            .iter()
            .enumerate()
            .filter(move |(_, one)| runs(one));
        those.map(move |(contender, one)| {
            let one = one.clone();
            let open = move || open(&one, direction, &key, &iv);
            Entrant {
                contender,
                x: chunk as u64,
                measure: Box::new(move || measure(open()?, chunk, duration)) as Measure<'static>,
            }
        })
    });
    Plan {
        figure: Figure::CpuSpeed,
        whole_machine: false,
        id: id(direction),
        title: format!(
            "The experiment of C: one stream of AES-128-CTR in chunks, {}",
            direction.word()
        ),
        axis: Axis::BlockBytes,
        how: "One thread, one counter for the whole stream, a call (OpenSSL) or a sendmsg and a \
              recvmsg (AF_ALG) for each chunk."
            .into(),
        contenders: contenders.to_vec(),
        entrants: entrants.collect(),
    }
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

fn open(one: &Contender, direction: Direction, key: &[u8], iv: &[u8]) -> Result<Stream> {
    if one.placement == Placement::User {
        return match direction {
            Direction::Encrypt => open_ssl_encrypting(key, iv),
            Direction::Decrypt => open_ssl_decrypting(key, iv),
        };
    }
    let name = one
        .name
        .trim_start_matches("AF_ALG ")
        .trim_start_matches("driver ");
    let operation = AfAlgOperation::new(name, key)?;
    match direction {
        Direction::Encrypt => operation.begin_encrypting(iv)?,
        Direction::Decrypt => operation.begin_decrypting(iv)?,
    }
    Ok(Box::new(move |data| operation.go_on(data, false)))
}

/// In chunks it must come to the same as in one piece, and back.
fn check(one: &Contender, key: &[u8], iv: &[u8]) -> Result<()> {
    let whole = roster(Algorithm::Ctr128);
    let whole = whole
        .iter()
        .find(|other| other.contender.name == "AES in plain C");
    let Some(whole) = whole else { return Ok(()) };
    let plaintext = vec![7; 10_000];
    let mut sealed = plaintext.clone();
    (whole.expand)(key)?.encrypt(iv, &[], &mut sealed, &mut [0; 16])?;
    for direction in Direction::BOTH {
        let (from, expected) = match direction {
            Direction::Encrypt => (&plaintext, &sealed),
            Direction::Decrypt => (&sealed, &plaintext),
        };
        let mut found = from.clone();
        let mut stream = open(one, direction, key, iv)?;
        for chunk in found.chunks_mut(1024) {
            stream(chunk)?;
        }
        if *expected != found {
            return Err(LabError::Disagree {
                contender: one.name.clone(),
                case: format!("a stream in chunks of 1 KiB, {}", direction.word()),
                expected: hex::encode(&expected[1024..1040]),
                found: hex::encode(&found[1024..1040]),
            });
        }
    }
    Ok(())
}

fn measure(mut stream: Stream, chunk: usize, duration: Duration) -> Result<Sample> {
    let mut buffer = vec![0x5a; chunk];
    again_and_again(chunk, duration, || stream(&mut buffer))
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
