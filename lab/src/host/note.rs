//! What a lab writes into a folder that it makes, and for each network namespace, so that `clean`
//! knows what is a lab's: others may give the same names.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The name of a folder's own.
pub(crate) const NAME: &str = "made-by-coffer-lab";

/// Where those of namespaces lie: gone with them when the system starts anew.
pub(crate) const STATE: &str = "/run";

/// How their names end.
pub(crate) const ENDING: &str = ".made-by-coffer-lab";

const HEAD: &str = "made by coffer-lab; `coffer-lab clean` removes it";

/// More than any note has.
const BYTES_MAX: u64 = 1024;

/// What it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Who made it.
    pub(crate) lab: Lab,
    /// How many folders above it were made for it.
    pub(crate) above: usize,
}

/// A process, so that no other can be taken for it: numbers are given again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lab {
    /// Its number.
    pub(crate) process: i32,
    /// When it began, in the kernel's ticks.
    pub(crate) started: String,
    /// By which numbers processes are counted where it runs: containers have their own.
    pub(crate) numbers: String,
    /// Since when the system runs, by the name that the kernel gives that time.
    boot: String,
}

/// What can be told of a lab from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Runs,
    Gone,
    /// Its processes are counted by other numbers, which are not seen here.
    Unknown,
}

impl Lab {
    /// This process.
    pub(crate) fn own() -> Self {
        let process = std::process::id().cast_signed();
        let numbers = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            process,
            started: started(process).unwrap_or_default(),
            numbers: numbers.to_string_lossy().into_owned(),
            boot: boot(),
        }
    }

    /// Whether the system was not started anew since.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }

    /// Whether it still runs. One that has ended is gone, although the program that started it has
    /// not asked how.
    pub(crate) fn state(&self) -> State {
        let own = Self::own();
        if self.boot != own.boot {
            State::Gone
        } else if self.numbers != own.numbers {
            State::Unknown
        } else if started(self.process).as_ref() == Some(&self.started) {
            State::Runs
        } else {
            State::Gone
        }
    }
}

/// When a process began; None where it has ended (proc(5)).
pub(crate) fn started(process: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Its name may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    (!["Z", "X"].contains(&state)).then(|| fields.nth(18).map(str::to_owned))?
}

/// Writes one of this process; leaves nothing where that fails.
pub(crate) fn write(path: &Path, above: usize) -> io::Result<()> {
    let lab = Lab::own();
    let written = fs::write(path, text(&Note { lab, above }));
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

fn text(note: &Note) -> String {
    let Lab {
        process,
        started,
        numbers,
        boot,
    } = &note.lab;
    let above = note.above;
    format!(
        "{HEAD}\nprocess {process}\nstarted {started}\nnumbers {numbers}\nboot {boot}\n\
         folders above {above}\n"
    )
}

/// One of a lab that differs from this process.
#[cfg(test)]
pub(crate) fn plant(path: &Path, above: usize, differ: impl FnOnce(&mut Lab)) {
    let mut lab = Lab::own();
    differ(&mut lab);
    fs::write(path, text(&Note { lab, above })).unwrap();
}

/// None where there is none.
pub(crate) fn read(path: &Path) -> Option<Note> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    if lines.next()? != HEAD {
        return None;
    }
    let mut after = |begins: &str| Some(lines.next()?.strip_prefix(begins)?.to_owned());
    Some(Note {
        lab: Lab {
            process: after("process ")?.parse().ok()?,
            started: after("started ")?,
            numbers: after("numbers ")?,
            boot: after("boot ")?,
        },
        above: after("folders above ")?.parse().ok()?,
    })
}

/// Where that of a namespace lies.
pub(crate) fn of_namespace(name: &str) -> PathBuf {
    Path::new(STATE).join(format!("{name}{ENDING}"))
}

/// The name of the time since the system started; empty where the kernel does not tell.
fn boot() -> String {
    let told = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    told.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_all_else_is_no_note() {
        let folder = std::env::temp_dir().join(format!("lab-note-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join(NAME);
        write(&path, 2).unwrap();
        let lab = Lab::own();
        assert_eq!(lab.process.cast_unsigned(), std::process::id());
        assert_eq!(read(&path), Some(Note { lab, above: 2 }));
        std::os::unix::fs::symlink(&path, folder.join("link")).unwrap();
        fs::write(folder.join("other"), "process 1\nboot x\nfolders above 0\n").unwrap();
        // A number alone is no proof of a lab: what was not told when it began is none.
        let short = format!("{HEAD}\nprocess 1\nboot x\nfolders above 0\n");
        fs::write(folder.join("short"), short).unwrap();
        for other in ["link", "other", "short", "none", ""] {
            assert_eq!(read(&folder.join(other)), None, "{other}");
        }
        write(&folder.join("no/such"), 0).unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_number_that_was_given_again_is_no_lab_that_runs() {
        let of = |spoil: fn(&mut Lab)| {
            let mut lab = Lab::own();
            spoil(&mut lab);
            lab.state()
        };
        assert_eq!(of(|_| ()), State::Runs);
        assert_eq!(of(|lab| lab.started += "0"), State::Gone);
        assert_eq!(of(|lab| lab.process = 99_999_999), State::Gone);
        // The system was started anew, and another container's processes are not seen.
        assert_eq!(of(|lab| lab.boot += "0"), State::Gone);
        assert_eq!(of(|lab| lab.numbers = "pid:[1]".to_owned()), State::Unknown);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let process = ended.id().cast_signed();
        while started(process).is_some() {
            std::thread::yield_now();
        }
        ended.wait().unwrap();
    }
}
