//! What a process cost, read from `/proc` (proc(5)).
//!
//! CPU time is taken from `/proc/PID/stat`: the kernel sums it over all threads, also over those
//! that have ended, which `/proc/PID/task/*/schedstat` forgets. It comes in ticks of 10 ms; runs
//! are seconds long.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::{MeasureError, Result, doing};

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// User and system time, in clock ticks.
    cpu_ticks: u64,
    /// The same of children that have ended and were waited for.
    ended_ticks: u64,
}

impl Stat {
    /// The name of the program, in parentheses, may hold anything, also spaces and parentheses:
    /// fields are counted from the last closing one.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // proc(5) counts from 1: state is field 3, ppid 4, utime 14, stime 15, cutime 16,
        // cstime 17.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            parent: u32::try_from(number(4)?).ok()?,
            cpu_ticks: number(14)? + number(15)?,
            ended_ticks: number(16)? + number(17)?,
        })
    }
}

/// Resident memory of a process, in bytes (of 1,000,000 to a megabyte where it is printed).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Now.
    pub now_bytes: u64,
    /// The most there ever was.
    pub peak_bytes: u64,
}

impl Resident {
    fn parse(status: &str) -> Option<Self> {
        let kibibytes = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix(" kB")?.trim().parse().ok()
        };
        Some(Self {
            now_bytes: kibibytes("VmRSS:")? * 1024,
            peak_bytes: kibibytes("VmHWM:")? * 1024,
        })
    }
}

/// CPU seconds, user and system, of a process and of all that descend from it.
pub fn cpu_seconds(root: u32) -> Result<f64> {
    let ticks: u64 = family(root)?.values().map(|stat| stat.cpu_ticks).sum();
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// CPU seconds, user and system, of a process and of its children that have ended and that it has
/// waited for; 0 when there is no such process.
pub fn cpu_seconds_with_ended(process: u32) -> f64 {
    let stat = read_stat(&Path::new("/proc").join(process.to_string()));
    let ticks = stat.map_or(0, |stat| stat.cpu_ticks + stat.ended_ticks);
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Resident memory of a process and of all that descend from it.
pub fn resident(root: u32) -> Result<Resident> {
    let mut sum = Resident::default();
    for pid in family(root)?.into_keys() {
        let path = format!("/proc/{pid}/status");
        let text = doing(fs::read_to_string(&path), || format!("reading {path}"))?;
        let one = Resident::parse(&text).ok_or(MeasureError::Proc { path: path.into() })?;
        sum.now_bytes += one.now_bytes;
        sum.peak_bytes += one.peak_bytes;
    }
    Ok(sum)
}

/// Lets the peak of a process's memory begin anew at what it holds now.
pub fn forget_peak(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    doing(fs::write(&path, "5"), || format!("writing {path}"))
}

fn family(root: u32) -> Result<BTreeMap<u32, Stat>> {
    let mut strangers = BTreeMap::new();
    for entry in doing(fs::read_dir("/proc"), || "reading /proc".into())? {
        let entry = doing(entry, || "reading /proc".into())?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // A process may end between the listing and the reading: then it isn't a server of ours.
        if let Some(stat) = read_stat(&entry.path()) {
            strangers.insert(pid, stat);
        }
    }
    let first = strangers.remove(&root).ok_or_else(|| MeasureError::Proc {
        path: format!("/proc/{root}/stat").into(),
    })?;
    let mut family = BTreeMap::from([(root, first)]);
    loop {
        let children: Vec<u32> = strangers
            .iter()
            .filter(|(_, stat)| family.contains_key(&stat.parent))
            .map(|(&pid, _)| pid)
            .collect();
        if children.is_empty() {
            return Ok(family);
        }
        for pid in children {
            family.extend(strangers.remove_entry(&pid));
        }
    }
}

fn read_stat(folder: &Path) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(folder.join("stat")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_a_nasty_name() {
        let text = "4242 (a ) b (c) S 17 4242 4242 0 -1 4194304 1 2 3 4 250 50 9 9 20 0 3 0 77 1 1";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                parent: 17,
                cpu_ticks: 300,
                ended_ticks: 18
            })
        );
        assert_eq!(Stat::parse("4242 (short) S 17"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn status_in_kibibytes() {
        let text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t       1 kB\nRssAnon:\t 1 kB\n";
        let resident = Resident::parse(text).unwrap();
        assert_eq!(
            resident,
            Resident {
                now_bytes: 1024,
                peak_bytes: 2 * 1024 * 1024
            }
        );
        assert_eq!(Resident::parse("VmRSS:\t1 kB\n"), None);
    }

    #[test]
    fn own_work_is_seen() {
        let before = cpu_seconds(std::process::id()).unwrap();
        let start = std::time::Instant::now();
        // The cores are shared with other tests, which may take them for a while.
        while start.elapsed().as_secs() < 30 {
            if cpu_seconds(std::process::id()).unwrap() - before >= 0.05 {
                return;
            }
        }
        panic!("half a minute of work took no time");
    }

    #[test]
    fn a_child_is_family() {
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .unwrap();
        let family = family(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(family.contains_key(&child.id()));
    }
}
