//! Each mode of AES by the size of a message, and by the number of threads.

use std::time::Duration;

use crate::cipher::CipherContender;
use crate::cipher::algorithm::Algorithm;
use crate::error::Result;
use crate::host::machine::core_count;
use crate::measuring::rounds::{Amounts, Effort, Entrant, Figure, Plan, run};
use crate::raw::speed::{Direction, Task, measure};
use crate::record::{Axis, Experiment};

/// Sizes of messages. Where instructions are counted, 1 MiB costs each driver a second and tells
/// what 64 KiB told.
pub(super) const BLOCKS: Amounts<&[usize]> = Amounts {
    full: &[16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576],
    quick: &[16, 1024, 16_384, 1_048_576],
    counted: &[16, 1024, 4096, 65_536],
    quick_counted: &[16, 1024, 16_384],
};

/// A batch of 16 B messages through system calls is the longest of all measurements.
pub(super) const BATCH_BYTES: Amounts<usize> = Amounts {
    full: 64 << 10,
    quick: 64 << 10,
    counted: 64 << 10,
    quick_counted: 16 << 10,
};

/// The longest message that is measured, in bytes.
pub(super) fn longest_block(effort: Effort) -> usize {
    effort.choose(BLOCKS).iter().copied().max().unwrap_or(0)
}

/// The message by which threads are compared.
const THREADED_BLOCK: usize = 16_384;

pub(super) fn duration(effort: Effort) -> Duration {
    effort.last(if effort.quick { 8 } else { 40 })
}

/// The experiments on an algorithm, in their order.
pub(super) fn ids(algorithm: Algorithm) -> Vec<String> {
    let axes = [Axis::BlockBytes, Axis::Threads].into_iter();
    let axes = axes.filter(|axis| *axis == Axis::BlockBytes || core_count() > 1);
    let ids = axes.flat_map(|axis| Direction::BOTH.map(|direction| id(algorithm, direction, axis)));
    ids.collect()
}

fn id(algorithm: Algorithm, direction: Direction, axis: Axis) -> String {
    let by = match axis {
        Axis::Threads => "-threads",
        _ => "",
    };
    let name = algorithm.name().to_ascii_lowercase();
    format!("raw/{name}/{}{by}", direction.word())
}

/// One thread, messages from 16 B to 1 MiB, both directions.
pub(super) fn by_block(
    algorithm: Algorithm,
    roster: &[CipherContender],
    effort: Effort,
) -> Result<Vec<Experiment>> {
    let places: Vec<(u64, usize, usize)> = effort
        .choose(BLOCKS)
        .iter()
        .map(|&block| (block as u64, block, 1))
        .collect();
    let how = "One thread. Messages in place, in batches of 64 KiB that stay in the core's cache \
               (16 KiB in a quick run that counts instructions), one IV for all; the key is \
               expanded once, before. What is decrypted is encrypted outside of the measured \
               time.";
    both_directions(algorithm, roster, effort, Axis::BlockBytes, &places, how)
}

/// Messages of 16 KiB, from one thread to all cores, both directions.
pub(super) fn by_threads(
    algorithm: Algorithm,
    roster: &[CipherContender],
    effort: Effort,
) -> Result<Vec<Experiment>> {
    // On one core it would be what stands in the other plot.
    if core_count() == 1 {
        return Ok(Vec::new());
    }
    let places: Vec<(u64, usize, usize)> = thread_counts(core_count())
        .into_iter()
        .map(|threads| (threads as u64, THREADED_BLOCK, threads))
        .collect();
    let how = "Messages of 16 KiB on so many threads at once, each with a key and a cipher of its \
               own; the sum of their rates. Otherwise as with one thread.";
    both_directions(algorithm, roster, effort, Axis::Threads, &places, how)
}

/// Powers of two, and all.
pub(super) fn thread_counts(cores: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..usize::BITS).map(|bit| 1 << bit).collect();
    counts.retain(|&count| count < cores);
    counts.push(cores);
    counts
}

fn both_directions(
    algorithm: Algorithm,
    roster: &[CipherContender],
    effort: Effort,
    axis: Axis,
    places: &[(u64, usize, usize)],
    how: &str,
) -> Result<Vec<Experiment>> {
    let by_threads = match axis {
        Axis::Threads => ", 16 KiB messages on several threads",
        _ => "",
    };
    let of_direction = |direction: Direction| {
        let entrants = places.iter().flat_map(|&(x, block_bytes, threads)| {
            let task = Task {
                algorithm,
                direction,
                block_bytes,
                threads,
                duration: duration(effort),
                batch_bytes: effort.choose(BATCH_BYTES),
            };
            let runs = |one: &&CipherContender| one.contender.availability.runs();
            let those = roster.iter().enumerate().filter(move |(_, one)| runs(one));
            those.map(move |(contender, one)| Entrant {
                contender,
                x,
                measure: Box::new(move || measure(one, task)),
            })
        });
        let plan = Plan {
            figure: match axis {
                Axis::BlockBytes => Figure::CpuSpeed,
                _ => Figure::Speed,
            },
            whole_machine: false,
            id: id(algorithm, direction, axis),
            title: format!("{}, {}{by_threads}", algorithm.name(), direction.word()),
            axis,
            how: how.to_owned(),
            contenders: roster.iter().map(|one| one.contender.clone()).collect(),
            entrants: entrants.collect(),
        };
        run(plan, effort)
    };
    Direction::BOTH.into_iter().map(of_direction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_from_one_to_all() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(8), [1, 2, 4, 8]);
    }
}
