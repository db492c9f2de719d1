//! A coffer server, asked by curl over TLS on this machine.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::content::{Content, Sink};
use crate::error::{Doing, LabError, Result};
use crate::file::piped::receive;
use crate::file::store::{Store, evict, files_below};
use crate::programs::{Running, command, run};
use crate::undo::Undo;

/// How long a server may take to be ready.
const READY: Duration = Duration::from_secs(30);

/// A server with a bucket of its own.
pub(super) struct Server {
    data: PathBuf,
    /// What is uploaded; on a file system in memory, so that reading it costs little.
    upload: PathBuf,
    uploaded: u64,
    url: String,
    curl_settings: PathBuf,
    _upload_gone: Undo,
    _running: Running,
}

impl Server {
    pub(super) fn new(program: &Path, folder: &Path) -> Result<Self> {
        let (data, address) = (folder.join("data"), free_address()?);
        let mut serve = Command::new(program);
        serve
            .arg("serve")
            .arg("--data")
            .arg(&data)
            .args(["--log", "error", "--listen", &address]);
        serve.args(["--admin-listen", &free_address()?]);
        serve
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut running = Running::start(&mut serve)?;
        wait_until_ready(&mut running)?;
        let upload = PathBuf::from(format!("/dev/shm/coffer-lab-{}", std::process::id()));
        let gone = upload.clone();
        let curl_settings = folder.join("curl");
        write_settings(&data, &curl_settings)?;
        let server = Self {
            url: format!("https://{address}/lab"),
            uploaded: 0,
            _upload_gone: Undo::by(move || drop(fs::remove_file(gone))),
            upload,
            data,
            curl_settings,
            _running: running,
        };
        run(server.curl().args(["--request", "PUT", &server.url]))?;
        Ok(server)
    }

    fn curl(&self) -> Command {
        let mut curl = command("curl");
        curl.arg("--config").arg(&self.curl_settings);
        curl
    }

    fn object(&self) -> String {
        format!("{}/file", self.url)
    }
}

fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").doing(|| "looking for a free port".into())?;
    let address = listener
        .local_addr()
        .doing(|| "looking for a free port".into())?;
    Ok(address.to_string())
}

/// Waits for the line that begins with `ready`, and goes on reading, so that the pipe never fills.
fn wait_until_ready(running: &mut Running) -> Result<()> {
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
    told.recv_timeout(READY).map_err(|_| LabError::Program {
        command: "coffer serve".into(),
        what: "it was not ready in time".into(),
    })
}

/// Settings of curl with the server's credentials: not as arguments, which everybody can list.
fn write_settings(data: &Path, settings: &Path) -> Result<()> {
    let credentials = data.join("credentials");
    let text = fs::read_to_string(&credentials).doing(|| "reading credentials".into())?;
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(key, _)| key.trim() == name);
        found.map_or("", |(_, value)| value.trim())
    };
    let (id, secret) = (field("aws_access_key_id"), field("aws_secret_access_key"));
    let authority = data.join("tls/ca.pem");
    let text = format!(
        "user = \"{id}:{secret}\"\naws-sigv4 = \"aws:amz:us-east-1:s3\"\n\
         header = \"x-amz-content-sha256: UNSIGNED-PAYLOAD\"\ncacert = \"{}\"\n\
         silent\nshow-error\nfail\n",
        authority.display()
    );
    let doing = || format!("writing {}", settings.display());
    fs::write(settings, text).doing(doing)
}

impl Store for Server {
    /// The file to upload is made once, and outside of what is measured: see `prepare`.
    fn write(&mut self, content: &mut Content) -> Result<()> {
        self.prepare(content)?;
        let mut curl = self.curl();
        curl.arg("--upload-file")
            .arg(&self.upload)
            .arg(self.object());
        run(&mut curl).map(drop)
    }

    fn prepare(&mut self, content: &mut Content) -> Result<()> {
        if self.uploaded == content.bytes() {
            return Ok(());
        }
        let doing = || format!("writing {}", self.upload.display());
        let mut file = File::create(&self.upload).doing(doing)?;
        self.uploaded = content.bytes();
        while let Some(block) = content.next() {
            file.write_all(block).doing(doing)?;
        }
        Ok(())
    }

    fn read(&mut self, sink: &mut Sink) -> Result<()> {
        receive(self.curl().arg(self.object()), sink)
    }

    fn evict(&mut self) -> Result<()> {
        evict(&self.data.join("buckets"))
    }

    fn at_rest(&self) -> Vec<PathBuf> {
        files_below(&self.data).unwrap_or_default()
    }
}
