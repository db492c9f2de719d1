//! A server in a process of its own, and what it costs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Doing, LabError, Result};
use crate::host::coffer_server;
use crate::host::programs::Running;
use crate::server::client::{Client, MoverClient};
use crate::server::model::Model;
use crate::server::s3::S3;

/// A server that is running.
pub(super) enum Server {
    /// The file mover.
    Mover {
        model: Model,
        address: SocketAddr,
        running: Running,
    },
    /// coffer.
    S3(S3),
}

impl Server {
    /// Starts the file mover.
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
        Ok(Self::Mover {
            model,
            address,
            running,
        })
    }

    /// Starts coffer on an empty data folder.
    pub(super) fn start_coffer(data: &Path) -> Result<Self> {
        let program = coffer_server::program().unwrap_or_else(|| "coffer".into());
        Ok(Self::S3(S3::start(&program, data)?))
    }

    pub(super) fn connect(&self) -> Result<Box<dyn Client>> {
        Ok(match self {
            Self::Mover { model, address, .. } => Box::new(MoverClient::connect(*model, *address)?),
            Self::S3(s3) => Box::new(s3.connect()?),
        })
    }

    /// CPU seconds so far, of the process and of those it has started and waited for.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let process = match self {
            Self::Mover { running, .. } => running.child.id(),
            Self::S3(s3) => s3.server.process_id(),
        };
        let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
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
