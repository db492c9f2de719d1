//! Authenticated ciphers besides AES-GCM, beside it, by the size of a message.

use crate::cipher::CipherContender;
use crate::cipher::agreement::agree;
use crate::cipher::algorithm::Algorithm;
use crate::cipher::roster::{aeads, ceiling, roster};
use crate::contender::Contender;
use crate::error::Result;
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::raw::modes::{BATCH_BYTES, BLOCKS, duration, longest_block};
use crate::raw::speed::{Direction, Task, measure};
use crate::record::{Agreement, Axis, Experiment};

/// The library that all others are compared with: coffer's.
const REFERENCE: &str = "aws-lc-rs";

pub(super) fn id(direction: Direction) -> String {
    format!("raw/aead/{}", direction.word())
}

/// Who takes part.
pub fn contenders() -> Vec<Contender> {
    aeads().into_iter().map(|(_, one)| one.contender).collect()
}

/// Compares those of one algorithm with its vectors and with each other, then measures all.
pub(super) fn authenticated(effort: Effort) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let mut agreements = Vec::new();
    let mut all: Vec<(Algorithm, CipherContender)> = Vec::new();
    for algorithm in Algorithm::AEADS {
        let own = aeads().into_iter().filter(|(one, _)| *one == algorithm);
        let own: Vec<CipherContender> = own.map(|(_, one)| one).collect();
        agreements.push(agree(algorithm, &own, longest_block(effort))?);
        all.extend(own.into_iter().map(|one| (algorithm, one)));
    }
    // It has agreed with the others of AES-GCM before.
    let reference = roster(Algorithm::Gcm256).into_iter();
    for mut one in reference.filter(|one| one.contender.name == REFERENCE) {
        one.contender.name = format!("{}, {REFERENCE}", Algorithm::Gcm256.name());
        all.push((Algorithm::Gcm256, one));
    }
    all.push((Algorithm::Gcm256, ceiling()));
    let experiments: Result<Vec<Experiment>> = Direction::BOTH
        .into_iter()
        .map(|direction| measured(&all, direction, effort))
        .collect();
    Ok((agreements, experiments?))
}

fn measured(
    all: &[(Algorithm, CipherContender)],
    direction: Direction,
    effort: Effort,
) -> Result<Experiment> {
    let blocks = effort.choose(BLOCKS);
    let entrants = blocks.iter().flat_map(|&block_bytes| {
        let runs = |(_, (_, one)): &(usize, &(Algorithm, CipherContender))| {
            one.contender.availability.runs()
        };
        let those = all.iter().enumerate().filter(runs);
        those.map(move |(contender, (algorithm, one))| {
            let task = Task {
                algorithm: *algorithm,
                direction,
                block_bytes,
                threads: 1,
                duration: duration(effort),
                batch_bytes: effort.choose(BATCH_BYTES),
            };
            Entrant {
                contender,
                x: block_bytes as u64,
                measure: Box::new(move || measure(one, task)),
            }
        })
    });
    let plan = Plan {
        id: id(direction),
        title: format!("Other authenticated ciphers, {}", direction.word()),
        axis: Axis::BlockBytes,
        how: "One thread, as with the modes of AES; no additional data, tags of 128 bits. \
              AES-256-GCM stands beside them, and a copy, which bounds them all: a cipher reads \
              and writes the bytes, too. AEGIS and XAES derive from key and IV for each message."
            .into(),
        figure: Figure::CpuSpeed,
        whole_machine: false,
        contenders: all.iter().map(|(_, one)| one.contender.clone()).collect(),
        entrants: entrants.collect(),
    };
    run(plan, effort)
}
