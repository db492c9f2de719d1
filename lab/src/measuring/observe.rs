//! Observes the system calls of one thread of another process, from outside (ptrace(2)): which
//! were made, how often, and how many bytes they moved. Tracing slows the thread down, so what is
//! observed is not timed.
//!
//! The observed process tells the thread's number, waits for a line, and then brackets what counts
//! with a call that it makes for nothing else ([`MARK`]).

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use syscalls::Sysno;

use crate::error::{Doing, LabError, Result};
use crate::host::programs::Running;
use crate::record::{Tally, crossing};

/// Begins and ends what counts.
const MARK: Sysno = Sysno::getppid;

/// To be called on the thread that is observed: tells its number, and waits to be observed.
pub fn wait() -> io::Result<()> {
    println!("{}", rustix::thread::gettid().as_raw_nonzero());
    io::stdin().lock().read_line(&mut String::new()).map(drop)
}

/// To be called on that thread right before and right after what counts.
pub fn mark() {
    let _ = rustix::process::getppid();
}

/// Starts a program that calls [`wait`] and twice [`mark`], and tells what happened between these.
///
/// # Errors
///
/// [`LabError::Io`] where observing is forbidden (a container may), [`LabError::Program`] when the
/// program ends before the second mark.
pub fn observe(command: &mut Command) -> Result<BTreeMap<String, Tally>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Running::start(command)?;
    let mut line = String::new();
    if let Some(output) = running.child.stdout.take() {
        let read = BufReader::new(output).read_line(&mut line);
        read.doing(|| "waiting for what is observed".into())?;
    }
    let Ok(thread) = line.trim().parse() else {
        // It failed: its status says more.
        running.wait()?;
        return Err(ended());
    };
    let thread = Pid::from_raw(thread);
    let doing = || "observing system calls (ptrace)".to_owned();
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL;
    ptrace::seize(thread, options).doing(doing)?;
    ptrace::interrupt(thread).doing(doing)?;
    if let Some(mut input) = running.child.stdin.take() {
        input.write_all(b"\n").doing(doing)?;
    }
    let tallies = follow(thread).doing(doing)?.ok_or_else(ended)?;
    ptrace::detach(thread, None).doing(doing)?;
    running.wait()?;
    Ok(tallies)
}

fn ended() -> LabError {
    LabError::Program {
        command: "what is observed".into(),
        what: "it ended too early".into(),
    }
}

/// From one mark to the next; None when the thread ends before.
fn follow(thread: Pid) -> nix::Result<Option<BTreeMap<String, Tally>>> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let (mut counts, mut under_way) = (false, None);
    loop {
        let signal = match waitpid(thread, Some(WaitPidFlag::__WALL))? {
            WaitStatus::PtraceSyscall(_) => {
                match stop(&ptrace::syscall_info(thread)?) {
                    Stop::Entry(number) => under_way = Some(number),
                    Stop::Exit(_) if under_way == Some(MARK.id() as u64) => {
                        if counts {
                            return Ok(Some(tallies));
                        }
                        counts = true;
                    }
                    Stop::Exit(result) if counts => add(&mut tallies, under_way, result),
                    Stop::Exit(_) | Stop::Other => {}
                }
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Ok(None),
            _ => None,
        };
        ptrace::syscall(thread, signal)?;
    }
}

fn add(tallies: &mut BTreeMap<String, Tally>, number: Option<u64>, result: i64) {
    let Some(number) = number else { return };
    let known = usize::try_from(number).ok().and_then(Sysno::new);
    let name = known.map_or_else(|| format!("number {number}"), |call| call.name().to_owned());
    let moves = [crossing::COPYING, crossing::WITHIN].concat();
    let moved = if moves.contains(&name.as_str()) {
        u64::try_from(result).unwrap_or(0)
    } else {
        0
    };
    let tally = tallies.entry(name).or_default();
    tally.count += 1;
    tally.bytes += moved;
}

/// Where a thread was stopped.
enum Stop {
    /// Before a call of this number.
    Entry(u64),
    /// After it, with this result.
    Exit(i64),
    Other,
}

fn stop(info: &libc::ptrace_syscall_info) -> Stop {
    // SAFETY: the kernel says in `op` which member of the union it has filled in.
    unsafe {
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => Stop::Entry(info.u.entry.nr),
            libc::PTRACE_SYSCALL_INFO_EXIT => Stop::Exit(info.u.exit.sval),
            _ => Stop::Other,
        }
    }
}
