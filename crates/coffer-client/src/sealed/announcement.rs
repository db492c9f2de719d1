//! What a server says to an object, or a part of one, that was announced.

use std::borrow::Cow;

use coffer_seal::{Context, SecretKey, sealed_bytes};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::sealed::SEALED;
use crate::sealed::answers::{check_version, context, data_port, key, ticket, wrong};
use crate::sealed::data_port::DataPort;
use crate::sealed::error::SealedError;

/// The way that announced bytes are to go.
pub enum Announced {
    /// In a usual request, over TLS.
    ByTls,
    /// To the data port.
    Sealed(Announcement),
}

/// Some bytes that a data port takes, once, sealed.
///
/// It is used up by sending: nothing is ever sealed twice under one key.
pub struct Announcement {
    pub(super) data_port: DataPort,
    pub(super) ticket: Zeroizing<String>,
    pub(super) key: SecretKey,
    pub(super) context: Context,
    pub(super) plain_bytes: u64,
    pub(super) sealed_bytes: u64,
}

#[derive(Deserialize)]
struct AnnouncedJson<'a> {
    version: u32,
    #[serde(borrow)]
    transfer: Cow<'a, str>,
}

#[derive(Deserialize)]
struct SealedJson<'a> {
    #[serde(borrow)]
    ticket: Cow<'a, str>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    port: Option<u16>,
    #[serde(default)]
    tls: bool,
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    context: Cow<'a, str>,
    bytes: u64,
}

impl Announced {
    /// Reads the body of the answer to an announcement of so much plaintext, asked of `host` (an
    /// address of IPv6 without brackets).
    ///
    /// # Errors
    /// [`SealedError::Answer`].
    pub fn read(body: &[u8], plain_bytes: u64, host: &str) -> Result<Self, SealedError> {
        let unreadable = |_| wrong("cannot be read");
        let way: AnnouncedJson<'_> = serde_json::from_slice(body).map_err(unreadable)?;
        check_version(way.version)?;
        match &*way.transfer {
            "tls" => return Ok(Self::ByTls),
            SEALED => {}
            _ => return Err(wrong("names no way")),
        }
        let said: SealedJson<'_> = serde_json::from_slice(body).map_err(unreadable)?;
        if sealed_bytes(plain_bytes) != Some(said.bytes) {
            return Err(wrong("is about another length"));
        }
        let ticket = ticket(&said.ticket)?;
        Ok(Self::Sealed(Announcement {
            data_port: data_port(said.url.as_deref(), (said.port, said.tls), host, &ticket)?,
            ticket,
            key: key(&said.key)?,
            context: context(&said.context)?,
            plain_bytes,
            sealed_bytes: said.bytes,
        }))
    }
}
