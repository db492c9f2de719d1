//! What A found of small system calls: that they cost more than encryption. One byte a call against
//! one megabyte, to a file in memory: the call alone, the encryption alone, and both.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use coffer_seal::random_bytes;

use crate::cipher::{Stream, open_ssl_decrypting, open_ssl_encrypting};
use crate::contender::{Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::raw::speed::again_and_again;
use crate::record::{Axis, Experiment, Sample};

/// The experiment.
pub(super) const ID: &str = "raw/calls";

const BLOCKS: [usize; 6] = [1, 16, 256, 4096, 65_536, 1_000_000];

/// What is done with each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Call,
    Encryption,
    Both,
}

impl Work {
    const ALL: [Self; 3] = [Self::Call, Self::Encryption, Self::Both];

    fn contender(self) -> Contender {
        let file = "pwrite, to the same place of a file in memory (memfd)";
        let cipher = "AES-256-CTR by OpenSSL";
        match self {
            Self::Call => Contender::new("a system call alone", Placement::None, file),
            Self::Encryption => Contender::new("encryption alone", Placement::User, cipher),
            Self::Both => {
                Contender::new("encryption and a system call", Placement::User, cipher).set(file)
            }
        }
    }
}

/// Measures all three, once what is written was seen to be what was encrypted.
pub(super) fn calls(effort: Effort) -> Result<Experiment> {
    for work in Work::ALL {
        check(work)?;
    }
    let duration = effort.last(if effort.quick { 8 } else { 40 });
    let entrants = BLOCKS.iter().flat_map(|&block| {
        let all = Work::ALL.into_iter().enumerate();
        all.map(move |(contender, work)| Entrant {
            contender,
            x: block as u64,
            measure: Box::new(move || measure(work, block, duration)),
        })
    });
    let plan = Plan {
        figure: Figure::CpuSpeed,
        whole_machine: false,
        id: ID.into(),
        title: "System calls and encryption, from a byte a call to a megabyte".into(),
        axis: Axis::BlockBytes,
        how: "One thread. Each block is encrypted in place by one stream, written by one call, or \
              both. Where the line of the call lies below that of encryption, the call costs more."
            .into(),
        contenders: Work::ALL.map(Work::contender).into(),
        entrants: entrants.collect(),
    };
    run(plan, effort)
}

/// Does the work with a block, for a place in the file.
struct Worker {
    stream: Option<Stream>,
    file: Option<File>,
}

impl Worker {
    fn new(work: Work, key: &[u8; 32], iv: &[u8; 16]) -> Result<Self> {
        let memory = || -> Result<File> {
            let made = rustix::fs::memfd_create("calls", rustix::fs::MemfdFlags::CLOEXEC);
            Ok(File::from(made.doing(|| "making a file in memory".into())?))
        };
        Ok(Self {
            stream: (work != Work::Call)
                .then(|| open_ssl_encrypting(key, iv))
                .transpose()?,
            file: (work != Work::Encryption).then(memory).transpose()?,
        })
    }

    fn work(&mut self, block: &mut [u8], place: u64) -> Result<()> {
        if let Some(stream) = &mut self.stream {
            stream(block)?;
        }
        if let Some(file) = &self.file {
            let written = file.write_all_at(block, place);
            written.doing(|| "writing to a file in memory".into())?;
        }
        Ok(())
    }
}

fn measure(work: Work, block: usize, duration: Duration) -> Result<Sample> {
    let mut worker = Worker::new(work, &random_bytes(), &random_bytes())?;
    let mut buffer = vec![0x5a; block];
    // The file gets its memory at the first call.
    worker.work(&mut buffer, 0)?;
    again_and_again(block, duration, || worker.work(&mut buffer, 0))
}

/// In blocks of seven bytes it must come to the same as in one.
fn check(work: Work) -> Result<()> {
    let (key, iv) = (random_bytes(), random_bytes());
    let plain = random_bytes::<1000>();
    let mut found = plain;
    let mut worker = Worker::new(work, &key, &iv)?;
    for (number, block) in found.chunks_mut(7).enumerate() {
        worker.work(block, 7 * number as u64)?;
    }
    if let Some(file) = &worker.file {
        let read = file.read_exact_at(&mut found, 0);
        read.doing(|| "reading a file in memory".into())?;
    }
    if work != Work::Call {
        open_ssl_decrypting(&key, &iv)?(&mut found)?;
    }
    if found == plain {
        return Ok(());
    }
    Err(LabError::Disagree {
        contender: work.contender().name,
        case: "a message in blocks of 7 B".into(),
        expected: hex::encode(&plain[..16]),
        found: hex::encode(&found[..16]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_and_written_comes_back() {
        for work in Work::ALL {
            check(work).unwrap();
        }
        // What is encrypted is not what it was.
        let mut block = [7; 64];
        let mut worker = Worker::new(Work::Both, &[1; 32], &[2; 16]).unwrap();
        worker.work(&mut block, 0).unwrap();
        assert_ne!(block, [7; 64]);
    }
}
