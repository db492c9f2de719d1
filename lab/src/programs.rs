//! Programs of others: where they are, how they are run, and that none is left behind.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Doing, LabError, Result};
use crate::undo::Undo;

/// Folders of programs inside of unpacked packages.
const PROGRAM_FOLDERS: [&str; 5] = ["bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin"];

/// Folders of libraries inside of unpacked packages.
const LIBRARY_FOLDERS: [&str; 3] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/encfs",
];

/// The most that is kept of what a failed program said.
const SAID_BYTES: usize = 400;

/// Where unpacked packages lie (scripts/install-lab-peers): `target/lab-peers`, beside the folder
/// that holds this program.
fn peers() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let mut above = program.ancestors();
    above.find_map(|folder| Some(folder.join("lab-peers")).filter(|peers| peers.is_dir()))
}

/// Further folders of unpacked packages.
static ROOTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Lets programs and libraries be found below `root`, as packages have them.
pub fn look_below(root: &Path) {
    let mut roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !roots.iter().any(|known| known == root) {
        roots.push(root.to_owned());
    }
}

/// All folders of unpacked packages.
fn roots() -> Vec<PathBuf> {
    let further = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    peers().into_iter().chain(further.iter().cloned()).collect()
}

fn library_folders() -> Option<OsString> {
    let folders = roots()
        .into_iter()
        .flat_map(|root| LIBRARY_FOLDERS.map(|f| root.join(f)));
    std::env::join_paths(folders).ok()
}

/// All folders in which programs are looked for: `PATH` first, then the unpacked packages.
fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.extend(
        roots()
            .iter()
            .flat_map(|root| PROGRAM_FOLDERS.map(|f| root.join(f))),
    );
    std::env::join_paths(folders).unwrap_or(path)
}

/// Where a program lies, if it is there.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = search_path();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

/// A command that finds its own programs and libraries.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(find(name).unwrap_or_else(|| name.into()));
    command.env("PATH", search_path());
    // Only what was unpacked needs its libraries shown.
    if roots().iter().any(|root| is_inside(&command, root)) {
        show_libraries(&mut command);
    }
    command
}

/// Shows a command the libraries of all that was unpacked, for what it starts in turn.
pub fn show_libraries(command: &mut Command) {
    if let Some(folders) = library_folders().filter(|folders| !folders.is_empty()) {
        command.env("LD_LIBRARY_PATH", folders);
    }
}

fn is_inside(command: &Command, folder: &Path) -> bool {
    Path::new(command.get_program()).starts_with(folder)
}

/// The first line that a program says about its version.
pub fn version(name: &str, argument: &str) -> Option<String> {
    find(name)?;
    let output = command(name).arg(argument).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    Some(line.to_owned())
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy());
    [name]
        .into_iter()
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs to the end; gives what it printed.
pub fn run(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).output();
    let output = output.doing(|| format!("starting {line}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said.trim().chars().take(SAID_BYTES).collect();
    Err(LabError::Program {
        command: line,
        what: format!("{}: {said}", output.status),
    })
}

/// Runs what leaves another process behind in the background, which keeps the output open: so there
/// is none, and a failure tells only its status.
pub fn run_to_background(command: &mut Command) -> Result<()> {
    let line = line(command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.status().doing(|| format!("starting {line}"))?;
    if status.success() {
        return Ok(());
    }
    Err(LabError::Program {
        command: line,
        what: status.to_string(),
    })
}

/// A program that is running; ended when this is dropped, or when the lab is interrupted.
pub struct Running {
    /// The process, with the pipes that were asked for.
    pub child: Child,
    line: String,
    alive: Arc<Mutex<Option<u32>>>,
    _undo: Undo,
}

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Self> {
        let line = line(command);
        let child = command.spawn().doing(|| format!("starting {line}"))?;
        let alive = Arc::new(Mutex::new(Some(child.id())));
        let guarded = alive.clone();
        Ok(Self {
            child,
            line,
            alive,
            _undo: Undo::by(move || end(&guarded)),
        })
    }

    /// Waits for its end, which must be a good one.
    pub fn wait(mut self) -> Result<()> {
        let status = self
            .child
            .wait()
            .doing(|| format!("waiting for {}", self.line))?;
        self.alive
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if status.success() {
            return Ok(());
        }
        let mut said = String::new();
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.take(SAID_BYTES as u64).read_to_string(&mut said);
        }
        Err(LabError::Program {
            command: self.line.clone(),
            what: format!("{status}: {}", said.trim()),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&self.alive);
        // Reaped, so that nothing of it is left.
        let _ = self.child.wait();
    }
}

/// Ends the process, unless it has been waited for: then its number may be another's.
fn end(alive: &Mutex<Option<u32>>) {
    let left = alive.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(pid) = left.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_says_so() {
        assert!(run(&mut command("true")).is_ok());
        let error = run(command("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("broken") && text.contains('3'), "{text}");
        assert!(find("no-such-program-anywhere").is_none());
    }

    #[test]
    fn nothing_is_left_running() {
        let running = Running::start(command("sleep").arg("60")).unwrap();
        let process = format!("/proc/{}", running.child.id());
        assert!(Path::new(&process).exists());
        drop(running);
        assert!(!Path::new(&process).exists());
    }
}
