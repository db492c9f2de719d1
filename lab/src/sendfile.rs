//! From file to network: the experiment of B. Who encrypts on the way, and what that costs the
//! server in copies, system calls and context switches.

mod way;

mod client;
mod server;

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::contender::Contender;
use crate::counted::{Calls, ThreadCost, tcp_pair};
use crate::error::{Doing, LabError, Result};
use crate::kernel_tls;
use crate::record::{Axis, Counts, Experiment, Sample};
use crate::rounds::{Effort, Entrant, Plan, run};
use crate::sendfile::way::{Files, Keys, Way};
use crate::tls::Tls;
use crate::undo::Undo;

/// Sizes of the files and how often each is sent: those of B.
const SIZES: [(u64, u64); 4] = [
    (15, 1000),
    (1_000_000, 10),
    (10_000_000, 3),
    (100_000_000, 1),
];
const QUICK_SIZES: [(u64, u64); 3] = [(15, 200), (1_000_000, 5), (10_000_000, 1)];

/// Who can take part, and why the others can't.
pub fn contenders() -> Vec<Contender> {
    Way::ALL.map(Way::contender).to_vec()
}

/// Sends files of each size in every way that can run; they lie below `folder`, in memory too.
pub fn sendfile(effort: Effort, folder: &Path) -> Result<Experiment> {
    let folder = folder.join(format!("coffer-lab-sendfile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
    let gone = folder.clone();
    let _undo = Undo::by(move || drop(std::fs::remove_dir_all(gone)));
    let sizes: &[(u64, u64)] = if effort.quick { &QUICK_SIZES } else { &SIZES };
    let (keys, tls) = (Keys::new()?, Tls::new()?);
    let files: Result<Vec<Files>> = sizes
        .iter()
        .map(|&(bytes, _)| Files::create(&folder, bytes, &keys))
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
            those.map(move |(contender, way)| Entrant {
                contender,
                x: bytes,
                measure: Box::new(move || measure(way, files, keys, tls, transfers)),
            })
        });
    let entrants = entrants.collect();
    let plan = Plan {
        id: "sendfile/transfer".into(),
        title: "From file to network, by the size of the file".into(),
        axis: Axis::FileBytes,
        how:
            "One connection on 127.0.0.1; the client asks for each transfer, takes it and compares \
              it. From the first question to the last byte. CPU seconds, system calls and context \
              switches are the server's alone; figures of them are of one transfer. The files lie \
              in memory."
                .into(),
        contenders: contenders.clone(),
        entrants,
        whole_machine: false,
    };
    run(plan, effort)
}

/// What the server's thread did.
struct Served {
    cost: ThreadCost,
    calls: u64,
}

fn measure(way: Way, files: &Files, keys: &Keys, tls: &Tls, transfers: u64) -> Result<Sample> {
    let (at_client, at_server) = tcp_pair().doing(|| "connecting".into())?;
    if way == Way::KernelTls {
        kernel_tls::enable(&at_server, &at_client).doing(|| "kernel TLS".into())?;
    }
    thread::scope(|scope| {
        let (ready, told) = mpsc::channel();
        let serving = scope.spawn(move || -> Result<Served> {
            let calls = Calls::default();
            let mut server = server::Server::connect(way, at_server, tls, &calls)?;
            // The client can't be told when it is gone: then it says itself what happened.
            let _ = ready.send(());
            let (before, called) = (ThreadCost::so_far(), calls.get());
            for _ in 0..transfers {
                server.serve(files, keys)?;
            }
            let after = ThreadCost::so_far();
            Ok(Served {
                cost: ThreadCost {
                    cpu_seconds: after.cpu_seconds - before.cpu_seconds,
                    context_switches: after.context_switches - before.context_switches,
                },
                calls: calls.get() - called,
            })
        });
        let received = (|| -> Result<f64> {
            let mut client = client::Client::connect(way, at_client, tls)?;
            let _ = told.recv();
            let start = Instant::now();
            for _ in 0..transfers {
                client.fetch(files, keys)?;
            }
            Ok(start.elapsed().as_secs_f64())
        })();
        let served = serving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sample(files.bytes, transfers, received?, &served?)
    })
}

fn sample(bytes: u64, transfers: u64, wall_seconds: f64, served: &Served) -> Result<Sample> {
    if wall_seconds <= 0.0 {
        return Err(LabError::Data {
            file: "sendfile".into(),
            what: "took no time".into(),
        });
    }
    Ok(Sample {
        bytes: bytes * transfers,
        wall_seconds,
        cpu_seconds: served.cost.cpu_seconds,
        counts: Some(Counts {
            transfers,
            system_calls: served.calls,
            context_switches: served.cost.context_switches,
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
    fn every_way_that_runs_moves_the_file_and_sendfile_needs_fewest_calls() {
        let folder = folder("ways");
        let (keys, tls) = (Keys::new().unwrap(), Tls::new().unwrap());
        let files = Files::create(&folder, 1_000_000, &keys).unwrap();
        let mut calls = std::collections::BTreeMap::new();
        for way in Way::ALL {
            if way.contender().availability.runs() {
                let sample = measure(way, &files, &keys, &tls, 3).unwrap();
                assert_eq!(sample.bytes, 3_000_000);
                calls.insert(way.contender().name, sample.counts.unwrap().system_calls);
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let (plain, copying) = (calls["none, sendfile"], calls["none, read and write"]);
        assert!(plain < copying, "{calls:?}");
        assert!(calls.len() >= 6, "{calls:?}");
    }

    /// The server sends another file than the client expects: plaintext, cut off or changed.
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
        for fault in [changed, unsealed] {
            std::fs::write(&files.sealed, fault).unwrap();
            measure(Way::SealedSendFile, &files, &keys, &tls, 1).unwrap_err();
            measure(Way::SealedTls, &files, &keys, &tls, 1).unwrap_err();
        }
        let mut other = plain.clone();
        other[99_999] ^= 1;
        std::fs::write(&files.plain, other).unwrap();
        for way in [Way::SendFile, Way::ReadWrite, Way::Gcm, Way::Tls] {
            let error = measure(way, &files, &keys, &tls, 1)
                .unwrap_err()
                .to_string();
            assert!(error.contains("other bytes"), "{way:?}: {error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
