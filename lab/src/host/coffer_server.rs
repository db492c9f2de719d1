//! A coffer server of the lab's own, with a data folder, a port and an access key.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use coffer_measure::loopback;
use rusty_s3::Credentials;

use crate::contender::Availability;
use crate::error::{Doing, LabError, Result};
use crate::host::peers::remedy;
use crate::host::programs::{Running, find, marked, said};

/// How long a server may take to be ready.
const READY: Duration = Duration::from_secs(30);

/// The region that requests are signed for: coffer takes any.
pub const REGION: &str = "us-east-1";

/// The program beside this one, or on the path.
pub fn program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?.join("coffer");
    if beside.is_file() {
        Some(beside)
    } else {
        find("coffer")
    }
}

/// Whether there is a server to start.
pub fn availability() -> Availability {
    match program() {
        Some(_) => Availability::Runs,
        None => Availability::cannot(
            "the program coffer is not beside this one",
            remedy("coffer", "cargo build --release -p coffer"),
        ),
    }
}

/// A server that is running.
pub struct CofferServer {
    /// Where it listens for S3 over TLS.
    pub address: SocketAddr,
    /// Its data folder.
    pub data: PathBuf,
    running: Running,
}

impl CofferServer {
    /// Starts one on an empty data folder, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// [`LabError::Program`] when it is not ready in time.
    pub fn start(program: &Path, data: &Path) -> Result<Self> {
        let address = free_address()?;
        let mut serve = marked(program);
        serve.arg("serve").arg("--data").arg(data);
        serve.args(["--log", "error", "--listen", &address.to_string()]);
        serve.args(["--admin-listen", &free_address()?.to_string()]);
        serve
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = Running::start(&mut serve)?;
        let errors = running.child.stderr.take();
        let saying = thread::spawn(move || said(errors));
        if let Err(why) = wait_until_ready(&mut running) {
            drop(running);
            let said = saying.join().unwrap_or_default();
            return Err(LabError::Program {
                command: "coffer serve".into(),
                what: format!("{why}: {said}"),
            });
        }
        Ok(Self {
            address,
            data: data.to_owned(),
            running,
        })
    }

    /// The number of its process.
    pub fn process_id(&self) -> u32 {
        self.running.child.id()
    }

    /// The authority that clients must trust, PEM.
    pub fn authority(&self) -> PathBuf {
        self.data.join("tls/ca.pem")
    }

    /// The access key that the first start made.
    pub fn credentials(&self) -> Result<Credentials> {
        let path = self.data.join("credentials");
        let key = coffer_client::Credentials::of_file(&path, "default");
        let key = key.map_err(|error| LabError::Data {
            file: path.display().to_string(),
            what: error.to_string(),
        })?;
        Ok(Credentials::new(
            key.access_key_id,
            key.secret_access_key.as_str(),
        ))
    }
}

fn free_address() -> Result<SocketAddr> {
    loopback::free_address().doing(|| "looking for a free port".into())
}

/// Waits for the line that begins with `ready`, and goes on reading, so that the pipe never fills.
/// Tells why there was none.
fn wait_until_ready(running: &mut Running) -> std::result::Result<(), &'static str> {
    let (ready, told) = mpsc::channel();
    let output = running.child.stdout.take();
    thread::spawn(move || {
        let lines = output
            .into_iter()
            .flat_map(|output| BufReader::new(output).lines());
        for line in lines.map_while(std::io::Result::ok) {
            if line.starts_with("ready") && ready.send(()).is_err() {
                return;
            }
        }
    });
    told.recv_timeout(READY).map_err(|error| match error {
        RecvTimeoutError::Timeout => "it was not ready in time",
        RecvTimeoutError::Disconnected => "it ended before it was ready",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that is there: one that were written here could not be run while another test
    /// starts a process, which has the file open for writing until it runs a program of its own.
    #[test]
    fn a_server_that_can_not_start_is_quoted() {
        // The shell looks for a script by the name `serve`.
        let failed = CofferServer::start(Path::new("/bin/sh"), Path::new("data")).err();
        let text = failed.unwrap().to_string();
        let (_, said) = text.split_once("ended before it was ready: ").unwrap();
        assert!(said.contains("serve"), "{text}");
    }
}
