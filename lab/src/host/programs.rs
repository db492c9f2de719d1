//! Programs of others: where they are, how they are run, and that none is left behind.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::contender::Availability;
use crate::error::{Doing, LabError, Result};
use crate::host::peers::remedy;
use crate::host::processor::LIBRARY_FOLDERS;
use crate::host::undo::Undo;

/// Folders of programs inside of unpacked packages.
const PROGRAM_FOLDERS: [&str; 5] = ["bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin"];

/// The most that is kept of what a failed program said.
const SAID_CHARACTERS: usize = 400;

/// The variable by which `coffer-lab clean` knows what a lab started, and what that started in
/// turn: it holds the number of the lab's process.
pub(crate) const MARK: &str = "COFFER_LAB_PROCESS";

/// How long a program that was told to end may take, before it is ended by force.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let mut roots = ROOTS.lock();
    if !roots.iter().any(|known| known == root) {
        roots.push(root.to_owned());
    }
}

/// All folders of unpacked packages.
fn roots() -> Vec<PathBuf> {
    let further = ROOTS.lock();
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

/// Where a file of a library lies, in the system or below what was unpacked.
pub fn find_library(name: &str) -> Option<PathBuf> {
    let unpacked = roots();
    let roots = std::iter::once(Path::new("/")).chain(unpacked.iter().map(PathBuf::as_path));
    let mut places = roots.flat_map(|root| LIBRARY_FOLDERS.map(|f| root.join(f).join(name)));
    places.find(|place| place.is_file())
}

/// That not all of these programs are there, if so.
pub fn lacking(programs: &[&str]) -> Option<Availability> {
    let missing = programs.iter().find(|program| find(program).is_none())?;
    let here = format!("make lab, which unpacks it; or apt install {missing}");
    Some(Availability::cannot(
        format!("the program {missing} is missing"),
        remedy(missing, &here),
    ))
}

/// A command that carries the mark of this lab.
pub fn marked(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env(MARK, std::process::id().to_string());
    command
}

/// A command that finds its own programs and libraries.
pub fn command(name: &str) -> Command {
    let mut command = marked(find(name).unwrap_or_else(|| name.into()));
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
    Some(line.replace(char::is_control, " "))
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

/// Runs to the end; gives what it printed. Ended when the lab is interrupted.
pub fn run(command: &mut Command) -> Result<String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running::start(command)?;
    let errors = running.child.stderr.take();
    // Both at once: it may fill one while the other is read.
    let reading = thread::spawn(move || said(errors));
    let mut printed = Vec::new();
    if let Some(mut output) = running.child.stdout.take() {
        let read = output.read_to_end(&mut printed);
        read.doing(|| format!("reading from {}", running.line))?;
    }
    let status = running.end_of_itself()?;
    let said = reading.join().unwrap_or_default();
    running.judge(status, &said)?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// Runs what cleans up: silently, and also while the lab is being interrupted, when [`run`] starts
/// nothing any more. Ctrl-C, which a terminal sends to all in front of it, does not reach it.
pub fn clean_up(command: &mut Command) -> bool {
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The beginning of what a program says; all is read, so that it is never held up.
pub(crate) fn said(errors: Option<ChildStderr>) -> String {
    let mut said = Vec::new();
    if let Some(mut errors) = errors {
        // A letter has four bytes at most.
        let kept = 4 * SAID_CHARACTERS as u64;
        let _ = errors.by_ref().take(kept).read_to_end(&mut said);
        let _ = io::copy(&mut errors, &mut io::sink());
    }
    let said = String::from_utf8_lossy(&said);
    let said = said.trim().chars().take(SAID_CHARACTERS);
    // It stands in tables and records: nothing of it may steer a terminal.
    said.map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect()
}

/// What is known of a process by those who may end it.
enum Life {
    /// It has not been started.
    Awaited,
    /// It has, and its number is its own: its status was not taken yet.
    Begun(Pid),
    /// Its number may be another's; or it must not be started any more.
    Over,
}

/// A program that is running; ended when this is dropped, or when the lab is interrupted.
pub struct Running {
    /// The process, with the pipes that were asked for.
    pub child: Child,
    line: String,
    life: Arc<Mutex<Life>>,
    _undo: Undo,
}

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Self> {
        let line = line(command);
        let doing = || format!("starting {line}");
        let life = Arc::new(Mutex::new(Life::Awaited));
        let guarded = life.clone();
        let undo = Undo::by(move || end(&guarded));
        // Who wants to end it in this moment waits until it has begun.
        let mut known = lock(&life);
        if matches!(*known, Life::Over) {
            return Err(io::Error::from(io::ErrorKind::Interrupted)).doing(doing);
        }
        let child = command.spawn().doing(doing)?;
        *known = Life::Begun(Pid::from_child(&child));
        drop(known);
        Ok(Self {
            child,
            line,
            life,
            _undo: undo,
        })
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        has_ended(Pid::from_child(&self.child))
    }

    /// Waits for its end, which must be a good one.
    pub fn wait(mut self) -> Result<()> {
        let status = self.end_of_itself()?;
        let said = said(self.child.stderr.take());
        self.judge(status, &said)
    }

    fn end_of_itself(&mut self) -> Result<ExitStatus> {
        // Who reads to the end of the input would wait for ever.
        drop(self.child.stdin.take());
        // Its number stays its own until none may end it any more.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let id = Pid::from_child(&self.child);
        while matches!(waitid(WaitId::Pid(id), options), Err(Errno::INTR)) {}
        let mut known = lock(&self.life);
        *known = Life::Over;
        self.child
            .wait()
            .doing(|| format!("waiting for {}", self.line))
    }

    fn judge(&self, status: ExitStatus, said: &str) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        Err(LabError::Program {
            command: self.line.clone(),
            what: format!("{status}: {said}"),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&self.life);
        let mut known = lock(&self.life);
        *known = Life::Over;
        // So that nothing of it is left. What can't be ended is not waited for.
        let _ = self.child.try_wait();
    }
}

fn lock(life: &Mutex<Life>) -> MutexGuard<'_, Life> {
    life.lock()
}

/// Whether there is nothing left to end. Leaves the status to those who started it.
fn has_ended(id: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match waitid(WaitId::Pid(id), options) {
        Ok(status) => status.is_some(),
        Err(error) => error == Errno::CHILD,
    }
}

/// Ends the process and sees it end, so that what it was making is not made later.
fn end(life: &Mutex<Life>) {
    let start = Instant::now();
    let mut signals = [Signal::TERM, Signal::KILL].into_iter();
    loop {
        let mut known = lock(life);
        let Life::Begun(id) = *known else {
            *known = Life::Over;
            return;
        };
        if has_ended(id) || start.elapsed() > 2 * PATIENCE {
            return;
        }
        if signals.len() == 2 || (signals.len() == 1 && start.elapsed() > PATIENCE) {
            let _ = signals.next().map(|signal| kill_process(id, signal));
        }
        drop(known);
        thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_says_so() {
        assert!(run(&mut command("true")).is_ok());
        let script = r"printf 'broken\n\033[2Jtwice' >&2; exit 3";
        let error = run(command("sh").args(["-c", script])).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("broken  [2Jtwice") && text.contains('3'),
            "{text}"
        );
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

    #[test]
    fn what_runs_is_ended_from_elsewhere_and_nothing_is_started_later() {
        let running = Running::start(command("sleep").arg("60")).unwrap();
        // As an interruption does it, from another thread.
        let life = running.life.clone();
        let ending = thread::spawn(move || end(&life));
        let error = running.wait().unwrap_err().to_string();
        ending.join().unwrap();
        assert!(error.contains("signal: 15"), "{error}");
        let life = Mutex::new(Life::Awaited);
        end(&life);
        assert!(matches!(*lock(&life), Life::Over));
    }
}
