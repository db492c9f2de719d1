//! A server in a process of its own, and what it costs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::error::{Doing, LabError, Result};
use crate::programs::Running;
use crate::server::model::Model;

/// A server that is running.
pub(super) struct Server {
    pub(super) model: Model,
    pub(super) address: SocketAddr,
    running: Running,
}

impl Server {
    pub(super) fn start(model: Model) -> Result<Self> {
        let program = std::env::current_exe().doing(|| "looking for this program".into())?;
        let mut command = Command::new(program);
        command.args(["serve-model", &model.argument()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command)?;
        let mut line = String::new();
        if let Some(output) = running.child.stdout.take() {
            let read = BufReader::new(output).read_line(&mut line);
            read.doing(|| "starting a server".into())?;
        }
        let address = line.trim().parse().map_err(|_| LabError::Program {
            command: format!("coffer-lab serve-model {}", model.argument()),
            what: "it told no address".into(),
        })?;
        Ok(Self {
            model,
            address,
            running,
        })
    }

    /// CPU seconds so far, of the process and of those it has started and waited for.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let path = format!("/proc/{}/stat", self.running.child.id());
        let text = fs::read_to_string(path).unwrap_or_default();
        let ticks = cpu_ticks(&text).unwrap_or(0);
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

/// utime, stime, cutime and cstime of `/proc/PID/stat` (proc(5), fields 14 to 17). The name of the
/// program, in parentheses, may hold anything: fields are counted from the last closing one.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields = rest.split_ascii_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_the_process_and_its_children() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194304 1 2 3 4 100 20 3 1 20 0 3 0 77 1 1";
        assert_eq!(cpu_ticks(stat), Some(124));
        assert_eq!(cpu_ticks("42 (x"), None);
    }
}
