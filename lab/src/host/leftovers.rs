//! What a lab left that had no time to clean up: a SIGKILL leaves programs, mounts, devices,
//! namespaces and folders. All of them carry the number of their lab's process in their names, and
//! programs in their environment; what belongs to a lab that still runs is left alone.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::host::folder::{MEMORY, PREFIX, PURPOSES};
use crate::host::programs::{MARK, clean_up, command};

/// How long a program may take to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(3);

/// What every lab calls its process.
pub const PROCESS_NAME: &CStr = c"coffer-lab";

pub(crate) const NAMESPACES: &str = "/run/netns";
pub(crate) const MAPPED: &str = "/dev/mapper";
pub(crate) const BLOCK_DEVICES: &str = "/sys/block";
pub(crate) const WIREGUARD_SOCKETS: &str = "/var/run/wireguard";

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
    let namespaces: Vec<String> = names(Path::new(NAMESPACES))
        .into_iter()
        .filter(|name| owner_of_device(name).is_some_and(is_gone))
        .collect();
    let mut found = programs(&namespaces);
    found.extend(mounts().into_iter().map(Leftover::Mount));
    let mapped = names(Path::new(MAPPED)).into_iter();
    let mapped = mapped.filter(|name| owner_of_device(name).is_some_and(is_gone));
    found.extend(mapped.map(Leftover::Mapped));
    found.extend(
        loops()
            .into_iter()
            .map(|(device, _)| Leftover::Loop(device)),
    );
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

/// The lab whose folder has this name: `coffer-lab-file-1234`, also while it is removed.
fn owner_of_folder(name: &str) -> Option<i32> {
    let (purpose, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let number = number.strip_suffix(".leaving").unwrap_or(number);
    PURPOSES.contains(&purpose).then(|| number.parse().ok())?
}

/// The lab whose namespace or device of dm-crypt has this name: `coffer-lab-1234-0a`,
/// `coffer-lab-1234-inline`.
fn owner_of_device(name: &str) -> Option<i32> {
    let rest = name.strip_prefix(PREFIX)?;
    let (number, end) = rest.split_once('-').unwrap_or((rest, ""));
    let link = end.strip_suffix(['a', 'b']);
    let is_link = link.is_some_and(|number| number.parse::<u32>().is_ok());
    (is_link || ["", "inline", "probe"].contains(&end)).then(|| number.parse().ok())?
}

/// The folder of a lab that is gone, in which this lies.
fn folder_of(path: &Path) -> Option<&Path> {
    path.ancestors().find(|one| {
        let name = one.file_name().and_then(OsStr::to_str);
        name.and_then(owner_of_folder).is_some_and(is_gone)
    })
}

/// Where labs that are gone had their folders, as mounts and loop devices tell which they left: a
/// lab may have been told to work elsewhere.
pub fn elsewhere() -> Vec<PathBuf> {
    let backing = loops().into_iter().map(|(_, file)| file);
    let all = mounts().into_iter().chain(backing);
    let parent = |path: PathBuf| Some(folder_of(&path)?.parent()?.to_owned());
    all.filter_map(parent).collect()
}

/// Whether no lab has that number: its process is gone, or another program has its number. One that
/// has ended is gone, although the program that started it has not asked how.
fn is_gone(id: i32) -> bool {
    !is_lab(id) || state(id).is_none_or(|state| state == "Z")
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

/// Its state (proc(5)).
fn state(id: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split(' ').next()?.to_owned())
}

/// The lab that started a process, or what started that in turn: by the mark in its environment,
/// which its own program can't be mistaken for. Other containers count their processes otherwise.
fn starter(id: i32) -> Option<i32> {
    let numbers = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
    let begins = format!("{MARK}=");
    let mut all = environment.split(|&byte| byte == 0);
    let marked = all.find_map(|one| one.strip_prefix(begins.as_bytes()))?;
    let lab = std::str::from_utf8(marked).ok()?.parse().ok()?;
    (numbers(&id.to_string()) == numbers("self")).then_some(lab)
}

/// Programs that a lab started which is gone, and those in its namespaces. What a command line says
/// is no proof: it may be an editor's, of what a lab wrote.
fn programs(namespaces: &[String]) -> Vec<Leftover> {
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
    let own = i32::try_from(std::process::id());
    let left = all.filter_map(|id| {
        let line = command_line(id);
        let left = inside.contains(&id) || starter(id).is_some_and(is_gone);
        (left && !line.is_empty() && own != Ok(id))
            .then(|| Leftover::Program(id, line.replace('\0', " ").trim().to_owned()))
    });
    left.collect()
}

fn in_full(point: &str) -> String {
    let signs = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    signs.iter().fold(point.to_owned(), |text, (told, sign)| {
        text.replace(told, sign)
    })
}

/// The newest first: it may lie on an older one.
fn mounts() -> Vec<PathBuf> {
    let all = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = all.lines().filter_map(|line| line.split(' ').nth(1));
    // Spaces and the like are told as octal numbers (proc(5), fstab(5)).
    let points = points.map(|point| PathBuf::from(in_full(point)));
    let mut left: Vec<PathBuf> = points.filter(|point| folder_of(point).is_some()).collect();
    left.reverse();
    left
}

/// Each with the file that it shows.
fn loops() -> Vec<(PathBuf, PathBuf)> {
    let all = names(Path::new(BLOCK_DEVICES)).into_iter();
    let left = all.filter_map(|name| {
        let backing = Path::new(BLOCK_DEVICES)
            .join(&name)
            .join("loop/backing_file");
        let backing = PathBuf::from(fs::read_to_string(backing).ok()?.trim_end());
        folder_of(&backing)?;
        Some((Path::new("/dev").join(name), backing))
    });
    left.collect()
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
        .map(PathBuf::as_path)
        .chain([Path::new(MEMORY)])
        .flat_map(|folder| below(folder, &owner_of_folder))
        .collect();
    let run = |name: &str| name.strip_prefix("run-")?.split('-').next()?.parse().ok();
    left.extend(below(cache, &run));
    // `clw1234n0a.sock`, a link's end.
    let socket = |name: &str| name.strip_prefix("clw")?.split('n').next()?.parse().ok();
    left.extend(below(Path::new(WIREGUARD_SOCKETS), &socket));
    // A folder may be named twice.
    left.sort();
    left.dedup();
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
        assert_eq!(owner_of_folder("coffer-lab-file-1234"), Some(1234));
        assert_eq!(owner_of_folder("coffer-lab-net-77.leaving"), Some(77));
        assert_eq!(owner_of_folder("coffer-lab-upload-5"), Some(5));
        for strange in [
            "coffer-lab-notes-12",
            "coffer-lab-file-",
            "coffer-lab-file-2024-results",
            "coffer-lab-file-2024.tar",
            "lab-file-3",
            "",
        ] {
            assert_eq!(owner_of_folder(strange), None, "{strange}");
        }
        for name in ["", "-0a", "-12b", "-inline", "-probe"] {
            let name = format!("coffer-lab-1234{name}");
            assert_eq!(owner_of_device(&name), Some(1234), "{name}");
        }
        for strange in ["coffer-lab-2024-results", "coffer-lab-7-a", "coffer-lab-x"] {
            assert_eq!(owner_of_device(strange), None, "{strange}");
        }
        // Above the greatest number that Linux gives a process.
        let gone = Path::new("/srv/coffer-lab-file-99999999");
        assert_eq!(folder_of(&gone.join("3/image")), Some(gone));
        assert_eq!(folder_of(Path::new("/srv/image")), None);
        assert_eq!(in_full(r"/a\040b\012c\134040d"), "/a b\nc\\040d");
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
    fn programs_of_a_lab_that_is_gone_are_found_by_their_mark() {
        let start = |script: &str, word: &str, lab: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", script, word]).env(MARK, lab);
            shell.spawn().unwrap()
        };
        let gone = "99999999";
        let left = start("sleep 20; :", "left", gone);
        // What it started in turn, and then ended.
        let mut starter = start("sh -c 'sleep 20; :' started-in-turn & :", "starter", gone);
        starter.wait().unwrap();
        let running = start("sleep 20; :", "running", "none");
        let named = start("sleep 20; :", "/x/coffer-lab-file-99999999/y", "none");
        let deadline = Instant::now() + PATIENCE;
        let mut found = programs(&[]);
        let holds = |found: &[Leftover], word: &str| {
            let mut all = found.iter();
            all.any(|one| one.to_string().contains(word))
        };
        while !holds(&found, "sleep 20; : started-in-turn") && Instant::now() < deadline {
            found = programs(&[]);
        }
        let seen = ["left", "started-in-turn", "running", "99999999/y"];
        let seen = seen.map(|word| holds(&found, &format!("sleep 20; : {word}")));
        let of_test = |one: &&Leftover| one.to_string().contains("sleep 20");
        let removed = found.iter().filter(of_test).all(remove);
        for mut one in [left, running, named] {
            let _ = one.kill();
            one.wait().unwrap();
        }
        assert_eq!(
            seen,
            [true, true, false, false],
            "{found:#?}: a command line is no proof"
        );
        assert!(removed, "{found:#?}");
    }

    /// A file in memory, which is in no folder of its own.
    #[test]
    fn what_lies_in_memory_is_found_without_being_named() {
        let upload = Path::new(MEMORY).join("coffer-lab-upload-99999999");
        if fs::write(&upload, "x").is_err() {
            return;
        }
        let found = find(&[], Path::new("/no/such/cache"));
        let one = Leftover::Files(upload.clone());
        assert!(found.contains(&one) && remove(&one) && !upload.exists());
    }
}
