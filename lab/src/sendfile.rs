//! From file to network: the experiment of B. Who encrypts on the way, and what that costs the
//! server in copies, system calls and context switches.

pub mod way;

mod spliced;

mod client;
mod server;

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::contender::Contender;
use crate::error::{Doing, LabError, Result};
use crate::host::folder::{Folder, Room};
use crate::host::kernel_tls;
use crate::measuring::observe::{self, observe};
use crate::measuring::progress::Progress;
use crate::measuring::rounds::{Amounts, Effort, Entrant, Plan, run};
use crate::record::{Axis, Counts, Experiment, Observed, Sample};
use crate::sendfile::way::{Files, Keys, Way};
use coffer_measure::cpu_time::ThreadCost;
use coffer_measure::loopback::tcp_pair;
use coffer_measure::tls::Tls;

/// Sizes of the files and how often each is sent: those of B. Where instructions are counted, more
/// transfers and greater files tell the same, slowly.
const SIZES: Amounts<&[(u64, u64)]> = Amounts {
    full: &[
        (15, 1000),
        (1_000_000, 10),
        (10_000_000, 3),
        (100_000_000, 1),
    ],
    quick: &[(15, 200), (1_000_000, 5), (10_000_000, 1)],
    counted: &[(15, 200), (1_000_000, 2), (10_000_000, 1)],
    quick_counted: &[(15, 50), (1_000_000, 1)],
};

/// More transfers than these tell nothing new about system calls.
const OBSERVED_TRANSFERS: u64 = 10;

/// Who can take part, and why the others can't.
pub fn contenders() -> Vec<Contender> {
    Way::ALL.map(Way::contender).to_vec()
}

/// Sends files of each size in every way that can run; they lie below `folder`, in memory too.
pub fn sendfile(effort: Effort, folder: &Path) -> Result<Experiment> {
    let own = Folder::new(folder, "sendfile")?;
    let folder = &own.path;
    let sizes = fitting(effort.choose(SIZES), &Room::of(folder)?);
    let (keys, tls) = (Keys::new()?, Tls::new()?);
    let files: Result<Vec<Files>> = sizes
        .iter()
        .map(|&(bytes, _)| Files::create(folder, bytes, &keys))
        .collect();
    let files = files?;
    let contenders = contenders();
    let runs = |way: usize| contenders[way].availability.runs();
    let entrants = sizes
        .iter()
        .zip(&files)
        .flat_map(|(&(bytes, transfers), files)| {
            let those = Way::ALL
                .into_iter()
                .enumerate()
                .filter(|(index, _)| runs(*index));
            let (keys, tls) = (&keys, &tls);
            those.map(move |(contender, way)| {
                let task = Task {
                    way,
                    files,
                    keys,
                    tls,
                    transfers,
                    observed: false,
                };
                Entrant {
                    contender,
                    x: bytes,
                    measure: Box::new(move || measure(&task)),
                }
            })
        });
    let entrants = entrants.collect();
    let plan = Plan {
        id: "sendfile/transfer".into(),
        title: "From file to network, by the size of the file".into(),
        axis: Axis::FileBytes,
        how:
            "One connection on 127.0.0.1; the client asks for each transfer, takes it and compares \
              it. From the first question to the last byte. CPU seconds and context switches are \
              the server's alone. Its system calls were observed from outside (ptrace) in a run \
              that was not timed: bytes that read, write, send and receive say they moved cross \
              between kernel and program, and are copied; those of sendfile and splice stay in \
              the kernel. What the kernel copies within itself is not seen. The files lie in \
              memory."
                .into(),
        contenders: contenders.clone(),
        entrants,
        whole_machine: false,
    };
    let mut experiment = run(plan, effort)?;
    if let Err(error) = observe_all(&mut experiment, sizes, folder) {
        match error {
            // A container may forbid it: then there are no such figures.
            LabError::Io { .. } => experiment.how += &format!(" Not observed here: {error}."),
            other => return Err(other),
        }
    }
    Ok(experiment)
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
            let mut command = Command::new(&program);
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
        observed: true,
    };
    measure(&task).map(drop)
}

/// What is transferred.
#[derive(Clone, Copy)]
struct Task<'a> {
    way: Way,
    files: &'a Files,
    keys: &'a Keys,
    tls: &'a Tls,
    transfers: u64,
    /// The server's thread waits for those who observe it, and tells them when it begins and ends.
    observed: bool,
}

fn measure(task: &Task<'_>) -> Result<Sample> {
    let (at_client, at_server) = tcp_pair().doing(|| "connecting".into())?;
    if task.way.through_kernel_tls() {
        kernel_tls::enable(&at_server, &at_client).doing(|| "kernel TLS".into())?;
    }
    thread::scope(|scope| {
        let (ready, told) = mpsc::channel();
        let serving = scope.spawn(move || serve(task, at_server, &ready));
        let received = (|| -> Result<f64> {
            let mut client = client::Client::connect(task.way, at_client, task.tls)?;
            let _ = told.recv();
            let start = Instant::now();
            for _ in 0..task.transfers {
                client.fetch(task.files, task.keys)?;
            }
            Ok(start.elapsed().as_secs_f64())
        })();
        let served = serving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sample(task, received?, &served?)
    })
}

/// The server's thread; tells when it is ready, and in the end what it cost.
fn serve(task: &Task<'_>, stream: TcpStream, ready: &mpsc::Sender<()>) -> Result<ThreadCost> {
    let mut server = server::Server::connect(task.way, stream, task.tls, task.keys)?;
    if task.observed {
        observe::wait().doing(|| "waiting to be observed".into())?;
    }
    // The client can't be told when it is gone: then it says itself what happened.
    let _ = ready.send(());
    let before = ThreadCost::so_far();
    let mark = || {
        if task.observed {
            observe::mark();
        }
    };
    mark();
    for _ in 0..task.transfers {
        server.serve(task.files, task.keys)?;
    }
    mark();
    let after = ThreadCost::so_far();
    Ok(ThreadCost {
        cpu_seconds: after.cpu_seconds - before.cpu_seconds,
        context_switches: after.context_switches - before.context_switches,
    })
}

fn sample(task: &Task<'_>, wall_seconds: f64, served: &ThreadCost) -> Result<Sample> {
    if wall_seconds <= 0.0 {
        return Err(LabError::Data {
            file: "sendfile".into(),
            what: "took no time".into(),
        });
    }
    Ok(Sample {
        bytes: task.files.bytes * task.transfers,
        wall_seconds,
        cpu_seconds: served.cpu_seconds,
        counts: Some(Counts {
            transfers: task.transfers,
            context_switches: served.context_switches,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let runs = |way: &Way| way.contender().availability.runs();
        let those: Vec<Way> = Way::ALL.into_iter().filter(runs).collect();
        assert!(those.len() >= 6, "{those:?}");
        for way in those {
            let sample = transfer(way, &files, &keys, &tls, 3).unwrap();
            assert_eq!(sample.bytes, 3_000_000);
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
        for way in [Way::SendFile, Way::ReadWrite, Way::Gcm, Way::Tls] {
            transfer(way, &files, &keys, &tls, 1).unwrap_err();
        }
        let mut other = plain.clone();
        other[99_999] ^= 1;
        std::fs::write(&files.plain, other).unwrap();
        for way in [Way::SendFile, Way::ReadWrite, Way::Gcm, Way::Tls] {
            let error = transfer(way, &files, &keys, &tls, 1)
                .unwrap_err()
                .to_string();
            assert!(error.contains("other bytes"), "{way:?}: {error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
