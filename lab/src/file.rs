//! Files: what does it cost to write and read one through each kind of encryption?

mod store;

mod folder_store;
mod loop_device;

mod image;
mod pieces;
mod piped;
mod sealed;
mod server;

mod fuse;
mod roster;

use std::path::Path;

use crate::contender::{Availability, Contender};
use crate::error::{Doing, Result};
use crate::file::roster::{Entry, entries};
use crate::file::store::{Store, check};
use crate::host::folder::{Folder, Room};
use crate::measuring::content::{BLOCK_BYTES, Content, Sink};
use crate::measuring::progress::Progress;
use crate::measuring::rounds::{Amounts, Effort, Entrant, Figure, Plan, run};
use crate::record::{Axis, Experiment, Sample};
use coffer_measure::cpu_time::Watch;

const BLOCKS: Amounts<u64> = Amounts {
    full: 1000,
    quick: 32,
    counted: 8,
    quick_counted: 4,
};

/// As few as give an interval of 95 %, since each sample is long.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 3;

/// What is done with the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Write,
    ReadCold,
    ReadWarm,
}

impl Work {
    /// What is worth doing: what lies nowhere but in memory can't be put out of it.
    fn worth_doing(in_memory: bool) -> &'static [Self] {
        if in_memory {
            &[Self::Write, Self::ReadWarm]
        } else {
            &[Self::Write, Self::ReadCold, Self::ReadWarm]
        }
    }

    fn id(self) -> &'static str {
        match self {
            Self::Write => "file/write",
            Self::ReadCold => "file/read",
            Self::ReadWarm => "file/read-warm",
        }
    }

    fn title(self, in_memory: bool) -> &'static str {
        match self {
            Self::Write if in_memory => "Writing a file in memory (tmpfs: nothing is made durable)",
            Self::Write => "Writing a file, durable",
            Self::ReadCold => "Reading a file that is not in memory",
            Self::ReadWarm => "Reading a file that is in memory",
        }
    }

    fn how(self, in_memory: bool) -> &'static str {
        match self {
            Self::Write if in_memory => {
                "From memory to the end of fsync of file and folder, which makes nothing durable: \
                 the folder lies in memory."
            }
            Self::Write => "From memory to the end of fsync of file and folder.",
            Self::ReadCold => {
                "To memory, compared there. Before, file and what lies below it were put out of \
                 memory (posix_fadvise): the disk's own cache, and that of a virtual machine's \
                 host, are not."
            }
            Self::ReadWarm if in_memory => {
                "To memory, compared there. It was read once right before. The folder lies in \
                 memory: to read what is not there would be the same, and is left out."
            }
            Self::ReadWarm => "To memory, compared there. It was read once right before.",
        }
    }
}

/// Who can take part, and why the others can't.
pub fn contenders() -> Vec<Contender> {
    entries().into_iter().map(|entry| entry.contender).collect()
}

/// Writes and reads one file through every contender that can run, below `folder`.
pub fn file(effort: Effort, folder: &Path) -> Result<Vec<Experiment>> {
    let folder = Folder::new(folder, "file")?;
    let mut entries = entries();
    let room = Room::of(&folder.path)?;
    if room.in_memory {
        leave_out_direct(&mut entries);
    }
    let blocks = room.fitting(effort.choose(BLOCKS), |blocks| needs(&entries, blocks));
    let mut stores = open_all(&mut entries, &folder.path, blocks)?;
    let effort = effort.with_usual_rounds(ROUNDS, QUICK_ROUNDS);
    let mut experiments = Vec::new();
    for work in Work::worth_doing(room.in_memory) {
        let plan = plan(*work, room.in_memory, &entries, &mut stores, blocks);
        experiments.push(run(plan, effort)?);
    }
    Ok(experiments)
}

/// In memory there is nothing that O_DIRECT could pass: since Linux 6.6 such a file takes the flag,
/// and is written and read as without it.
fn leave_out_direct(entries: &mut [Entry]) {
    let all = entries.iter_mut().map(|entry| &mut entry.contender);
    for one in all.filter(|one| one.is_direct() && one.availability.runs()) {
        one.availability = Availability::cannot(
            "the folder lies in memory, where O_DIRECT passes nothing",
            "a folder on a disk (--folder), which the virtual machine of coffer-lab kernel has not",
        );
    }
}

/// What all that can run take of their folder at once, at most.
fn needs(entries: &[Entry], blocks: u64) -> u64 {
    let those = entries
        .iter()
        .filter(|one| one.contender.availability.runs());
    those
        .map(|one| (one.needs)(blocks * BLOCK_BYTES as u64))
        .sum()
}

/// Stores of those that can run; why the others can't is noted.
fn open_all(
    entries: &mut [Entry],
    folder: &Path,
    blocks: u64,
) -> Result<Vec<Option<Box<dyn Store>>>> {
    let progress = Progress::new("Setting up what keeps files", entries.len());
    let mut stores = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        progress.say(&entry.contender.name);
        let mut opened = None;
        if entry.contender.availability.runs() {
            match open(entry, &folder.join(index.to_string()), blocks) {
                Ok(store) => {
                    entry.contender.settings.extend(store.settings());
                    opened = Some(store);
                }
                Err(error) => entry.contender.availability = Availability::from_failure(error)?,
            }
        }
        stores.push(opened);
        progress.step();
    }
    Ok(stores)
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
    in_memory: bool,
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
    Plan {
        id: work.id().to_owned(),
        title: format!("{}: {blocks} MB in blocks of 1 MB", work.title(in_memory)),
        axis: Axis::Single,
        how: format!(
            "{} CPU seconds are those of the whole machine: of this program, of programs that \
             serve the file system (FUSE), and of kernel threads.",
            work.how(in_memory)
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
        latency: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_grows_with_what_can_run() {
        let all = entries();
        let running = all.iter().filter(|one| one.contender.availability.runs());
        // Each keeps the file whole, and not one takes four times as much and an image's tables.
        let (count, stored) = (running.count() as u64, 1_000 * BLOCK_BYTES as u64);
        let needed = needs(&all, 1_000);
        assert!(needed >= count * stored, "{needed} for {count}");
        assert!(needed <= count * (4 * stored + (256 << 20)), "{needed}");
        assert_eq!(needs(&[], 1_000), 0);
    }

    /// What kernel threads have spent by their own accounts (proc(5)).
    fn kernel_thread_seconds() -> f64 {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let ticks = all.filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            // Their parent is kthreadd.
            let spent = |at: usize| fields[at].parse::<f64>().ok();
            (fields[1] == "2").then(|| Some(spent(11)? + spent(12)?))?
        });
        ticks.sum::<f64>() / 100.0
    }

    /// fscrypt decrypts in threads of the kernel: whose time that is must not depend on who reads.
    #[test]
    fn what_kernel_threads_spend_counts() {
        let entries = entries();
        let fscrypt = entries.iter().find(|one| one.contender.name == "fscrypt");
        let fscrypt = fscrypt.unwrap();
        if !fscrypt.contender.availability.runs() {
            eprintln!("not tested: {:?}", fscrypt.contender.availability);
            return;
        }
        let folder = std::env::temp_dir().join(format!("lab-threads-{}", std::process::id()));
        let mut store = open(fscrypt, &folder, 24).unwrap();
        let settings = store.settings().join("; ");
        store.write(&mut Content::new(24)).unwrap();
        let before = kernel_thread_seconds();
        let counted = measure(Work::ReadCold, store.as_mut(), 24)
            .unwrap()
            .cpu_seconds;
        let spent = kernel_thread_seconds() - before;
        drop(store);
        std::fs::remove_dir_all(&folder).unwrap();
        // Both come in ticks of 10 ms.
        assert!(
            counted >= 0.8 * spent - 0.05,
            "{counted} s, and threads alone {spent} s"
        );
        assert!(settings.contains("first choice for xts(aes)"), "{settings}");
    }

    #[test]
    fn in_memory_nothing_is_called_durable_or_cold() {
        for work in Work::worth_doing(true) {
            let said = format!("{} {}", work.title(true), work.how(true));
            assert!(!said.contains("not in memory") && !said.contains("fadvise"));
            assert!(!said.contains(", durable"), "{said}");
        }
        assert_eq!(Work::worth_doing(false).len(), 3);
    }

    #[test]
    fn in_memory_none_passes_the_memory_of_files() {
        let mut all = entries();
        leave_out_direct(&mut all);
        let direct = all.iter().filter(|one| one.contender.is_direct());
        assert_eq!(direct.clone().count(), 3);
        let mut running = direct.filter(|one| one.contender.availability.runs());
        assert!(running.next().is_none());
        assert!(all[0].contender.availability.runs(), "a file in a folder");
    }

    #[test]
    fn a_run_leaves_nothing_behind() {
        let parent = std::env::temp_dir().join(format!("coffer-lab-file-{}", std::process::id()));
        std::fs::create_dir_all(&parent).unwrap();
        let effort = Effort {
            rounds: Some(1),
            quick: true,
            counts_instructions: false,
        };
        let in_memory = Room::of(&parent).unwrap().in_memory;
        let experiments = file(effort, &parent).unwrap();
        assert_eq!(experiments.len(), Work::worth_doing(in_memory).len());
        let left = std::fs::read_dir(&parent).unwrap().count();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        std::fs::remove_dir_all(&parent).unwrap();
        assert_eq!(left, 0);
        assert!(!mounts.contains(parent.to_str().unwrap()));
    }
}
