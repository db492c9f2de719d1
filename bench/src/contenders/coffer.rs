//! coffer itself, as `coffer serve` starts: on its defaults, but for what a work is about.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use coffer_client::s3::ClientOptions;
use coffer_client::signing::{S3, Signer, UNSIGNED_PAYLOAD};
use coffer_client::{Credentials, Settings, s3};
use http::Method;
use hyper::body::Bytes;
use time::OffsetDateTime;

use crate::contenders::Endpoint;
use crate::error::{BenchError, Doing, Result};
use crate::load_client::connection::Request;
use crate::load_client::content::Content;
use crate::load_client::load::Client;
use crate::load_client::response::Expected;
use crate::load_client::tls_records::client_config;
use crate::machine::server_process::{Ready, ServerProcess, free_address};

/// How many connections prepare and clear, where nothing is measured.
const CARE_CONNECTIONS: usize = 32;

/// An option that builds have which were made since sealed transfer was.
const DATA_PORT: &str = "--data-listen";

/// A running coffer with one bucket.
pub struct Coffer {
    endpoint: Endpoint,
    program: PathBuf,
    data: PathBuf,
    /// `Host` of every request.
    host: String,
    credentials: Credentials,
    s3: s3::Client,
}

impl Coffer {
    /// The bucket that is made at the start.
    pub const BUCKET: &str = "bench";

    /// Its authority's certificate, in its folder.
    pub const AUTHORITY: &str = "data/tls/ca.pem";

    /// Starts it with a data folder of its own and makes the bucket.
    pub fn start(program: &Path, folder: &Path, pinned: bool, client: &Client) -> Result<Self> {
        Self::start_with(program, folder, pinned, client, "")
    }

    /// The same, with lines of a configuration file.
    pub fn start_with(
        program: &Path,
        folder: &Path,
        pinned: bool,
        client: &Client,
        settings: &str,
    ) -> Result<Self> {
        Self::start_as(program, folder, pinned, client, (settings, &[]))
    }

    /// The same, with more arguments.
    pub fn start_as(
        program: &Path,
        folder: &Path,
        pinned: bool,
        client: &Client,
        (settings, arguments): (&str, &[String]),
    ) -> Result<Self> {
        let coffer = Self::begin(program, folder, pinned, (settings, arguments), None)?;
        coffer.make_bucket(client, Self::BUCKET)?;
        Ok(coffer)
    }

    /// One more gateway of an engine that has buckets already, with the access key of another.
    pub fn beside(other: &Self, folder: &Path, pinned: bool, arguments: &[String]) -> Result<Self> {
        let key = Some(other.data.as_path());
        Self::begin(&other.program, folder, pinned, ("", arguments), key)
    }

    /// Starts it. `key`: the data folder whose access key is used, if it is another one's.
    fn begin(
        program: &Path,
        folder: &Path,
        pinned: bool,
        (settings, arguments): (&str, &[String]),
        key: Option<&Path>,
    ) -> Result<Self> {
        let data = folder.join("data");
        let address = free_address()?;
        let mut command = serving(program, folder, &data, address, settings)?;
        command.args(arguments);
        let ready = Ready::Says("ready");
        let process = ServerProcess::start("coffer", command, pinned, ready, folder)?;
        let authority = folder.join(Self::AUTHORITY);
        let mut reached = reached(address, key.unwrap_or(&data))?;
        reached.ca = Some(authority.clone());
        let coffer = Self {
            endpoint: Endpoint {
                name: "coffer",
                process,
                address,
                tls: client_config(&authority)?,
            },
            program: program.into(),
            host: address.to_string(),
            credentials: reached.credentials.clone(),
            s3: s3::Client::new(reached, ClientOptions::default())?,
            data,
        };
        Ok(coffer)
    }

    /// Where it serves, and its process.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// For requests that are not load. Use it by [`Client::wait`], or on threads that wait.
    pub fn s3(&self) -> &s3::Client {
        &self.s3
    }

    /// Makes a bucket of the default level.
    pub fn make_bucket(&self, client: &Client, name: &str) -> Result<()> {
        let make = self.request("PUT", &format!("/{name}"), "", None, Expected::Success);
        client.once(self.endpoint.address, &self.endpoint.tls, make)
    }

    /// Puts a document of a bucket, such as its policy: `PUT /BUCKET?NAME`.
    pub fn configure(
        &self,
        client: &Client,
        bucket: &str,
        name: &'static str,
        document: String,
    ) -> Result<()> {
        let request = s3::Request::of_bucket(Method::PUT, bucket).query(name, "");
        let request = request.body(Bytes::from(document), None);
        client.wait(self.s3.send(&request))?;
        Ok(())
    }

    /// Runs a command of the program on the server's data folder, to its end, and gives what it
    /// printed.
    pub fn command(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--data").arg(&self.data);
        output(command.arg("--json"))
    }

    /// Where its clients find it.
    pub fn url(&self) -> String {
        format!("https://{}", self.endpoint.address)
    }

    /// The certificate that its clients trust.
    pub fn authority(&self) -> PathBuf {
        self.data.join("tls/ca.pem")
    }

    /// Its first access key: the id, and what is secret.
    pub fn access_key(&self) -> (&str, &str) {
        let Credentials {
            access_key_id,
            secret_access_key,
            ..
        } = &self.credentials;
        (access_key_id, secret_access_key)
    }

    /// A program that finds server, access key and authority where AWS's programs look for them.
    pub fn as_aws(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("AWS_CA_BUNDLE", self.authority());
        command.env("AWS_SHARED_CREDENTIALS_FILE", self.data.join("credentials"));
        command
            .env("AWS_ENDPOINT_URL", self.url())
            .env("AWS_DEFAULT_REGION", S3.region);
        command
            .env_remove("AWS_PROFILE")
            .env_remove("AWS_ACCESS_KEY_ID");
        command
    }

    /// A command of the program's client side, without its arguments.
    pub fn client_command(&self) -> Command {
        self.as_aws(&self.program)
    }

    /// Another client for requests that are not load: connections of one belong to the runtime that
    /// it was used on.
    pub fn another_s3(&self) -> Result<s3::Client> {
        let reached = reached(self.endpoint.address, &self.data)?;
        Ok(s3::Client::new(reached, ClientOptions::default())?)
    }

    /// A request of the load client. `query`: `a=1&b=`, sorted and encoded, or nothing.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        query: &str,
        body: Option<Content>,
        expected: Expected,
    ) -> Request {
        let signer = Signer::new(&self.credentials, S3, OffsetDateTime::now_utc());
        let headers = [
            ("host", self.host.as_str()),
            ("x-amz-content-sha256", UNSIGNED_PAYLOAD),
            ("x-amz-date", signer.amz_date()),
        ];
        let place = (path, query);
        let authorization =
            signer.authorization_of_query(method, place, &headers, UNSIGNED_PAYLOAD);
        let mark = if query.is_empty() { "" } else { "?" };
        let mut head =
            format!("{method} {path}{mark}{query} HTTP/1.1\r\nauthorization: {authorization}\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if let Some(body) = body {
            head.push_str(&format!("content-length: {}\r\n", body.length_bytes));
        } else if method == "PUT" {
            head.push_str("content-length: 0\r\n");
        }
        head.push_str("\r\n");
        Request {
            head,
            body,
            expected,
        }
    }

    /// Sends requests that are not measured.
    pub fn each(&self, client: &Client, requests: impl Iterator<Item = Request>) -> Result<()> {
        let mut connections = self.endpoint.connect(client, CARE_CONNECTIONS)?;
        client.run(&mut connections, requests.collect()).map(drop)
    }
}

/// How a client reaches a server on a data folder.
fn reached(address: std::net::SocketAddr, data: &Path) -> Result<Settings> {
    Ok(Settings {
        endpoint: format!("https://{address}"),
        credentials: Credentials::of_file(&data.join("credentials"), "default")?,
        region: S3.region.to_owned(),
        ca: Some(data.join("tls/ca.pem")),
    })
}

/// The command that serves on a folder.
fn serving(
    program: &Path,
    folder: &Path,
    data: &Path,
    address: std::net::SocketAddr,
    settings: &str,
) -> Result<Command> {
    if !program.exists() {
        let hint = "cargo build --release -p coffer, or name it with --coffer";
        return Err(BenchError::Missing {
            program: program.into(),
            hint,
        });
    }
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .arg("serve")
        .arg("--data")
        .arg(data);
    if !settings.is_empty() {
        let config = folder.join("coffer.toml");
        fs::write(&config, settings).doing(|| format!("writing {}", config.display()))?;
        command.arg("--config").arg(&config);
    }
    command.args(["--listen", &address.to_string()]);
    command.args(["--admin-listen", &free_address()?.to_string()]);
    // Two servers at once can't both have the usual port.
    if output(Command::new(program).args(["serve", "--help"]))?.contains(DATA_PORT) {
        command.args([DATA_PORT, &free_address()?.to_string()]);
    }
    // Its own defaults are measured, not what the caller's environment says.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("COFFER_") || name == "RUST_LOG")
        {
            command.env_remove(name);
        }
    }
    Ok(command)
}

/// What a command printed; that it failed is an error.
pub fn output(command: &mut Command) -> Result<String> {
    let told = format!("{command:?}");
    let printed = run(command.stdout(Stdio::piped()))?;
    { String::from_utf8(printed).map_err(io::Error::other) }.doing(|| format!("reading {told}"))
}

/// Runs a command to its end, and gives what it printed, if that is piped; that it failed is an
/// error, with what it said.
pub fn run(command: &mut Command) -> Result<Vec<u8>> {
    let told = format!("{command:?}");
    let started = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let done = started.and_then(std::process::Child::wait_with_output);
    let done = done.doing(|| format!("starting {told}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let problem = format!("{}: {said}", done.status);
        return Err(BenchError::Command {
            command: told,
            problem,
        });
    }
    Ok(done.stdout)
}
