//! From file to network: the experiment of B. Who encrypts on the way, and what that costs the
//! server in copies, system calls and context switches.

pub mod way;

mod spliced;

mod http;

mod client;
mod server;

mod transfer;

use std::path::Path;

use crate::contender::{Availability, Contender};
use crate::error::{Doing, LabError, Result};
use crate::host::folder::{Folder, Room};
use crate::host::programs::marked;
use crate::measuring::observe::observe;
use crate::measuring::progress::Progress;
use crate::measuring::rounds::{Amounts, Effort, Entrant, Figure, Plan, run};
use crate::record::check::as_text;
use crate::record::{Axis, Experiment, Observed};
use crate::sendfile::transfer::{Task, measure};
use crate::sendfile::way::{Files, Keys, Way};
use coffer_measure::tls::Tls;

/// Sizes of the files and how often each is sent: those of B. Where instructions are counted, more
/// transfers and greater files tell the same, slowly.
const SIZES: Amounts<&[(u64, u64)]> = Amounts {
    full: &[(1_000_000, 10), (10_000_000, 3), (100_000_000, 1)],
    quick: &[(1_000_000, 5), (10_000_000, 1)],
    counted: &[(1_000_000, 2), (10_000_000, 1)],
    quick_counted: &[(1_000_000, 1)],
};

/// The small file of B, and how often it is asked for over one connection.
const SMALL_BYTES: u64 = 15;
const REQUESTS: Amounts<u64> = Amounts {
    full: 1000,
    quick: 200,
    counted: 200,
    quick_counted: 50,
};

/// How often it is asked for over a connection of its own each time.
const CONNECTIONS: Amounts<u64> = Amounts {
    full: 50,
    quick: 10,
    counted: 10,
    quick_counted: 3,
};

/// More transfers than these tell nothing new about system calls.
const OBSERVED_TRANSFERS: u64 = 10;

/// Who can take part, and why the others can't.
pub fn contenders() -> Vec<Contender> {
    Way::ALL.map(Way::contender).to_vec()
}

/// Sends files of each size in every way that can run, and asks for a small one again and again;
/// they lie below `folder`, in memory too.
pub fn sendfile(effort: Effort, folder: &Path) -> Result<Vec<Experiment>> {
    let own = Folder::new(folder, "sendfile")?;
    let folder = &own.path;
    let sizes = fitting(effort.choose(SIZES), &Room::of(folder)?);
    let (keys, tls) = (Keys::new()?, Tls::new()?);
    let files = |bytes| Files::create(folder, bytes, &keys);
    let small = files(SMALL_BYTES)?;
    let large: Result<Vec<Files>> = sizes.iter().map(|&(bytes, _)| files(bytes)).collect();
    let large = large?;
    let task = |way, files, transfers, each_connects| Task {
        way,
        files,
        keys: &keys,
        tls: &tls,
        transfers,
        each_connects,
        observed: false,
    };
    let large = sizes.iter().zip(&large);
    let transfers = large.map(|(&(_, transfers), files)| (files, transfers));
    let mut transfer = run(
        Plan {
            id: "sendfile/transfer".into(),
            title: "From file to network, by the size of the file".into(),
            how: format!("{HOW} {OBSERVED}"),
            ..plan(transfers.collect(), Figure::Speed, |way, files, count| {
                task(way, files, count, false)
            })
        },
        effort,
    )?;
    if let Err(error) = observe_all(&mut transfer, sizes, folder) {
        match error {
            // A container may forbid it: then there are no such figures.
            LabError::Io { .. } => {
                transfer.how += &as_text(&format!(" Not observed here: {error}."));
            }
            other => return Err(other),
        }
    }
    let request = Plan {
        id: "sendfile/request".into(),
        title: "A request for 15 B, over a connection that stands".into(),
        how: HOW.to_owned(),
        ..plan(
            vec![(&small, effort.choose(REQUESTS))],
            Figure::Request,
            |way, files, count| task(way, files, count, false),
        )
    };
    let connection = Plan {
        id: "sendfile/connection".into(),
        title: "A request for 15 B, over a connection of its own".into(),
        how: format!(
            "{HOW} Each request connects first, and shakes hands where TLS is spoken (X25519, an \
             ECDSA certificate, no resumption)."
        ),
        ..plan(
            vec![(&small, effort.choose(CONNECTIONS))],
            Figure::Request,
            |way, files, count| task(way, files, count, true),
        )
    };
    let (request, connection) = (run(request, effort)?, run(connection, effort)?);
    Ok(vec![transfer, request, connection])
}

const HOW: &str = "One connection on 127.0.0.1; the client asks for each transfer, takes it and \
     compares it. From the first question to the last byte. CPU seconds and context switches are \
     the server's alone. The files lie in memory.";

const OBSERVED: &str = "Its system calls were observed from outside (ptrace) in a run that was not \
     timed: bytes that read, write, send and receive say they moved cross between kernel and \
     program, and are copied; those of sendfile and splice stay in the kernel. What the kernel \
     copies within itself is not seen.";

/// All ways that can run, with these files, each so often.
fn plan<'a>(
    files: Vec<(&'a Files, u64)>,
    figure: Figure,
    task: impl Fn(Way, &'a Files, u64) -> Task<'a>,
) -> Plan<'a> {
    let mut contenders = contenders();
    let mut entrants = Vec::new();
    for (files, transfers) in files {
        for (contender, way) in Way::ALL.into_iter().enumerate() {
            let task = task(way, files, transfers);
            let availability = &mut contenders[contender].availability;
            if task.each_connects && way.through_kernel_tls() {
                *availability = Availability::cannot(
                    "the lab gives the kernel its keys without a handshake",
                    "a library that shakes hands and hands its keys to the kernel",
                );
            }
            if availability.runs() {
                entrants.push(Entrant {
                    contender,
                    x: files.bytes,
                    measure: Box::new(move || measure(&task)),
                });
            }
        }
    }
    Plan {
        id: String::new(),
        title: String::new(),
        axis: Axis::FileBytes,
        how: String::new(),
        contenders,
        entrants,
        figure,
        whole_machine: false,
    }
}

/// The sizes for whose files there is room: three of each, as many again for those who are
/// observed, and what the client compares with.
fn fitting<'a>(sizes: &'a [(u64, u64)], room: &Room) -> &'a [(u64, u64)] {
    let needed = |count: &usize| sizes[..*count].iter().map(|(bytes, _)| 8 * bytes).sum();
    let fits = |count: &usize| room.has(needed(count));
    let count = (1..=sizes.len()).rev().find(fits).unwrap_or(1);
    &sizes[..count]
}

/// Observes one run of each that has figures.
fn observe_all(experiment: &mut Experiment, sizes: &[(u64, u64)], folder: &Path) -> Result<()> {
    let program = std::env::current_exe().doing(|| "looking for this program".into())?;
    let folder = folder.join("observed");
    std::fs::create_dir(&folder).doing(|| format!("making {}", folder.display()))?;
    let points = experiment.series.iter().map(|series| series.points.len());
    let progress = Progress::new("Observing system calls and copies", points.sum());
    for (way, series) in Way::ALL.into_iter().zip(&mut experiment.series) {
        progress.say(&series.contender.name);
        for point in &mut series.points {
            let repeated = sizes.iter().find(|(bytes, _)| *bytes == point.x);
            let transfers = repeated.map_or(1, |&(_, transfers)| transfers.min(OBSERVED_TRANSFERS));
            let mut command = marked(&program);
            command.args(["observe-transfer", &way.argument()]);
            command.args([point.x, transfers].map(|number| number.to_string()));
            let calls = observe(command.arg(&folder))?;
            point.observed = Some(Observed {
                transfers,
                bytes: point.x * transfers,
                calls,
            });
            progress.step();
        }
    }
    Ok(())
}

/// Is the process that is observed: transfers a file of its own, below `folder`, so many times.
pub fn be_observed(way: Way, bytes: u64, transfers: u64, folder: &Path) -> Result<()> {
    let (keys, tls) = (Keys::new()?, Tls::new()?);
    let files = Files::create(folder, bytes, &keys)?;
    let task = Task {
        way,
        files: &files,
        keys: &keys,
        tls: &tls,
        transfers,
        each_connects: false,
        observed: true,
    };
    measure(&task).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Sample;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("coffer-lab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn every_way_that_runs_moves_the_file() {
        let folder = folder("ways");
        let (keys, tls) = (Keys::new().unwrap(), Tls::new().unwrap());
        let files = Files::create(&folder, 1_000_000, &keys).unwrap();
        // Less than a block of a cipher: the kernel must not be left to wait for more.
        let small = Files::create(&folder, SMALL_BYTES, &keys).unwrap();
        let runs = |way: &Way| way.contender().availability.runs();
        let those: Vec<Way> = Way::ALL.into_iter().filter(runs).collect();
        assert!(those.len() >= 8, "{those:?}");
        for way in those {
            let sample = transfer(way, &files, &keys, &tls, 3).unwrap();
            assert_eq!(sample.bytes, 3_000_000);
            let sample = transfer(way, &small, &keys, &tls, 3).unwrap();
            assert_eq!((sample.bytes, sample.latency), (3 * SMALL_BYTES, None));
            let each = transfer(way, &small, &keys, &tls, 50).unwrap().latency;
            assert!(each.is_some_and(|took| took.half > 0.0), "{way:?}");
            let each_connects = !way.through_kernel_tls();
            let task = Task {
                way,
                files: &files,
                keys: &keys,
                tls: &tls,
                transfers: 3,
                each_connects,
                observed: false,
            };
            assert_eq!(measure(&task).unwrap().counts.unwrap().transfers, 3);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn transfer(way: Way, files: &Files, keys: &Keys, tls: &Tls, times: u64) -> Result<Sample> {
        measure(&Task {
            way,
            files,
            keys,
            tls,
            transfers: times,
            each_connects: false,
            observed: false,
        })
    }

    /// The server sends another file than the client expects: plaintext, changed or cut off.
    #[test]
    fn planted_faults_are_caught() {
        let folder = folder("faults");
        let (keys, tls) = (Keys::new().unwrap(), Tls::new().unwrap());
        let files = Files::create(&folder, 100_000, &keys).unwrap();
        let sealed = std::fs::read(&files.sealed).unwrap();
        let plain = std::fs::read(&files.plain).unwrap();
        let mut changed = sealed.clone();
        changed[50_000] ^= 1;
        let unsealed = [&plain[..], &[0; 1000]].concat()[..sealed.len()].to_vec();
        for fault in [changed, unsealed, sealed[..70_000].to_vec()] {
            std::fs::write(&files.sealed, fault).unwrap();
            transfer(Way::SealedSendFile, &files, &keys, &tls, 1).unwrap_err();
            transfer(Way::SealedTls, &files, &keys, &tls, 1).unwrap_err();
        }
        std::fs::write(&files.plain, &plain[..99_999]).unwrap();
        for way in [
            Way::SendFile,
            Way::ReadWrite,
            Way::Gcm,
            Way::Tls,
            Way::Http,
            Way::Https,
        ] {
            transfer(way, &files, &keys, &tls, 1).unwrap_err();
        }
        let mut other = plain.clone();
        other[99_999] ^= 1;
        std::fs::write(&files.plain, other).unwrap();
        for way in [
            Way::SendFile,
            Way::ReadWrite,
            Way::Gcm,
            Way::Tls,
            Way::Http,
            Way::Https,
        ] {
            let error = transfer(way, &files, &keys, &tls, 1)
                .unwrap_err()
                .to_string();
            assert!(error.contains("other bytes"), "{way:?}: {error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
