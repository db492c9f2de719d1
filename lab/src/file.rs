//! Files: what does it cost to write and read one through each kind of encryption?

mod store;

mod folder_store;
mod image;
mod piped;
mod sealed;
mod server;

mod roster;

use std::path::Path;

use crate::contender::{Availability, Contender};
use crate::content::{BLOCK_BYTES, Content, Sink};
use crate::cost::Watch;
use crate::error::{Doing, Result};
use crate::file::roster::{Entry, entries};
use crate::file::store::{Store, check};
use crate::folder::Folder;
use crate::record::{Axis, Experiment, Sample};
use crate::rounds::{Amounts, Effort, Entrant, Plan, run};

const BLOCKS: Amounts<u64> = Amounts {
    full: 1000,
    quick: 32,
    counted: 8,
    quick_counted: 4,
};
const ROUNDS: usize = 5;
const QUICK_ROUNDS: usize = 3;

/// What is done with the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Write,
    ReadCold,
    ReadWarm,
}

/// Who can take part, and why the others can't.
pub fn contenders() -> Vec<Contender> {
    entries().into_iter().map(|entry| entry.contender).collect()
}

/// Writes and reads one file through every contender that can run, below `folder`.
pub fn file(effort: Effort, folder: &Path) -> Result<Vec<Experiment>> {
    let folder = Folder::new(folder, "file")?;
    let mut entries = entries();
    let blocks = effort.choose(BLOCKS);
    let most = if effort.quick { QUICK_ROUNDS } else { ROUNDS };
    let effort = Effort {
        rounds: effort.rounds.min(most),
        ..effort
    };
    let mut stores: Vec<Option<Box<dyn Store>>> = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        stores.push(None);
        if !entry.contender.availability.runs() {
            continue;
        }
        match open(entry, &folder.path.join(index.to_string()), blocks) {
            Ok(store) => stores[index] = Some(store),
            Err(error) => entry.contender.availability = Availability::from_failure(error)?,
        }
    }
    let works = [
        (Work::Write, "file/write", "Writing a file, durable"),
        (
            Work::ReadCold,
            "file/read",
            "Reading a file that is not in memory",
        ),
        (
            Work::ReadWarm,
            "file/read-warm",
            "Reading a file that is in memory",
        ),
    ];
    let mut experiments = Vec::new();
    for (work, id, title) in works {
        let plan = plan(work, id, title, &entries, &mut stores, blocks);
        experiments.push(run(plan, effort)?);
    }
    Ok(experiments)
}

/// Makes the store and tries it: what comes back is what went in, and lies there encrypted.
fn open(entry: &Entry, folder: &Path, blocks: u64) -> Result<Box<dyn Store>> {
    std::fs::create_dir(folder).doing(|| format!("making {}", folder.display()))?;
    let mut store = (entry.open)(folder, blocks * BLOCK_BYTES as u64)?;
    check(&entry.contender, store.as_mut())?;
    Ok(store)
}

fn plan<'a>(
    work: Work,
    id: &str,
    title: &str,
    entries: &[Entry],
    stores: &'a mut [Option<Box<dyn Store>>],
    blocks: u64,
) -> Plan<'a> {
    let those = stores.iter_mut().enumerate();
    let entrants = those.filter_map(|(contender, store)| {
        let store = store.as_mut()?;
        Some(Entrant {
            contender,
            x: 0,
            measure: Box::new(move || measure(work, store.as_mut(), blocks)),
        })
    });
    let how = match work {
        Work::Write => "From memory to the end of fsync of file and folder.",
        Work::ReadCold => {
            "To memory, compared there. Before, file and what lies below it were put out of memory \
             (posix_fadvise): the disk's own cache, and that of a virtual machine's host, are not."
        }
        Work::ReadWarm => "To memory, compared there. It was read once right before.",
    };
    Plan {
        id: id.to_owned(),
        title: format!("{title}: {blocks} MB in blocks of 1 MB"),
        axis: Axis::Single,
        how: format!("{how} CPU seconds are those of the whole machine, kernel threads included."),
        contenders: entries
            .iter()
            .map(|entry| entry.contender.clone())
            .collect(),
        entrants: entrants.collect(),
        whole_machine: true,
    }
}

fn measure(work: Work, store: &mut dyn Store, blocks: u64) -> Result<Sample> {
    let mut content = Content::new(blocks);
    let mut sink = Sink::new(blocks);
    match work {
        Work::Write => store.prepare(&mut Content::new(blocks))?,
        Work::ReadCold => store.evict()?,
        Work::ReadWarm => {
            store.read(&mut sink)?;
            sink = Sink::new(blocks);
        }
    }
    let watch = Watch::new();
    match work {
        Work::Write => store.write(&mut content)?,
        Work::ReadCold | Work::ReadWarm => {
            store.read(&mut sink)?;
            sink.complete()?;
        }
    }
    Ok(Sample {
        bytes: blocks * BLOCK_BYTES as u64,
        wall_seconds: watch.wall_seconds(),
        cpu_seconds: watch.machine().busy_seconds,
        counts: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Unit;

    #[test]
    fn a_run_leaves_nothing_behind() {
        let parent = std::env::temp_dir().join(format!("coffer-lab-file-{}", std::process::id()));
        std::fs::create_dir_all(&parent).unwrap();
        let effort = Effort {
            rounds: 1,
            quick: true,
            unit: Unit::MegabytesPerSecond,
        };
        let experiments = file(effort, &parent).unwrap();
        assert_eq!(experiments.len(), 3);
        let left = std::fs::read_dir(&parent).unwrap().count();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        std::fs::remove_dir_all(&parent).unwrap();
        assert_eq!(left, 0);
        assert!(!mounts.contains(parent.to_str().unwrap()));
    }
}
