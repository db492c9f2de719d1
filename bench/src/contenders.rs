//! The servers, each with its best documented settings.

pub mod coffer;

pub mod bucket;

pub mod nginx;
pub mod receiver;

pub mod plain_receiver;

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::error::Result;
use crate::load_client::connection::Request;
use crate::load_client::content::Content;
use crate::load_client::load::{Client, Connections};
use crate::machine::server_process::ServerProcess;

/// A running server, and how one reaches it.
pub struct Endpoint {
    /// As it stands in the table.
    pub name: &'static str,
    /// Its process.
    pub process: ServerProcess,
    /// Where it serves.
    pub address: SocketAddr,
    /// For a client that trusts it.
    pub tls: Arc<ClientConfig>,
}

impl Endpoint {
    /// Opens connections to it.
    pub fn connect(&self, client: &Client, count: usize) -> Result<Connections> {
        client.connect(self.address, &self.tls, count)
    }
}

/// An object of a benchmark.
#[derive(Debug, Clone)]
pub struct Object {
    /// Unlike any other's of the run; needs no encoding in a path.
    pub name: String,
    /// What it holds.
    pub content: Content,
}

impl Object {
    /// Objects `TAG-0`, `TAG-1` and so on, all of one length.
    pub fn series(tag: &str, count: usize, length_bytes: u64) -> Vec<Self> {
        (0..count)
            .map(|number| Self {
                name: format!("{tag}-{number}"),
                content: Content::new(length_bytes, number as u64),
            })
            .collect()
    }

    /// The same, so that their names are in the order of a list.
    pub fn sorted(tag: &str, count: usize, length_bytes: u64) -> Vec<Self> {
        let mut objects = Self::series(tag, count, length_bytes);
        for (number, object) in objects.iter_mut().enumerate() {
            object.name = format!("{tag}-{number:08}");
        }
        objects
    }
}

/// A server that objects are read from.
pub trait Serves {
    /// Where.
    fn endpoint(&self) -> &Endpoint;
    /// The request for an object.
    fn get(&self, object: &Object) -> Request;
    /// Puts objects where the server reads them, anew and durably.
    fn store(&self, client: &Client, objects: &[Object]) -> Result<()>;
    /// Takes them away.
    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()>;
}

/// A server that objects are sent to.
pub trait Receives {
    /// Where.
    fn endpoint(&self) -> &Endpoint;
    /// The request that stores an object. Its answer says that the object is durable.
    fn put(&self, object: &Object) -> Request;
    /// Compares what was stored, every byte.
    fn check(&self, client: &Client, objects: &[Object]) -> Result<()>;
    /// Takes objects away.
    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()>;
}
