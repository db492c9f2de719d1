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
    /// The lab's process.
    pub(crate) process: i32,
    /// Since when the system runs, by the name that the kernel gives that time.
    pub(crate) boot: String,
    /// How many folders above it were made for it.
    pub(crate) above: usize,
}

/// Writes one of this process; leaves nothing where that fails.
pub(crate) fn write(path: &Path, above: usize) -> io::Result<()> {
    let (process, boot) = (std::process::id(), boot());
    let text = format!("{HEAD}\nprocess {process}\nboot {boot}\nfolders above {above}\n");
    let written = fs::write(path, text);
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
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
    let mut after = |begins: &str| lines.next()?.strip_prefix(begins);
    Some(Note {
        process: after("process ")?.parse().ok()?,
        boot: after("boot ")?.to_owned(),
        above: after("folders above ")?.parse().ok()?,
    })
}

/// Where that of a namespace lies.
pub(crate) fn of_namespace(name: &str) -> PathBuf {
    Path::new(STATE).join(format!("{name}{ENDING}"))
}

/// The name of the time since the system started; empty where the kernel does not tell.
pub(crate) fn boot() -> String {
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
        let found = read(&path).unwrap();
        assert_eq!((found.process as u32, found.above), (std::process::id(), 2));
        assert_eq!(found.boot, boot());
        std::os::unix::fs::symlink(&path, folder.join("link")).unwrap();
        fs::write(folder.join("other"), "process 1\nboot x\nfolders above 0\n").unwrap();
        for other in ["link", "other", "none", ""] {
            assert_eq!(read(&folder.join(other)), None, "{other}");
        }
        write(&folder.join("no/such"), 0).unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
    }
}
