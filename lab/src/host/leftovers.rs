//! What a lab left that had no time to clean up: a SIGKILL leaves programs, mounts, devices,
//! namespaces and folders. All of them carry the number of their lab's process in their names; what
//! belongs to a lab that still runs is left alone.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::host::folder::{PREFIX, PURPOSES};
use crate::host::programs::{clean_up, command};

/// How long a program may take to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(3);

/// What every lab calls its process.
pub const PROCESS_NAME: &CStr = c"coffer-lab";

/// Programs of the lab's own, which it starts as itself.
const OWN: [&str; 3] = ["serve-model", "answer-request", "observe-transfer"];

const NAMESPACES: &str = "/run/netns";
const MAPPED: &str = "/dev/mapper";
const BLOCK_DEVICES: &str = "/sys/block";
const WIREGUARD_SOCKETS: &str = "/var/run/wireguard";

/// Where kernels are built, below the cache.
const BUILDS: &str = "configs/work";

/// One thing that was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// A program, and its command line.
    Program(i32, String),
    /// Where something is mounted.
    Mount(PathBuf),
    /// A device of dm-crypt.
    Mapped(String),
    /// A loop device.
    Loop(PathBuf),
    /// A network namespace.
    Namespace(String),
    /// A folder, or a control socket of wireguard-go.
    Files(PathBuf),
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(id, line) => write!(out, "process {id}: {line}"),
            Self::Mount(path) => write!(out, "mount {}", path.display()),
            Self::Mapped(name) => write!(out, "dm-crypt device {name}"),
            Self::Loop(path) => write!(out, "loop device {}", path.display()),
            Self::Namespace(name) => write!(out, "network namespace {name}"),
            Self::Files(path) => write!(out, "{}", path.display()),
        }
    }
}

/// All that labs left which run no more, in an order in which it can go: in `folders`, in `cache`,
/// and in the kernel.
pub fn find(folders: &[PathBuf], cache: &Path) -> Vec<Leftover> {
    // Programs name it as it is, without links on the way.
    let cache = &cache.canonicalize().unwrap_or_else(|_| cache.to_owned());
    let namespaces: Vec<String> = names(Path::new(NAMESPACES))
        .into_iter()
        .filter(|name| numbered(name, 0).is_some_and(is_gone))
        .collect();
    let loops = loops();
    let mut found = programs(&namespaces, &loops, cache);
    found.extend(mounts().into_iter().map(Leftover::Mount));
    let mapped = names(Path::new(MAPPED)).into_iter();
    let mapped = mapped.filter(|name| numbered(name, 0).is_some_and(is_gone));
    found.extend(mapped.map(Leftover::Mapped));
    found.extend(loops.into_iter().map(Leftover::Loop));
    found.extend(namespaces.into_iter().map(Leftover::Namespace));
    found.extend(files(folders, cache).into_iter().map(Leftover::Files));
    found
}

/// Removes it; false where that did not work.
pub fn remove(leftover: &Leftover) -> bool {
    match leftover {
        Leftover::Program(id, line) => end(*id, line),
        Leftover::Mount(path) => {
            clean_up(command("umount").arg(path)) || clean_up(command("umount").arg("-l").arg(path))
        }
        Leftover::Mapped(name) => clean_up(command("cryptsetup").arg("close").arg(name)),
        Leftover::Loop(path) => clean_up(command("losetup").arg("-d").arg(path)),
        Leftover::Namespace(name) => clean_up(command("ip").args(["netns", "del", name])),
        Leftover::Files(path) if path.is_dir() => fs::remove_dir_all(path).is_ok(),
        Leftover::Files(path) => {
            let removed = fs::remove_file(path).is_ok();
            // The folder of sockets goes with the last of them.
            let _ = fs::remove_dir(WIREGUARD_SOCKETS);
            removed
        }
    }
}

/// The number after so many words of a name that begins as all of the lab's do:
/// `coffer-lab-1234-0a` after none, `coffer-lab-file-1234` after one.
fn numbered(name: &str, words: usize) -> Option<i32> {
    let rest = name.strip_prefix(PREFIX)?;
    let number = rest.split(['-', '.']).nth(words)?;
    number.parse().ok()
}

/// The lab whose folder a text names: a path, a command line.
fn owner(text: &str) -> Option<i32> {
    let mut owners = names_within(text).filter_map(|name| {
        let purpose = name.strip_prefix(PREFIX)?.split('-').next()?;
        PURPOSES.contains(&purpose).then(|| numbered(name, 1))?
    });
    owners.next()
}

/// The lab whose namespace or device a command line names.
fn owner_of_device(line: &str) -> Option<i32> {
    names_within(line).find_map(|name| numbered(name, 0))
}

fn names_within(text: &str) -> impl Iterator<Item = &str> {
    text.split(['/', '\0', ' ', '='])
}

/// The lab whose virtual machine has files in a folder of the cache: `run-1234-0`.
fn owner_of_run(text: &str, cache: &Path) -> Option<i32> {
    let begins = format!("{}/run-", cache.display());
    let (_, rest) = text.split_once(&begins)?;
    rest.split('-').next()?.parse().ok()
}

/// Whether no lab has that number: its process is gone, or another program has its number. One that
/// has ended is gone, although the program that started it has not asked how.
fn is_gone(id: i32) -> bool {
    !is_lab(id) || stat(id).is_none_or(|(state, _)| state == "Z")
}

/// Whether a process is a lab, which takes this name, whatever its file is called.
fn is_lab(id: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.starts_with("coffer-lab") || name.starts_with("coffer_lab")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn command_line(id: i32) -> String {
    fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default()
}

/// Its state and its parent (proc(5)).
fn stat(id: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Whether none of those that started it, one through another, is a lab that runs.
fn is_orphan(id: i32) -> bool {
    let mut above = std::iter::successors(stat(id), |(_, parent)| stat(*parent));
    above.all(|(_, parent)| is_gone(parent))
}

/// Programs that work in a folder, in a namespace or on a device of a lab that is gone, the lab's
/// own servers whose parent it was, and a kernel's build that goes on without it.
fn programs(namespaces: &[String], loops: &[PathBuf], cache: &Path) -> Vec<Leftover> {
    let inside = namespaces.iter().flat_map(|name| {
        let told = command("ip").args(["netns", "pids", name]).output();
        let told = told.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let ids = told.unwrap_or_default();
        ids.split_whitespace()
            .filter_map(|id| id.parse().ok())
            .collect::<Vec<i32>>()
    });
    let inside: Vec<i32> = inside.collect();
    let all = names(Path::new("/proc"))
        .into_iter()
        .filter_map(|name| name.parse::<i32>().ok());
    let own = std::process::id();
    let builds = format!("O={}", cache.join(BUILDS).display());
    let left = all.filter_map(|id| {
        let line = command_line(id);
        let word = line.split('\0').nth(1).unwrap_or_default();
        let (is_lab, is_own) = (is_lab(id), is_lab(id) && OWN.contains(&word));
        let of_folder = owner(&line)
            .or_else(|| owner_of_device(&line))
            .or_else(|| owner_of_run(&line, cache))
            .is_some_and(is_gone);
        let on_device = |word: &str| loops.iter().any(|device| *device == Path::new(word));
        let orphan = (is_own || line.split('\0').any(|word| word == builds)) && is_orphan(id);
        let on_device = line.split('\0').any(on_device);
        let left = inside.contains(&id) || orphan || of_folder || on_device;
        let leads = is_lab && !is_own;
        (left && !leads && !line.is_empty() && u32::try_from(id) != Ok(own))
            .then(|| Leftover::Program(id, line.replace('\0', " ").trim().to_owned()))
    });
    left.collect()
}

/// The newest first: it may lie on an older one.
fn mounts() -> Vec<PathBuf> {
    let all = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = all.lines().filter_map(|line| line.split(' ').nth(1));
    // Spaces and the like are told as octal numbers (proc(5), fstab(5)).
    let points = points.map(|point| point.replace("\\040", " ").replace("\\134", "\\"));
    let left = points.filter(|point| owner(point).is_some_and(is_gone));
    let mut left: Vec<PathBuf> = left.map(PathBuf::from).collect();
    left.reverse();
    left
}

fn loops() -> Vec<PathBuf> {
    let all = names(Path::new(BLOCK_DEVICES)).into_iter();
    let left = all.filter(|name| {
        let backing = Path::new(BLOCK_DEVICES)
            .join(name)
            .join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap_or_default();
        owner(&backing).is_some_and(is_gone)
    });
    left.map(|name| Path::new("/dev").join(name)).collect()
}

fn files(folders: &[PathBuf], cache: &Path) -> Vec<PathBuf> {
    let below = |folder: &Path, owner: &dyn Fn(&str) -> Option<i32>| -> Vec<PathBuf> {
        let left = names(folder)
            .into_iter()
            .filter(|name| owner(name).is_some_and(is_gone));
        left.map(|name| folder.join(name)).collect()
    };
    let mut left: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| below(folder, &owner))
        .collect();
    let run = |name: &str| name.strip_prefix("run-")?.split('-').next()?.parse().ok();
    left.extend(below(cache, &run));
    // `clw1234n0a.sock`, a link's end.
    let socket = |name: &str| name.strip_prefix("clw")?.split('n').next()?.parse().ok();
    left.extend(below(Path::new(WIREGUARD_SOCKETS), &socket));
    left
}

/// Tells it to end, then ends it by force; unless its number is another's by now.
fn end(id: i32, line: &str) -> bool {
    let Some(process) = Pid::from_raw(id) else {
        return false;
    };
    let is_there = || command_line(id).replace('\0', " ").trim() == line && !line.is_empty();
    for signal in [Signal::TERM, Signal::KILL] {
        let start = Instant::now();
        if is_there() {
            let _ = kill_process(process, signal);
        }
        while is_there() && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
        }
    }
    !is_there()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_from_names() {
        assert_eq!(owner("/var/tmp/coffer-lab-file-1234/dm-crypt"), Some(1234));
        assert_eq!(owner("coffer-lab-net-77.leaving"), Some(77));
        assert_eq!(owner("sshd\0-f\0/x/coffer-lab-net-5/sshd_config"), Some(5));
        let device = "mkfs.ext4\0-q\0/dev/mapper/coffer-lab-1234-inline";
        assert_eq!((owner(device), owner_of_device(device)), (None, Some(1234)));
        for strange in [
            "/x/coffer-lab-notes-12",
            "coffer-lab-file-",
            "/x/lab-file-3",
            "",
        ] {
            assert_eq!(owner(strange), None, "{strange}");
        }
        assert_eq!(numbered("coffer-lab-1234-0a", 0), Some(1234));
        assert_eq!(numbered("coffer-lab-1234-inline", 0), Some(1234));
        let cache = Path::new("/c");
        assert_eq!(owner_of_run("qemu\0/c/run-12-0/kernel", cache), Some(12));
        assert_eq!(owner_of_run("qemu\0/d/run-12-0/kernel", cache), None);
    }

    #[test]
    fn what_belongs_to_a_lab_that_runs_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("lab-leftovers-{}", std::process::id()));
        let own = folder.join(format!("coffer-lab-file-{}", std::process::id()));
        // Above the greatest number that Linux gives a process.
        let gone = folder.join("coffer-lab-file-99999999");
        for path in [&own, &gone] {
            fs::create_dir_all(path.join("below")).unwrap();
        }
        let found = find(std::slice::from_ref(&folder), &folder.join("cache"));
        let files =
            |one: &Leftover| matches!(one, Leftover::Files(path) if path.starts_with(&folder));
        let found: Vec<Leftover> = found.into_iter().filter(files).collect();
        assert_eq!(found, [Leftover::Files(gone.clone())]);
        assert!(remove(&found[0]) && own.exists() && !gone.exists());
        assert!(!remove(&found[0]), "it is gone");
        fs::remove_dir_all(folder).unwrap();
    }

    /// What is found of programs that this test starts, as they would be after a SIGKILL of a lab.
    #[test]
    fn programs_of_a_lab_that_is_gone_are_found_by_what_they_work_on() {
        let cache = std::env::temp_dir().join(format!("lab-orphans-{}", std::process::id()));
        let link = cache.with_extension("link");
        fs::create_dir_all(&cache).unwrap();
        std::os::unix::fs::symlink(&cache, &link).unwrap();
        let run = cache.join("run-99999999-0/files");
        let build = format!("O={}", cache.join(BUILDS).display());
        // `sleep` under other names: what counts is the command line.
        let start = |script: &str, word: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", script, word]).spawn().unwrap()
        };
        let own_build = start("sleep 20; :", &build);
        let orphaned = start("sh -c 'sleep 20; :' \"$0\" & :", &build);
        let machine = start("sleep 20; :", &run.to_string_lossy());
        let formatting = start("sleep 20; :", "/dev/loop77");
        let ids = |loops: &[PathBuf], cache: &Path| -> Vec<String> {
            let found = programs(&[], loops, &cache.canonicalize().unwrap()).into_iter();
            found.map(|one| one.to_string()).collect()
        };
        let mut starter = orphaned;
        starter.wait().unwrap();
        let found = ids(&[PathBuf::from("/dev/loop77")], &link);
        let all = find(&[], &link);
        let holds = |wanted: &str| found.iter().any(|one| one.contains(wanted));
        let seen = [&build, "run-99999999-0", "/dev/loop77"].map(holds);
        let spared = !holds(&format!("process {}:", own_build.id()));
        let removed = all.iter().filter(|one| {
            let told = one.to_string();
            told.contains(&build) || told.contains("run-99999999-0")
        });
        let removed = removed.filter(|one| remove(one)).count();
        for mut one in [own_build, machine, formatting] {
            let _ = one.kill();
            one.wait().unwrap();
        }
        fs::remove_file(&link).unwrap();
        fs::remove_dir_all(&cache).unwrap();
        assert_eq!(
            (seen, spared),
            ([true; 3], true),
            "{found:#?}: its own build is no orphan"
        );
        assert!(
            removed >= 2,
            "the cache is found through a link as well: {all:#?}"
        );
    }
}
