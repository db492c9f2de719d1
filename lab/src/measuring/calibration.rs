//! Whether a simulated processor counts what a real one would do: work whose cost is known within
//! limits, by the clock that counts instructions. A processor that counted each byte of a copy by
//! `rep movsb` would show here: the copy of 64 KiB would cost ten times as much a byte as that of
//! 8 KiB.

use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{Doing, Result};
use crate::record::Calibration;

/// Lengths of copies: short ones that stay in registers, and long ones for which libraries and
/// kernels have other instructions.
const COPIES: [usize; 3] = [8 << 10, 64 << 10, 1 << 20];

/// How much is copied and hashed in all, in bytes, and how many turns and calls are made.
const BYTES: usize = 8 << 20;
const TURNS: u32 = 1_000_000;
const CALLS: u32 = 20_000;

/// Does all of it.
pub fn calibrate() -> Result<Vec<Calibration>> {
    let mut all = Vec::new();
    for length in COPIES {
        all.push(copy_in_program(length));
        all.push(copy_by_kernel(length)?);
    }
    all.sort_by_key(|one| one.work.starts_with("pread"));
    all.extend([hash(), branches(), system_calls()]);
    Ok(all)
}

fn counted(
    work: impl Into<String>,
    unit: &str,
    count: usize,
    (least, most): (f64, f64),
    mut run: impl FnMut(),
) -> Calibration {
    // What is done for the first time costs more: memory is given, code is looked up.
    run();
    let start = Instant::now();
    run();
    // There a nanosecond is an instruction.
    let instructions = start.elapsed().as_nanos() as f64 / count as f64;
    Calibration {
        work: work.into(),
        unit: unit.to_owned(),
        instructions,
        least,
        most,
    }
}

/// A load and a store for 16 to 64 bytes.
fn copy_in_program(length: usize) -> Calibration {
    let (from, mut to) = (vec![0x5a_u8; length], vec![0_u8; length]);
    let work = format!("copy in the program, {} KiB at a time", length >> 10);
    counted(work, "byte", BYTES, (0.02, 0.25), || {
        for _ in 0..BYTES / length {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
    })
}

/// At least what a copy takes, and the way to each page.
fn copy_by_kernel(length: usize) -> Result<Calibration> {
    let doing = || "making a file in memory".to_owned();
    let file = memfd_create("calibration", MemfdFlags::CLOEXEC).doing(doing)?;
    let mut file = std::fs::File::from(file);
    let mut buffer = vec![0x5a_u8; length];
    file.write_all(&buffer).doing(doing)?;
    let work = format!("pread from memory, {} KiB at a time", length >> 10);
    let mut failed = Ok(());
    let calibration = counted(work, "byte", BYTES, (0.02, 1.0), || {
        for _ in 0..BYTES / length {
            if let Err(error) = file.read_exact_at(black_box(&mut buffer), 0) {
                failed = Err(error);
            }
        }
    });
    failed.doing(|| "reading a file in memory".into())?;
    Ok(calibration)
}

/// FNV-1a: load, exclusive or, multiply, and the loop.
fn hash() -> Calibration {
    let data = vec![0x5a_u8; BYTES];
    counted("hash (FNV-1a)", "byte", BYTES, (3.0, 8.0), || {
        let mut state = 0xcbf2_9ce4_8422_2325_u64;
        for byte in black_box(&data) {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        black_box(state);
    })
}

/// A test, a branch either way, and the loop.
fn branches() -> Calibration {
    counted("branch", "turn", TURNS as usize, (2.0, 12.0), || {
        let mut taken = 0_u32;
        for turn in 0..TURNS {
            if black_box(turn) & 1 == 0 {
                taken = black_box(taken + 1);
            }
        }
        black_box(taken);
    })
}

/// Into the kernel and back, with hardly anything to do there.
fn system_calls() -> Calibration {
    counted(
        "system call (getppid)",
        "call",
        CALLS as usize,
        (50.0, 2000.0),
        || {
            for _ in 0..CALLS {
                black_box(rustix::process::getppid());
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_counts_each_byte_of_a_copy_is_seen() {
        let all = calibrate().unwrap();
        assert_eq!(all.len(), 2 * COPIES.len() + 3);
        let copy = all.iter().find(|one| one.work.starts_with("copy")).unwrap();
        let byte_by_byte = Calibration {
            instructions: 2.01,
            ..copy.clone()
        };
        assert!(!byte_by_byte.is_plausible());
        let by_words = Calibration {
            instructions: 0.13,
            ..copy.clone()
        };
        assert!(by_words.is_plausible());
    }
}
