//! What memory gives: a copy between buffers that no cache holds. Beside the modes of AES stands a
//! copy within the caches, where messages lie.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::contender::{Availability, Contender, Placement};
use crate::error::Result;
use crate::host::cache::last_level_bytes;
use crate::host::machine::{available_memory_bytes, core_count};
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::raw::modes::thread_counts;
use crate::raw::speed::together;
use crate::record::{Axis, Experiment, Sample};
use coffer_measure::cpu_time::thread_cpu_seconds;

/// The experiment.
pub(crate) const ID: &str = "raw/memory/copy";

/// Each buffer is as long as so many of the last caches together, and as this at least.
const TIMES_CACHES: u64 = 4;
const BUFFER_BYTES_MIN: u64 = 256 << 20;

/// Both buffers together take no more than this share of what memory is available.
const SHARE_OF_MEMORY: u64 = 2;

/// How long each of both buffers is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Length {
    bytes: u64,
    /// Of the last caches; None where that is not told.
    caches: Option<u64>,
}

impl Length {
    /// As long as it has to be, or else why that can't be had.
    fn choose(caches: Option<u64>, available: u64) -> std::result::Result<Self, String> {
        let bytes = (caches.unwrap_or(0) * TIMES_CACHES).max(BUFFER_BYTES_MIN);
        if 2 * bytes <= available / SHARE_OF_MEMORY {
            return Ok(Self { bytes, caches });
        }
        let (both, there) = (mebibytes(2 * bytes), mebibytes(available));
        Err(format!(
            "two buffers that no cache holds take {both}, and {there} of memory are available"
        ))
    }

    fn told(self) -> String {
        let size = mebibytes(self.bytes);
        match self.caches {
            Some(caches) => format!(
                "from a buffer of {size} to another; the caches of the last level hold {}",
                mebibytes(caches)
            ),
            None => {
                format!("from a buffer of {size} to another; what the caches hold is not told here")
            }
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn contender(length: &std::result::Result<Length, String>) -> Contender {
    let one = Contender::new("none, a copy in memory", Placement::None, "copy_from_slice");
    match length {
        Ok(length) => one.set(length.told()),
        Err(why) => one.available(Availability::cannot(why, "twice as much available memory")),
    }
}

/// Who takes part.
pub fn contenders() -> Vec<Contender> {
    vec![contender(&length())]
}

fn length() -> std::result::Result<Length, String> {
    Length::choose(last_level_bytes(), available_memory_bytes())
}

/// From one thread to all cores. None where instructions are counted: there no cache is simulated.
pub(super) fn copies(effort: Effort) -> Result<Option<Experiment>> {
    if effort.counts_instructions() {
        return Ok(None);
    }
    let length = length();
    let bytes = length.as_ref().map_or(0, |length| length.bytes as usize);
    let buffers = RefCell::new((vec![0x5a_u8; bytes], vec![0_u8; bytes]));
    let duration = effort.last(if effort.quick { 20 } else { 100 });
    let counts = thread_counts(core_count()).into_iter();
    let entrants = counts.map(|threads| Entrant {
        contender: 0,
        x: threads as u64,
        measure: Box::new({
            let buffers = &buffers;
            move || {
                let (from, to) = &mut *buffers.borrow_mut();
                Ok(measure(from, to, threads, duration))
            }
        }),
    });
    let entrants = if length.is_ok() {
        entrants.collect()
    } else {
        Vec::new()
    };
    let told = length
        .as_ref()
        .map_or(String::new(), |one| one.told() + ". ");
    let plan = Plan {
        figure: Figure::Speed,
        whole_machine: false,
        id: ID.into(),
        title: "Memory, copied from buffer to buffer that no cache holds".into(),
        axis: Axis::Threads,
        how: format!(
            "Plain copies (copy_from_slice, which is memcpy, and may write past the caches), {told}\
             Threads copy a part each, from its beginning to its end, again and again. Bytes that \
             were copied: each was read once, and written once."
        ),
        contenders: vec![contender(&length)],
        entrants,
    };
    run(plan, effort).map(Some)
}

/// Copies all of it, by a part each, once and until the time is over.
fn measure(from: &[u8], to: &mut [u8], threads: usize, duration: Duration) -> Sample {
    let part = from.len().div_ceil(threads);
    let parts = from.chunks(part).zip(to.chunks_mut(part));
    let barrier = Barrier::new(parts.len());
    let one = |(from, to): (&[u8], &mut [u8])| {
        barrier.wait();
        let (start, cpu) = (Instant::now(), thread_cpu_seconds());
        let mut bytes = 0;
        while bytes == 0 || start.elapsed() < duration {
            to.copy_from_slice(black_box(from));
            black_box(&mut *to);
            bytes += from.len() as u64;
        }
        let (wall, cpu) = (start.elapsed().as_secs_f64(), thread_cpu_seconds() - cpu);
        Sample::new(bytes, wall, cpu)
    };
    let samples: Vec<Sample> = thread::scope(|scope| {
        let working: Vec<_> = parts.map(|both| scope.spawn(|| one(both))).collect();
        let joined = working.into_iter().map(|thread| match thread.join() {
            Ok(sample) => sample,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    together(&samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cache_holds_what_is_copied() {
        let gigabytes = |count: u64| count << 30;
        let small = Length::choose(Some(32 << 20), gigabytes(8)).unwrap();
        assert_eq!(small.bytes, 256 << 20);
        let large = Length::choose(Some(384 << 20), gigabytes(16)).unwrap();
        assert_eq!(large.bytes, 4 * (384 << 20));
        assert!(large.told().contains("1536 MiB") && large.told().contains("384 MiB"));
        let untold = Length::choose(None, gigabytes(8)).unwrap();
        assert!(untold.told().contains("256 MiB") && untold.told().contains("not told"));
        // A shorter one would tell of a cache.
        let why = Length::choose(Some(32 << 20), gigabytes(1) - 1).unwrap_err();
        assert!(why.contains("512 MiB") && why.contains("1023 MiB"), "{why}");
        Length::choose(Some(32 << 20), gigabytes(1)).unwrap();
    }

    #[test]
    fn every_part_is_copied_by_as_many_threads() {
        for threads in [1, 2, 3] {
            let (from, mut to) = (vec![7; 3001], vec![0; 3001]);
            let sample = measure(&from, &mut to, threads, Duration::ZERO);
            assert_eq!((&to, sample.bytes), (&from, 3001));
        }
    }

    #[test]
    fn what_counts_instructions_has_no_memory_to_measure() {
        let effort = Effort {
            rounds: Some(1),
            quick: true,
            counts_instructions: true,
        };
        assert!(copies(effort).unwrap().is_none());
    }
}
