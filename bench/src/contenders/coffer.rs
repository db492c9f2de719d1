//! coffer itself, on its defaults, as `coffer serve` starts.

use std::path::Path;
use std::process::Command;

use coffer_client::Credentials;
use coffer_client::signing::{S3, Signer, UNSIGNED_PAYLOAD};
use time::OffsetDateTime;

use crate::contenders::{Endpoint, Object, Receives, Serves};
use crate::error::{BenchError, Result};
use crate::load_client::connection::Request;
use crate::load_client::content::Content;
use crate::load_client::load::Client;
use crate::load_client::response::Expected;
use crate::load_client::tls_records::client_config;
use crate::machine::server_process::{Ready, ServerProcess, free_address};

const BUCKET: &str = "bench";

/// How many connections prepare and clear, where nothing is measured.
const CARE_CONNECTIONS: usize = 32;

/// A running coffer with one bucket.
pub struct Coffer {
    endpoint: Endpoint,
    /// `Host` of every request.
    host: String,
    credentials: Credentials,
}

impl Coffer {
    /// Its authority's certificate, in its folder.
    pub const AUTHORITY: &str = "data/tls/ca.pem";

    /// Starts it with a data folder of its own and makes the bucket.
    pub fn start(program: &Path, folder: &Path, pinned: bool, client: &Client) -> Result<Self> {
        let data = folder.join("data");
        let (address, admin) = (free_address()?, free_address()?);
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
            .arg(&data);
        command.args([
            "--listen",
            &address.to_string(),
            "--admin-listen",
            &admin.to_string(),
        ]);
        // Its own defaults are measured, not what the caller's environment says.
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| name.starts_with("COFFER_") || name == "RUST_LOG")
            {
                command.env_remove(name);
            }
        }
        let ready = Ready::Says("ready");
        let process = ServerProcess::start("coffer", command, pinned, ready, folder)?;
        let tls = client_config(&folder.join(Self::AUTHORITY))?;
        let coffer = Self {
            endpoint: Endpoint {
                name: "coffer",
                process,
                address,
                tls,
            },
            host: address.to_string(),
            credentials: Credentials::of_file(&data.join("credentials"), "default")?,
        };
        let make = coffer.request("PUT", &format!("/{BUCKET}"), None, Expected::Success);
        client.once(address, &coffer.endpoint.tls, make)?;
        Ok(coffer)
    }

    /// Where it serves, and its process.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn object(&self, method: &str, object: &Object, body: bool, expected: Expected) -> Request {
        let path = format!("/{BUCKET}/{}", object.name);
        self.request(method, &path, body.then_some(object.content), expected)
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<Content>,
        expected: Expected,
    ) -> Request {
        let signer = Signer::new(&self.credentials, S3, OffsetDateTime::now_utc());
        let headers = [
            ("host", self.host.as_str()),
            ("x-amz-content-sha256", UNSIGNED_PAYLOAD),
            ("x-amz-date", signer.amz_date()),
        ];
        let authorization = signer.authorization(method, path, &headers, UNSIGNED_PAYLOAD);
        let mut head = format!("{method} {path} HTTP/1.1\r\nauthorization: {authorization}\r\n");
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

    fn each(&self, client: &Client, requests: impl Iterator<Item = Request>) -> Result<()> {
        let mut connections = self.endpoint.connect(client, CARE_CONNECTIONS)?;
        client.run(&mut connections, requests.collect()).map(drop)
    }
}

impl Serves for Coffer {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn get(&self, object: &Object) -> Request {
        self.object("GET", object, false, Expected::Body(object.content))
    }

    fn store(&self, client: &Client, objects: &[Object]) -> Result<()> {
        self.each(client, objects.iter().map(|object| self.put(object)))
    }

    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()> {
        let delete = |object| self.object("DELETE", object, false, Expected::Success);
        self.each(client, objects.iter().map(delete))
    }
}

impl Receives for Coffer {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn put(&self, object: &Object) -> Request {
        self.object("PUT", object, true, Expected::Success)
    }

    fn check(&self, client: &Client, objects: &[Object]) -> Result<()> {
        let get = |object: &Object| {
            self.object("GET", object, false, Expected::WholeBody(object.content))
        };
        self.each(client, objects.iter().map(get))
    }

    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()> {
        Serves::discard(self, client, objects)
    }
}
