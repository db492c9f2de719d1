//! A server under measurement, as a process on the server's core.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{BenchError, Doing, Result};
use crate::machine::pinning;
use coffer_measure::loopback;
use coffer_measure::process::{self, Resident};

const START_MOST: Duration = Duration::from_secs(20);
const STOP_MOST: Duration = Duration::from_secs(20);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// How one sees that a server serves.
pub enum Ready {
    /// It prints a line that begins with this word.
    Says(&'static str),
    /// It accepts connections.
    Accepts(SocketAddr),
}

/// A running server; stopped when dropped.
pub struct ServerProcess {
    name: &'static str,
    child: Child,
    stdout: PathBuf,
}

impl ServerProcess {
    /// Starts `command` and waits until it is ready. What it says goes to `NAME.log` and
    /// `NAME.err` in `folder`.
    pub fn start(
        name: &'static str,
        mut command: Command,
        pinned: bool,
        ready: Ready,
        folder: &std::path::Path,
    ) -> Result<Self> {
        let stdout = folder.join(format!("{name}.log"));
        let stderr = folder.join(format!("{name}.err"));
        for (path, is_error) in [(&stdout, false), (&stderr, true)] {
            let file = File::create(path).doing(|| format!("creating {}", path.display()))?;
            if is_error {
                command.stderr(file)
            } else {
                command.stdout(file)
            };
        }
        command.stdin(Stdio::null());
        let child = pinning::on_server_core(pinned, || {
            command
                .spawn()
                .doing(|| format!("starting {:?}", command.get_program()))
        })?;
        let mut server = Self {
            name,
            child,
            stdout,
        };
        let start = Instant::now();
        while !server.is_ready(&ready) {
            let ended = server
                .child
                .try_wait()
                .doing(|| format!("waiting for {name}"))?;
            if ended.is_some() || start.elapsed() > START_MOST {
                let mut why = fs::read_to_string(&stderr).unwrap_or_default();
                why.push_str(&server.said());
                return Err(BenchError::NotStarted { server: name, why });
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        Ok(server)
    }

    /// What it printed on its standard output.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap_or_default()
    }

    fn is_ready(&self, ready: &Ready) -> bool {
        match ready {
            Ready::Says(word) => self.said().lines().any(|line| line.starts_with(word)),
            Ready::Accepts(address) => TcpStream::connect(address).is_ok(),
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// User and system time of all its threads and workers so far.
    pub fn cpu_seconds(&self) -> Result<f64> {
        Ok(process::cpu_seconds(self.child.id())?)
    }

    /// Its memory and that of its workers.
    pub fn resident(&self) -> Result<Resident> {
        Ok(process::resident(self.child.id())?)
    }

    /// Lets the peak of its memory begin anew.
    pub fn forget_peak(&self) -> Result<()> {
        Ok(process::forget_peak(self.child.id())?)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It fails only where the server has ended before.
            let _ = kill_process(pid, Signal::TERM);
        }
        let start = Instant::now();
        while start.elapsed() < STOP_MOST {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        eprintln!(
            "{} did not stop in {} s and is killed",
            self.name,
            STOP_MOST.as_secs()
        );
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that no program listens on at the moment.
pub fn free_address() -> Result<SocketAddr> {
    loopback::free_address().doing(|| "looking for a free port".into())
}
