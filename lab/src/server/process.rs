//! A server in a process of its own, and what it costs.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use coffer_measure::process::cpu_seconds_with_ended;

use crate::error::{Doing, LabError, Result};
use crate::host::coffer_server;
use crate::host::programs::{Running, marked};
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
    S3(Box<S3>),
}

impl Server {
    /// Starts the file mover.
    pub(super) fn start(model: Model) -> Result<Self> {
        let program = std::env::current_exe().doing(|| "looking for this program".into())?;
        let mut command = marked(program);
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
        Ok(Self::S3(Box::new(S3::start(&program, data)?)))
    }

    pub(super) fn connect(&self) -> Result<Box<dyn Client>> {
        Ok(match self {
            Self::Mover { model, address, .. } => Box::new(MoverClient::connect(*model, *address)?),
            Self::S3(s3) => Box::new(s3.connect()?),
        })
    }

    /// Frees what was stored of a measured file; an object stays until another replaces it.
    pub(super) fn forget(&self) -> Result<()> {
        match self {
            Self::Mover { model, address, .. } => MoverClient::connect(*model, *address)?.forget(),
            Self::S3(_) => Ok(()),
        }
    }

    /// CPU seconds so far, of the process and of those it has started and waited for.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let process = match self {
            Self::Mover { running, .. } => running.child.id(),
            Self::S3(s3) => s3.server.process_id(),
        };
        cpu_seconds_with_ended(process)
    }
}
