//! Networks: what does encryption of a link cost, between two network namespaces of this machine?

mod session;

mod link;

mod roster;
mod tap;

pub(crate) mod block;

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::host::folder::{Folder, Room};
use crate::measuring::content::{BLOCK_BYTES, Content, Sink};
use crate::measuring::progress::Progress;
use crate::measuring::rounds::{Amounts, Effort, Entrant, Figure, Plan, run};
use crate::net::link::Link;
use crate::net::roster::{Entry, entries};
use crate::net::session::Session;
use crate::net::tap::Tap;
use crate::record::{Axis, Experiment, Sample};
use coffer_measure::cpu_time::Watch;
use coffer_measure::tls::Tls;

const BLOCKS: Amounts<u64> = Amounts {
    full: 500,
    quick: 40,
    counted: 4,
    quick_counted: 2,
};
const TRIAL_BLOCKS: u64 = 3;

/// The file that is copied.
const SOURCE: &str = "source";

/// As few as give an interval of 95 %, since each sample is long.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 5;

/// What goes over the link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Stream,
    Copy,
}

/// Who can take part, and why the others can't.
pub fn contenders() -> Vec<Contender> {
    let links = entries().into_iter().map(|entry| entry.contender);
    links.chain(block::contenders()).collect()
}

/// All experiments, in their order.
pub fn ids() -> Vec<String> {
    let all = ["stream", "copy", "block-write", "block-read"];
    all.map(|one| format!("net/{one}")).into()
}

/// Moves a stream and a file over every link that can be had; files lie below `folder`.
pub fn net(effort: Effort, folder: &Path) -> Result<Vec<Experiment>> {
    let folder = Folder::new(folder, "net")?;
    // What is sent, and what arrives: one at a time.
    let needed = |blocks| 2 * blocks * BLOCK_BYTES as u64;
    let blocks = Room::of(&folder.path)?.fitting(effort.choose(BLOCKS), needed);
    write_source(&folder.path.join(SOURCE), blocks)?;
    let mut entries = entries();
    let tls = Tls::new()?;
    let lines = open_all(&mut entries, &tls, &folder.path)?;
    let effort = effort.with_usual_rounds(ROUNDS, QUICK_ROUNDS);
    let mut experiments = Vec::new();
    for work in [Work::Stream, Work::Copy] {
        experiments.push(run(plan(work, blocks, &entries, &lines), effort)?);
    }
    // Their links go before others are made.
    drop(lines);
    experiments.extend(block::block(effort, &folder.path, blocks)?);
    Ok(experiments)
}

/// Links of those that can run; why the others can't is noted.
fn open_all<'a>(
    entries: &mut [Entry],
    tls: &'a Tls,
    folder: &Path,
) -> Result<Vec<(usize, Line<'a>)>> {
    let progress = Progress::new("Setting up links", entries.len());
    let mut lines = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        progress.say(&entry.contender.name);
        if entry.contender.availability.runs() {
            match open(entry, tls, index, folder) {
                Ok(line) => lines.push((index, line)),
                Err(error) => entry.contender.availability = Availability::from_failure(error)?,
            }
        }
        progress.step();
    }
    Ok(lines)
}

/// Makes a link and tries it.
fn open<'a>(entry: &Entry, tls: &'a Tls, number: usize, folder: &Path) -> Result<Line<'a>> {
    let own = folder.join(number.to_string());
    std::fs::create_dir(&own).doing(|| format!("making {}", own.display()))?;
    let line = Line {
        link: Link::open(entry.kind, number, &own)?,
        session: entry.session,
        tls,
        source: folder.join(SOURCE),
        arrived: own.join("arrived"),
    };
    check(entry, &line)?;
    Ok(line)
}

fn write_source(path: &Path, blocks: u64) -> Result<()> {
    let doing = || format!("writing {}", path.display());
    let mut file = File::create(path).doing(doing)?;
    let mut content = Content::new(blocks);
    while let Some(block) = content.next() {
        file.write_all(block).doing(doing)?;
    }
    Ok(())
}

fn plan<'a>(
    work: Work,
    blocks: u64,
    entries: &[Entry],
    lines: &'a [(usize, Line<'a>)],
) -> Plan<'a> {
    let (id, title, how) = match work {
        Work::Stream => ("net/stream", "A stream", "From memory to memory"),
        Work::Copy => (
            "net/copy",
            "A file copy",
            "From a file in memory to a file, without sync",
        ),
    };
    let entrants = lines.iter().map(|(contender, line)| Entrant {
        contender: *contender,
        x: 0,
        measure: Box::new(move || measure(line, work, blocks)),
    });
    Plan {
        id: id.into(),
        title: format!("{title} of {blocks} MB between two network namespaces"),
        axis: Axis::Single,
        how: format!(
            "{how}, over a pair of virtual Ethernet devices, in writes of 1 MB; until the receiver \
             has compared all and said so. Connections and keys were made before. CPU seconds are \
             those of the whole machine: both ends, and all that encrypts between them."
        ),
        contenders: entries
            .iter()
            .map(|entry| entry.contender.clone())
            .collect(),
        entrants: entrants.collect(),
        figure: Figure::Speed,
        whole_machine: true,
    }
}

/// A link, and what is spoken over it.
struct Line<'a> {
    link: Link,
    session: Session,
    tls: &'a Tls,
    source: PathBuf,
    arrived: PathBuf,
}

fn measure(line: &Line<'_>, work: Work, blocks: u64) -> Result<Sample> {
    let (listening, told) = mpsc::channel();
    thread::scope(|scope| {
        let receiving = scope.spawn(move || receive(line, work, blocks, &listening));
        let sending = scope.spawn(move || -> Result<Sample> {
            // Without a listener there is an error on the other side, which says more.
            told.recv().map_err(|_| lost())?;
            send(line, work, blocks)
        });
        let sent = sending
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let received = receiving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // What the receiver found wrong is the cause of what the sender met.
        received?;
        let sample = sent?;
        if work == Work::Copy {
            // The next copy finds no old one that it would have to cut off first.
            let gone = std::fs::remove_file(&line.arrived);
            gone.doing(|| format!("removing {}", line.arrived.display()))?;
        }
        Ok(sample)
    })
}

/// A connection that breaks is a failure of the link; what came over it is not wrong.
fn lost() -> LabError {
    LabError::Io {
        action: "moving bytes over the link".into(),
        source: io::Error::new(ErrorKind::UnexpectedEof, "the other side is gone"),
    }
}

fn receive(line: &Line<'_>, work: Work, blocks: u64, listening: &mpsc::Sender<()>) -> Result<()> {
    let mut stream = line.link.accept(line.session, line.tls, listening)?;
    let mut file = match work {
        Work::Stream => None,
        Work::Copy => {
            let file = File::create(&line.arrived);
            Some(file.doing(|| format!("writing {}", line.arrived.display()))?)
        }
    };
    let mut sink = Sink::new(blocks);
    let mut buffer = vec![0; 256 << 10];
    let mut left = blocks * BLOCK_BYTES as u64;
    while left > 0 {
        let count = stream.read(&mut buffer).doing(|| "receiving".into())?;
        if count == 0 {
            return Err(lost());
        }
        sink.take(&buffer[..count]);
        if let Some(file) = &mut file {
            file.write_all(&buffer[..count])
                .doing(|| "writing what arrived".into())?;
        }
        left = left.saturating_sub(count as u64);
    }
    sink.complete()?;
    stream.write_all(b"!").doing(|| "answering".into())?;
    stream.flush().doing(|| "answering".into())
}

fn send(line: &Line<'_>, work: Work, blocks: u64) -> Result<Sample> {
    let mut stream = line.link.connect(line.session, line.tls)?;
    let watch = Watch::new();
    match work {
        Work::Stream => {
            let mut content = Content::new(blocks);
            while let Some(block) = content.next() {
                stream.write_all(block).doing(|| "sending".into())?;
            }
        }
        Work::Copy => {
            let doing = || format!("reading {}", line.source.display());
            let mut file = File::open(&line.source).doing(doing)?;
            let mut block = vec![0; BLOCK_BYTES];
            for _ in 0..blocks {
                file.read_exact(&mut block).doing(doing)?;
                stream.write_all(&block).doing(|| "sending".into())?;
            }
        }
    }
    stream.flush().doing(|| "sending".into())?;
    stream
        .read_exact(&mut [0])
        .doing(|| "waiting for the answer".into())?;
    Ok(Sample {
        bytes: blocks * BLOCK_BYTES as u64,
        wall_seconds: watch.wall_seconds(),
        cpu_seconds: watch.machine().busy_seconds,
        counts: None,
        latency: None,
    })
}

/// Tries a line, and listens on the wire meanwhile: all must arrive, and nothing readable pass.
fn check(entry: &Entry, line: &Line<'_>) -> Result<()> {
    let tap = Tap::open(&line.link)?;
    measure(line, Work::Stream, TRIAL_BLOCKS)?;
    let readable = tap.saw_plaintext()?;
    as_expected(&entry.contender, readable)
}

/// Who does not encrypt is readable on the wire, and only those.
fn as_expected(contender: &Contender, readable: bool) -> Result<()> {
    if readable == (contender.placement == Placement::None) {
        return Ok(());
    }
    Err(LabError::Data {
        file: contender.name.clone(),
        what: if readable {
            "plaintext goes over the wire".into()
        } else {
            "nothing was seen on the wire: the link leads somewhere else".into()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::link::Kind;

    /// A link on which nothing encrypts, called encrypted: as IPsec would be whose policy is wrong.
    #[test]
    fn plaintext_on_the_wire_is_caught() {
        let entry = |placement| Entry {
            contender: Contender::new("faulty", placement, "a planted fault"),
            kind: Kind::Wire,
            session: Session::Plain,
        };
        let possible = entries().remove(0).contender.availability;
        if !possible.runs() {
            eprintln!("not tested: {possible:?}");
            return;
        }
        let folder = std::env::temp_dir().join(format!("coffer-lab-wire-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let tls = Tls::new().unwrap();
        let line = |session, number| Line {
            link: Link::open(Kind::Wire, number, &folder).unwrap(),
            session,
            tls: &tls,
            source: folder.join("source"),
            arrived: folder.join("arrived"),
        };
        let plain = line(Session::Plain, 900);
        let error = check(&entry(Placement::Kernel), &plain).unwrap_err();
        // It stops the lab, unlike a link that breaks.
        let error = Availability::from_failure(error).unwrap_err().to_string();
        assert!(
            error.contains("faulty") && error.contains("plaintext"),
            "{error}"
        );
        assert!(!Availability::from_failure(lost()).unwrap().runs());
        check(&entry(Placement::None), &plain).unwrap();
        check(&entry(Placement::User), &line(Session::Rustls, 901)).unwrap();
        drop(plain);
        std::fs::remove_dir_all(&folder).unwrap();
        let left = std::fs::read_dir("/run/netns")
            .into_iter()
            .flatten()
            .flatten();
        let own = format!("coffer-lab-{}-90", std::process::id());
        let own = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&own);
        assert_eq!(left.filter(own).count(), 0);
    }
}
