//! The loop that times a cipher, on one thread or on several at once.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use coffer_seal::random_bytes;

use crate::cipher::algorithm::{Algorithm, TAG_BYTES};
use crate::cipher::{Cipher, CipherContender, Tag};
use crate::error::Result;
use crate::record::Sample;
use coffer_measure::cpu_time::thread_cpu_seconds;

/// To or from the sealed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Encrypt,
    Decrypt,
}

impl Direction {
    pub(super) const BOTH: [Self; 2] = [Self::Encrypt, Self::Decrypt];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
        }
    }
}

/// What is measured at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub(super) algorithm: Algorithm,
    pub(super) direction: Direction,
    pub(super) block_bytes: usize,
    pub(super) threads: usize,
    pub(super) duration: Duration,
    /// Messages are worked on in batches of about this many bytes, which stay in a core's own
    /// cache; the clock is read once a batch.
    pub(super) batch_bytes: usize,
}

/// Bytes after which the clock is read again, as with the batches of the modes of AES.
const BETWEEN_LOOKS_BYTES: usize = 65_536;

/// Does an operation of so many bytes again and again for a while, on this thread.
pub(super) fn again_and_again(
    block_bytes: usize,
    duration: Duration,
    mut operation: impl FnMut() -> Result<()>,
) -> Result<Sample> {
    let turns = (BETWEEN_LOOKS_BYTES / block_bytes).max(1);
    let (start, cpu) = (Instant::now(), thread_cpu_seconds());
    let mut bytes = 0;
    while start.elapsed() < duration {
        for _ in 0..turns {
            operation()?;
        }
        bytes += turns * block_bytes;
    }
    Ok(Sample {
        bytes: bytes as u64,
        wall_seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: thread_cpu_seconds() - cpu,
        counts: None,
        latency: None,
    })
}

/// Measures once.
pub(super) fn measure(contender: &CipherContender, task: Task) -> Result<Sample> {
    let barrier = Barrier::new(task.threads);
    let one = || -> Result<Sample> {
        let key = random_bytes::<64>();
        let cipher = (contender.expand)(&key[..task.algorithm.key_bytes()]);
        // Also those that fail wait, or the others would for ever.
        let mut bench = cipher.map(|cipher| Bench::new(cipher, task));
        barrier.wait();
        match &mut bench {
            Ok(bench) => bench.run(task),
            Err(_) => bench.map(|_| Sample {
                bytes: 0,
                wall_seconds: 1.0,
                cpu_seconds: 0.0,
                counts: None,
                latency: None,
            }),
        }
    };
    if task.threads == 1 {
        return one();
    }
    let samples: Result<Vec<Sample>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..task.threads).map(|_| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(sample) => sample,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    Ok(together(&samples?))
}

/// The sum of what threads did at the same time: their rates add up.
pub(super) fn together(samples: &[Sample]) -> Sample {
    let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
    let rate: f64 = samples
        .iter()
        .map(|s| s.bytes as f64 / s.wall_seconds)
        .sum();
    Sample {
        bytes,
        wall_seconds: bytes as f64 / rate,
        cpu_seconds: samples.iter().map(|sample| sample.cpu_seconds).sum(),
        counts: None,
        latency: None,
    }
}

/// A cipher with its batch of messages.
struct Bench {
    cipher: Box<dyn Cipher>,
    iv: Vec<u8>,
    block_bytes: usize,
    data: Vec<u8>,
    tags: Vec<Tag>,
}

impl Bench {
    fn new(cipher: Box<dyn Cipher>, task: Task) -> Self {
        let count = (task.batch_bytes / task.block_bytes).max(1);
        Self {
            cipher,
            iv: random_bytes::<32>()[..task.algorithm.iv_bytes()].to_vec(),
            block_bytes: task.block_bytes,
            data: vec![0x5a; count * task.block_bytes],
            tags: vec![[0; TAG_BYTES]; count],
        }
    }

    fn encrypt(&mut self) -> Result<()> {
        let messages = self.data.chunks_exact_mut(self.block_bytes);
        for (message, tag) in messages.zip(&mut self.tags) {
            self.cipher.encrypt(&self.iv, &[], message, tag)?;
        }
        Ok(())
    }

    fn decrypt(&mut self) -> Result<()> {
        let messages = self.data.chunks_exact_mut(self.block_bytes);
        for (message, tag) in messages.zip(&self.tags) {
            self.cipher.decrypt(&self.iv, &[], message, tag)?;
        }
        Ok(())
    }

    /// Only the wanted direction is timed, by both clocks. What is decrypted must have been
    /// encrypted before, or its tag would be wrong.
    fn run(&mut self, task: Task) -> Result<Sample> {
        let (mut timed, mut cpu_seconds) = (Duration::ZERO, 0.0);
        let mut bytes = 0_u64;
        while timed < task.duration {
            if task.direction == Direction::Decrypt {
                self.encrypt()?;
            }
            let (start, cpu) = (Instant::now(), thread_cpu_seconds());
            match task.direction {
                Direction::Encrypt => self.encrypt()?,
                Direction::Decrypt => self.decrypt()?,
            }
            cpu_seconds += thread_cpu_seconds() - cpu;
            timed += start.elapsed();
            bytes += self.data.len() as u64;
        }
        Ok(Sample::new(bytes, timed.as_secs_f64(), cpu_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::roster::roster;

    #[test]
    fn rates_of_threads_add_up() {
        let sample = |bytes, wall_seconds| Sample {
            bytes,
            wall_seconds,
            cpu_seconds: 1.0,
            counts: None,
            latency: None,
        };
        let sum = together(&[sample(100, 1.0), sample(300, 1.0)]);
        assert_eq!(
            (sum.bytes, sum.wall_seconds, sum.cpu_seconds),
            (400, 1.0, 2.0)
        );
        let uneven = together(&[sample(100, 1.0), sample(100, 2.0)]);
        assert!((uneven.bytes as f64 / uneven.wall_seconds - 150.0).abs() < 1e-9);
    }

    #[test]
    fn both_directions_and_several_threads_are_measured() {
        for direction in Direction::BOTH {
            let task = Task {
                algorithm: Algorithm::Gcm256,
                direction,
                block_bytes: 1024,
                threads: 2,
                duration: Duration::from_millis(5),
                batch_bytes: 64 << 10,
            };
            for contender in roster(Algorithm::Gcm256) {
                if contender.contender.availability.runs() {
                    let sample = measure(&contender, task).unwrap();
                    assert!(sample.bytes > 0 && sample.wall_seconds > 0.0);
                }
            }
        }
    }
}
