//! The experiment of B on the kernel's crypto framework alone: operations of the null cipher, which
//! encrypts nothing, so that what is left is the way into the kernel and back.

use std::hint::black_box;
use std::time::Duration;

use coffer_seal::random_bytes;

use crate::cipher::{NullCipher, null_cipher};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::raw::speed::again_and_again;
use crate::record::{Axis, Experiment, Sample};

/// The experiment.
pub(super) const ID: &str = "raw/null-cipher";

/// Those that B tells of, and one that is longer.
const BLOCKS: [usize; 4] = [64, 1024, 8192, LONGEST];
const LONGEST: usize = 65_536;

/// One operation, from one buffer to another.
type Pass = Box<dyn FnMut(&[u8], &mut [u8]) -> Result<()>>;

/// Who takes part: what the kernel is measured against comes first.
pub fn contenders() -> Vec<Contender> {
    let copy = Contender::new("copy in the program", Placement::None, "memcpy")
        .set("two copies, as AF_ALG makes them: into a buffer between, and out of it");
    vec![copy, null_cipher()]
}

/// Measures operations of each size, once all that can run were seen to change nothing.
pub(super) fn null_operations(effort: Effort) -> Result<Experiment> {
    let contenders = contenders();
    let runs = |one: &&Contender| one.availability.runs();
    for one in contenders.iter().filter(runs) {
        check(&one.name, open(one)?)?;
    }
    let duration = effort.last(if effort.quick { 8 } else { 40 });
    let entrants = BLOCKS.iter().flat_map(|&block| {
        let those = contenders.iter().enumerate();
        let those = those.filter(|(_, one)| runs(one));
        those.map(move |(contender, one)| Entrant {
            contender,
            x: block as u64,
            measure: Box::new(move || measure(open(one)?, block, duration)),
        })
    });
    let plan = Plan {
        figure: Figure::CpuSpeed,
        whole_machine: false,
        id: ID.into(),
        title: "The experiment of B: operations of the null cipher".into(),
        axis: Axis::BlockBytes,
        how: "One thread. AF_ALG: a sendmsg and a recvmsg for each operation; the kernel copies \
              what it takes, and the null cipher copies that into the program’s buffer. The \
              program alone makes as many copies: what lies between the two is what the way \
              through the kernel costs. Before, what came back was compared with what went in."
            .into(),
        contenders: contenders.clone(),
        entrants: entrants.collect(),
    };
    run(plan, effort)
}

fn open(one: &Contender) -> Result<Pass> {
    if one.placement == Placement::None {
        return Ok(copy());
    }
    let cipher = NullCipher::new()?;
    Ok(Box::new(move |from, to| cipher.pass(from, to)))
}

fn copy() -> Pass {
    let mut between = vec![0; LONGEST];
    Box::new(move |from, to| {
        let between = &mut between[..from.len()];
        between.copy_from_slice(from);
        to.copy_from_slice(black_box(between));
        Ok(())
    })
}

/// What comes back must be what went in.
fn check(name: &str, mut pass: Pass) -> Result<()> {
    for block in BLOCKS {
        let expected = random_bytes::<LONGEST>()[..block].to_vec();
        let mut found = vec![0; block];
        pass(&expected, &mut found)?;
        let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
        if let Some(from) = differs {
            let to = block.min(from + 16);
            return Err(LabError::Disagree {
                contender: name.to_owned(),
                case: format!("{block} B of the null cipher, from byte {from}"),
                expected: hex::encode(&expected[from..to]),
                found: hex::encode(&found[from..to]),
            });
        }
    }
    Ok(())
}

fn measure(mut pass: Pass, block: usize, duration: Duration) -> Result<Sample> {
    let (from, mut to) = (vec![0x5a; block], vec![0; block]);
    // Buffers get their memory at their first use, which is no part of an operation.
    pass(&from, &mut to)?;
    again_and_again(block, duration, || pass(&from, black_box(&mut to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_run_change_nothing() {
        let contenders = contenders();
        assert_eq!(contenders.len(), 2, "AF_ALG even where it can't run");
        for one in contenders.iter().filter(|one| one.availability.runs()) {
            check(&one.name, open(one).unwrap()).unwrap();
        }
    }

    #[test]
    fn planted_faults_are_caught() {
        let nothing: Pass = Box::new(|_, _| Ok(()));
        let truncated: Pass = Box::new(|from, to| {
            let kept = from.len().min(1024);
            to[..kept].copy_from_slice(&from[..kept]);
            Ok(())
        });
        for faulty in [nothing, truncated] {
            let error = check("faulty", faulty).unwrap_err().to_string();
            assert!(error.contains("faulty is wrong"), "{error}");
        }
    }
}
