//! A process that is held to a share of a core, by the kernel: it runs for so long of each period,
//! and then waits for the next.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};

/// Short, so that nothing waits for long.
const PERIOD_US: u32 = 10_000;

/// Where the kernel's control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// A process that is held. It must have ended when this is dropped.
pub struct Held {
    folder: PathBuf,
}

impl Held {
    /// Holds a process to so many percent of a core, all of its threads together.
    pub fn to(process: u32, percent: u32) -> Result<Self> {
        let name = format!("coffer-bench-{process}");
        let quota_us = PERIOD_US * percent / 100;
        let groups = Path::new(GROUPS);
        let older = groups.join("cpu");
        let is_older = older.join("cpu.cfs_quota_us").exists();
        let parent = if is_older { older } else { groups.to_owned() };
        let folder = parent.join(name);
        if !is_older {
            write(&parent.join("cgroup.subtree_control"), "+cpu")?;
        }
        fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
        let held = Self { folder };
        if is_older {
            held.set("cpu.cfs_period_us", &PERIOD_US.to_string())?;
            held.set("cpu.cfs_quota_us", &quota_us.to_string())?;
        } else {
            held.set("cpu.max", &format!("{quota_us} {PERIOD_US}"))?;
        }
        held.set("cgroup.procs", &process.to_string())?;
        Ok(held)
    }

    fn set(&self, name: &str, value: &str) -> Result<()> {
        write(&self.folder.join(name), value)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("{} is left: {error}", self.folder.display());
        }
    }
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).doing(|| format!("writing {value} to {}", path.display()))
}
