//! nginx of the distribution, serving plain files over TLS.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::contenders::{Endpoint, Object, Serves};
use crate::error::{BenchError, Doing, Result};
use crate::load_client::connection::Request;
use crate::load_client::load::Client;
use crate::load_client::response::Expected;
use crate::load_client::tls_records::client_config;
use crate::machine::server_process::{Ready, ServerProcess, free_address};
use coffer_measure::tls::{CIPHER_SUITE, Identity};

/// Where Debian puts it, which is not on the path of every user; and where
/// `scripts/install-bench-peers` does.
const PROGRAMS: [&str; 3] = [
    "/usr/sbin/nginx",
    "/usr/local/sbin/nginx",
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../target/peers/usr/sbin/nginx"
    ),
];

/// What is said of its settings beside the figures.
pub const SETTINGS: &str = "one worker, epoll, multi_accept, open_file_cache, no access log, \
    no limit of keepalive_requests, ssl_buffer_size 16k, output_buffers 2 128k, no kernel TLS";

/// A running nginx.
pub struct Nginx {
    endpoint: Endpoint,
    plain: SocketAddr,
    authority: PathBuf,
    files: PathBuf,
}

impl Nginx {
    /// Starts it with a folder of its own: this program, or the distribution's.
    pub fn start(given: Option<&Path>, folder: &Path, pinned: bool) -> Result<Self> {
        let files = folder.join("files");
        fs::create_dir_all(&files).doing(|| format!("creating {}", files.display()))?;
        let identity = Identity::create(folder)?;
        let (address, plain) = (free_address()?, free_address()?);
        let path = folder.join("nginx.conf");
        fs::write(&path, configuration(folder, &identity, address, plain))
            .doing(|| format!("writing {}", path.display()))?;
        let mut command = Command::new(program(given)?);
        command
            .arg("-p")
            .arg(folder)
            .arg("-c")
            .arg(&path)
            .args(["-e", "stderr"]);
        let ready = Ready::Accepts(address);
        let process = ServerProcess::start("nginx", command, pinned, ready, folder)?;
        let tls = client_config(&identity.certificate)?;
        Ok(Self {
            endpoint: Endpoint {
                name: "nginx https",
                process,
                address,
                tls,
            },
            plain,
            authority: identity.certificate,
            files,
        })
    }

    /// The certificate that clients trust.
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// Where it serves the same files without TLS, by `sendfile`.
    pub fn plain_address(&self) -> SocketAddr {
        self.plain
    }
}

impl Serves for Nginx {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn get(&self, object: &Object) -> Request {
        let address = self.endpoint.address;
        let head = format!("GET /{} HTTP/1.1\r\nhost: {address}\r\n\r\n", object.name);
        Request {
            head,
            body: None,
            expected: Expected::Body(object.content),
        }
    }

    fn store(&self, _client: &Client, objects: &[Object]) -> Result<()> {
        for object in objects {
            let path = self.files.join(&object.name);
            object
                .content
                .write_to(&path)
                .doing(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    fn discard(&self, _client: &Client, objects: &[Object]) -> Result<()> {
        for object in objects {
            let path = self.files.join(&object.name);
            fs::remove_file(&path).doing(|| format!("removing {}", path.display()))?;
        }
        Ok(())
    }
}

/// As it names itself, with the library that encrypts for it.
pub fn version(given: Option<&Path>) -> Result<String> {
    let told = Command::new(program(given)?)
        .arg("-V")
        .output()
        .doing(|| "asking nginx".into())?;
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    let line = |start: &str| {
        told.lines()
            .find_map(|line| line.strip_prefix(start))
            .map(str::trim)
    };
    let nginx = line("nginx version:").unwrap_or("nginx");
    // "built with OpenSSL 3.0.20 … (running with OpenSSL 3.0.19 …)" where the two differ.
    let library = line("built with ").unwrap_or_default();
    let library = library.rsplit("running with ").next().unwrap_or_default();
    let library: Vec<&str> = library.split_ascii_whitespace().take(2).collect();
    Ok(format!("{nginx}, {}", library.join(" ")))
}

fn program(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    PROGRAMS
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .ok_or_else(|| BenchError::Missing {
            program: "nginx".into(),
            hint: "run scripts/install-bench-peers",
        })
}

/// `sendfile` plays no part under TLS in user space. Files have new names in every round, so the
/// cache of open files never holds a stale one.
fn configuration(
    folder: &Path,
    identity: &Identity,
    address: SocketAddr,
    plain: SocketAddr,
) -> String {
    let folder = folder.display();
    let certificate = identity.certificate.display();
    let private_key = identity.private_key.display();
    // Started by root, workers would become `nobody`, who may not enter the folder.
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    format!(
        "daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile 8192;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{
    worker_connections 4096;
    use epoll;
    multi_accept on;
}}
http {{
    access_log off;
    tcp_nodelay on;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
    open_file_cache max=4096 inactive=1h;
    open_file_cache_valid 1h;
    output_buffers 2 128k;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address} ssl;
        root {folder}/files;
        ssl_certificate {certificate};
        ssl_certificate_key {private_key};
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites {CIPHER_SUITE};
        ssl_buffer_size 16k;
    }}
    server {{
        listen {plain};
        root {folder}/files;
        sendfile on;
        tcp_nopush on;
    }}
}}
"
    )
}
