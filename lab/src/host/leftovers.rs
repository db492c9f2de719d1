//! What a lab left that had no time to clean up: a SIGKILL leaves programs, mounts, devices,
//! namespaces and folders. All of them carry the number of their lab's process in their names, and
//! programs in their environment; what belongs to a lab that still runs is left alone. So is what
//! has such a name and no [note](crate::host::note) of a lab in it, or below it: that may be of
//! others; and what was noted in another container, whose processes are not seen.

mod programs;
mod proof;

use std::ffi::{CStr, OsStr};
use std::fs;
use std::path::{Path, PathBuf};

use crate::host::folder::{MEMORY, PREFIX, PURPOSES, remove_noted};
use crate::host::leftovers::proof::{
    LEFT, Owner, above, of_file, of_folder_above, of_mapped, of_namespace,
};
use crate::host::note::{self, State};
use crate::host::programs::{clean_up, command};

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
    /// A folder, a control socket of wireguard-go, or the note of a namespace.
    Files(PathBuf),
    /// Folders that a lab made above its own, the deepest first, and how that one was named.
    Above(PathBuf, Vec<PathBuf>),
}

/// All that has names of labs, but for what is of those that run.
#[derive(Debug, Default)]
pub struct Found {
    /// What those left that run no more.
    pub left: Vec<Leftover>,
    /// What nothing shows to be theirs.
    pub unproven: Vec<Leftover>,
    /// What a lab made of which can't be told here whether it runs.
    pub unknown: Vec<Leftover>,
}

impl Found {
    /// Sorts it.
    fn sort<T>(&mut self, all: Vec<T>, owner: impl Fn(&T) -> Owner, leftover: fn(T) -> Leftover) {
        for one in all {
            let known = match owner(&one) {
                Owner::Noted(State::Runs) => continue,
                Owner::Noted(State::Gone) => &mut self.left,
                Owner::Noted(State::Unknown) => &mut self.unknown,
                Owner::Unproven => &mut self.unproven,
            };
            known.push(leftover(one));
        }
    }
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
            Self::Above(_, folders) => {
                let folders: Vec<String> = folders
                    .iter()
                    .map(|one| one.display().to_string())
                    .collect();
                write!(out, "{}, made for it and empty", folders.join(", "))
            }
        }
    }
}

impl Leftover {
    /// How it is removed without the lab.
    pub fn by_hand(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let path = |path: &Path| quoted(&path.display().to_string());
        match self {
            Self::Program(id, _) => format!("kill {id}"),
            Self::Mount(point) => format!("umount {}", path(point)),
            Self::Mapped(name) => format!("cryptsetup close {}", quoted(name)),
            Self::Loop(device) => format!("losetup -d {}", path(device)),
            Self::Namespace(name) => format!("ip netns del {}", quoted(name)),
            Self::Files(files) => format!("rm -r {}", path(files)),
            Self::Above(_, folders) => {
                let all: Vec<String> = folders.iter().map(|one| path(one)).collect();
                format!("rmdir {}", all.join(" "))
            }
        }
    }
}

/// All that labs left which run no more, in an order in which it can go: in `folders`, in `cache`,
/// and in the kernel.
pub fn find(folders: &[PathBuf], cache: &Path) -> Found {
    let named = |folder: &str| -> Vec<String> {
        let all = names(Path::new(folder)).into_iter();
        all.filter(|name| owner_of_device(name).is_some()).collect()
    };
    let mut found = Found::default();
    let namespaces = named(NAMESPACES);
    let left = namespaces.iter().filter(|name| of_namespace(name) == LEFT);
    let left: Vec<String> = left.cloned().collect();
    found.left.extend(programs::programs(&left));
    found.sort(mounts(), |path| of_folder_above(path), Leftover::Mount);
    found.sort(named(MAPPED), |name| of_mapped(name), Leftover::Mapped);
    let of_loop = |(_, backing): &(PathBuf, PathBuf)| of_folder_above(backing);
    found.sort(loops(), of_loop, |(device, _)| Leftover::Loop(device));
    found.sort(namespaces, |name| of_namespace(name), Leftover::Namespace);
    let files = files(folders, cache);
    let above: Vec<Leftover> = files.iter().filter_map(|one| above(one, &files)).collect();
    found.sort(files, |path| of_file(path), Leftover::Files);
    found.left.extend(above);
    found
}

/// Removes it; false where that did not work.
pub fn remove(leftover: &Leftover) -> bool {
    match leftover {
        Leftover::Program(id, line) => programs::end(*id, line),
        Leftover::Mount(path) => {
            clean_up(command("umount").arg(path)) || clean_up(command("umount").arg("-l").arg(path))
        }
        Leftover::Mapped(name) => clean_up(command("cryptsetup").arg("close").arg(name)),
        Leftover::Loop(path) => clean_up(command("losetup").arg("-d").arg(path)),
        // Its note is found when it is gone.
        Leftover::Namespace(name) => clean_up(command("ip").args(["netns", "del", name])),
        Leftover::Above(_, folders) => folders.iter().all(|one| fs::remove_dir(one).is_ok()),
        Leftover::Files(path) if path.is_dir() => remove_noted(path).is_ok(),
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
    PURPOSES.contains(&purpose).then(|| whole(number))?
}

/// The lab whose run had this name in the cache: `run-1234-0`.
fn owner_of_run(name: &str) -> Option<i32> {
    let name = name.strip_suffix(".leaving").unwrap_or(name);
    let (lab, number) = name.strip_prefix("run-")?.split_once('-')?;
    whole(number).and(whole(lab))
}

/// The lab whose end of a link has this control socket: `clw1234n0a.sock`.
fn owner_of_socket(name: &str) -> Option<i32> {
    let (lab, end) = name.strip_prefix("clw")?.split_once('n')?;
    let end = end.strip_suffix(".sock")?;
    whole(end.strip_suffix(['a', 'b'])?).and(whole(lab))
}

/// Digits, and nothing else.
fn whole(text: &str) -> Option<i32> {
    let is_whole = text.bytes().all(|letter| letter.is_ascii_digit());
    is_whole.then(|| text.parse().ok())?
}

/// The lab whose namespace or device of dm-crypt has this name: `coffer-lab-1234-0a`,
/// `coffer-lab-1234-inline`.
fn owner_of_device(name: &str) -> Option<i32> {
    let rest = name.strip_prefix(PREFIX)?;
    let (number, end) = rest.split_once('-').unwrap_or((rest, ""));
    let link = end.strip_suffix(['a', 'b']);
    let is_link = link.is_some_and(|number| whole(number).is_some());
    (is_link || ["", "inline", "probe"].contains(&end)).then(|| whole(number))?
}

/// The folder with a lab's name in which this lies.
fn folder_of(path: &Path) -> Option<&Path> {
    path.ancestors().find(|one| {
        let name = one.file_name().and_then(OsStr::to_str);
        name.and_then(owner_of_folder).is_some()
    })
}

/// Where labs had their folders, as mounts and loop devices tell: a lab may have been told to work
/// elsewhere.
pub fn elsewhere() -> Vec<PathBuf> {
    let backing = loops().into_iter().map(|(_, file)| file);
    let all = mounts().into_iter().chain(backing);
    let parent = |path: PathBuf| Some(folder_of(&path)?.parent()?.to_owned());
    all.filter_map(parent).collect()
}

/// Whether no lab has that number: its process is gone, or another program has its number. Of what
/// has no note more is not known.
fn is_gone(id: i32) -> bool {
    !is_lab(id) || note::started(id).is_none()
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
        let backing = backing(&name)?;
        folder_of(&backing)?;
        Some((Path::new("/dev").join(name), backing))
    });
    left.collect()
}

/// The file that a loop device shows.
fn backing(device: &str) -> Option<PathBuf> {
    let told = Path::new(BLOCK_DEVICES)
        .join(device)
        .join("loop/backing_file");
    Some(PathBuf::from(fs::read_to_string(told).ok()?.trim_end()))
}

fn files(folders: &[PathBuf], cache: &Path) -> Vec<PathBuf> {
    let below = |folder: &Path, owner: &dyn Fn(&str) -> Option<i32>| -> Vec<PathBuf> {
        let left = names(folder)
            .into_iter()
            .filter(|name| owner(name).is_some());
        left.map(|name| folder.join(name)).collect()
    };
    let mut left: Vec<PathBuf> = folders
        .iter()
        .map(PathBuf::as_path)
        .chain([Path::new(MEMORY)])
        .flat_map(|folder| below(folder, &owner_of_folder))
        .collect();
    left.extend(below(cache, &owner_of_run));
    left.extend(below(Path::new(WIREGUARD_SOCKETS), &owner_of_socket));
    let noted = |name: &str| {
        let namespace = name.strip_suffix(note::ENDING)?;
        let is_there = Path::new(NAMESPACES).join(namespace).exists();
        owner_of_device(namespace).filter(|_| !is_there)
    };
    left.extend(below(Path::new(note::STATE), &noted));
    // A folder may be named twice.
    left.sort();
    left.dedup();
    left
}

#[cfg(test)]
mod tests;
