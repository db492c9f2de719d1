//! The ladder: two kernels built from Debian's source, one nearly stock and one tuned, and all
//! steps between them, each measured in the loop of A (its follow-up on configurations, 2008).

mod source;
mod steps;

mod build;

use std::path::Path;

use crate::contender::Contender;
use crate::error::{LabError, Result};
use crate::host::programs::version;
use crate::kernel::accelerator::Accelerator;
use crate::kernel::own_module;
use crate::kernel::release::Kernel;
use crate::kernel::request::{Request, Work};
use crate::kernel::run::{lock, measure_on, prepare};
use crate::measuring::progress::Progress;
use crate::record::shares::FAMILY;
use crate::record::{Axis, Experiment, Point, Record, Series, Unit};

use build::{Builder, Built, kept_below};
use source::Source;
use steps::{STEPS, configuration};

/// Rounds where time is measured.
const ROUNDS: u16 = 5;

/// What is compared: the end of the experiment's name, its title, and the contender in the loop of
/// A.
const COMPARED: [(&str, &str, &str); 4] = [
    (
        "user",
        "In a user program, AES in plain C",
        "AES in plain C, loop in C",
    ),
    (
        "module",
        "In the kernel, the same code as a module",
        "AES in plain C, kernel module",
    ),
    (
        "af-alg-generic",
        "The kernel's own AES in C, by system calls of 512 B",
        "AF_ALG driver cbc(aes-generic)",
    ),
    (
        "af-alg-aesni",
        "The kernel's AES-NI, by system calls of 512 B",
        "AF_ALG driver cbc-aes-aesni",
    ),
];

/// Builds all kernels that the cache lacks, boots each, and gives one record.
pub fn measure(request: &Request) -> Result<Record> {
    let cache = prepare(request)?;
    let building = lock(&cache)?;
    let source = Source::obtain(&cache)?;
    let linux = source.version()?;
    let compiler = own_module::compiler();
    let compiler = version(compiler, "--version").unwrap_or_else(|| compiler.to_owned());
    let kept = kept_below(&cache);
    let builder = Builder {
        source: &source,
        version: &linux,
        compiler: &compiler,
        work: kept.join("work"),
        kept,
    };
    let kernels = build_all(&builder)?;
    drop(building);
    let records = measure_all(request, &cache, &kernels)?;
    combine(records, &format!("Linux {linux}, {compiler}"))
}

fn build_all(builder: &Builder<'_>) -> Result<Vec<Built>> {
    let progress = Progress::new("Kernels built", STEPS.len() + 1);
    let mut kernels = Vec::new();
    for taken in 0..=STEPS.len() {
        progress.say(&name(taken));
        kernels.push(builder.build(&configuration(taken))?);
        progress.step();
    }
    Ok(kernels)
}

/// Interleaved: each round boots every kernel once. The records of each kernel.
fn measure_all(request: &Request, cache: &Path, kernels: &[Built]) -> Result<Vec<Vec<Record>>> {
    let (mut request, mut rounds) = of_one_boot(request);
    let mut records = vec![Vec::new(); kernels.len()];
    let progress = Progress::new("Kernels measured", kernels.len() * usize::from(rounds));
    let mut round = 0;
    while round < rounds {
        for (taken, (built, records)) in kernels.iter().zip(&mut records).enumerate() {
            progress.say(&name(taken));
            let kernel = Kernel {
                image: built.image.clone(),
                unpacked: None,
                packages: None,
                module: Some(built.module.clone()),
            };
            let record = measure_on(&request, cache, &kernel)?;
            if record.experiments.iter().any(counts) {
                // Nothing varies, so there is nothing to repeat; and KVM need not be tried again.
                request.accelerator = Some(Accelerator::Tcg);
                rounds = 1;
            }
            records.push(record);
            progress.step();
        }
        round += 1;
    }
    Ok(records)
}

/// Each boot measures once; the rounds go over all kernels.
fn of_one_boot(request: &Request) -> (Request, u16) {
    let boot = Request {
        work: Work::LoopOfA,
        rounds: Some(1),
        ..request.clone()
    };
    (boot, request.rounds.unwrap_or(ROUNDS))
}

fn counts(experiment: &Experiment) -> bool {
    experiment.unit.counts_instructions()
}

/// What stands at the rung after `taken` steps.
fn name(taken: usize) -> String {
    match taken {
        0 => "0 nearly stock".to_owned(),
        all if all == STEPS.len() => format!("{all} {}: tuned", STEPS[all - 1].name),
        some => format!("{some} {}", STEPS[some - 1].name),
    }
}

/// One experiment for each of [`COMPARED`], with the rungs of the ladder as its contenders.
fn combine(rungs: Vec<Vec<Record>>, built_as: &str) -> Result<Record> {
    let mut experiments = Vec::new();
    for (slug, title, contender) in COMPARED {
        // A processor without AES-NI has no driver for it, whatever the kernel.
        if !rungs.iter().flatten().any(|one| holds(one, contender)) {
            continue;
        }
        let mut unit = None;
        let mut series = Vec::new();
        for (taken, records) in rungs.iter().enumerate() {
            let mut samples = Vec::new();
            let mut placement = None;
            for found in records.iter().flat_map(|one| &one.experiments) {
                let wanted = |one: &&Series| one.contender.name == contender;
                if let Some(one) = found.series.iter().find(wanted) {
                    unit = Some(found.unit);
                    placement = Some(one.contender.placement);
                    samples.extend(one.points.iter().flat_map(|point| point.samples.clone()));
                }
            }
            let (Some(placement), false) = (placement, samples.is_empty()) else {
                return Err(LabError::Data {
                    file: format!("the record of kernel {}", name(taken)),
                    what: format!("holds no figure of {contender}"),
                });
            };
            let point = Point {
                x: 0,
                samples,
                observed: None,
            };
            series.push(Series {
                contender: describe(taken, Contender::new(name(taken), placement, built_as)),
                points: vec![point],
            });
        }
        let unit = unit.unwrap_or(Unit::MegabytesPerSecond);
        experiments.push(Experiment {
            title: title.to_owned(),
            how: "The loop of A (AES-256-CBC, 1 KB as two calls of 512 B, there and back) under \
                  kernels built from Debian's source over tinyconfig. Each has all changes of \
                  those above it, and one more. A step's share of the whole difference depends \
                  on the order of the steps."
                .into(),
            series,
            ..Experiment::new(format!("{FAMILY}{slug}"), Axis::Single, unit)
        });
    }
    let first = rungs.into_iter().flatten().next();
    let Some(first) = first else {
        return Err(LabError::Data {
            file: "the ladder".into(),
            what: "has no rungs".into(),
        });
    };
    Ok(Record {
        experiments,
        ..first
    })
}

fn holds(record: &Record, contender: &str) -> bool {
    let mut series = record.experiments.iter().flat_map(|one| &one.series);
    series.any(|one| one.contender.name == contender && !one.points.is_empty())
}

fn describe(taken: usize, contender: Contender) -> Contender {
    match taken.checked_sub(1).map(|step| STEPS[step]) {
        None => STEPS.iter().fold(contender, |contender, step| {
            contender.set(step.stock.join(" "))
        }),
        Some(step) => contender
            .set(step.tuned.join(" "))
            .set(format!("A: {}", step.published)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::Sample;

    fn record(bytes: u64) -> Record {
        let series = COMPARED.map(|(_, _, name)| Series {
            contender: Contender::new(name, Placement::Kernel, ""),
            points: vec![Point {
                x: 0,
                samples: vec![Sample::new(bytes, 1.0, 1.0)],
                observed: None,
            }],
        });
        let unit = Unit::BytesPerThousandInstructions;
        Record {
            experiments: vec![Experiment {
                series: series.into(),
                ..Experiment::new("raw/table-a-loop", Axis::Single, unit)
            }],
            ..Record::begin(String::new(), String::new())
        }
    }

    #[test]
    fn rounds_are_those_over_all_kernels() {
        let request = |rounds| Request {
            kernel: String::new(),
            accelerator: None,
            work: Work::LoopOfA,
            quick: true,
            rounds,
            cache: "cache".into(),
            keep: false,
            lab: "lab".into(),
            programs: Vec::new(),
        };
        for (asked, expected) in [(Some(7), 7), (None, ROUNDS)] {
            let (boot, rounds) = of_one_boot(&request(asked));
            assert_eq!((boot.rounds, rounds), (Some(1), expected));
        }
    }

    #[test]
    fn each_kernel_is_a_contender_with_all_its_samples() {
        let rungs = (1..=STEPS.len() as u64 + 1).map(|n| vec![record(n), record(n)]);
        let whole = combine(rungs.collect(), "Linux").unwrap();
        assert_eq!(whole.experiments.len(), COMPARED.len());
        for experiment in &whole.experiments {
            assert_eq!(experiment.series.len(), STEPS.len() + 1);
            for (index, series) in experiment.series.iter().enumerate() {
                assert_eq!(series.points[0].samples.len(), 2);
                assert_eq!(series.points[0].samples[0].bytes, index as u64 + 1);
            }
        }
        let mut lacking = record(1);
        lacking.experiments[0].series.pop();
        let all_lack = vec![vec![lacking.clone()]; STEPS.len() + 1];
        let whole = combine(all_lack, "Linux").unwrap();
        assert_eq!(whole.experiments.len(), COMPARED.len() - 1);
        let mut one_lacks = vec![vec![record(1)]; STEPS.len() + 1];
        one_lacks[3] = vec![lacking];
        assert!(combine(one_lacks, "Linux").is_err());
    }
}
