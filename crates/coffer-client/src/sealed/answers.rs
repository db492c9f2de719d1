//! What both answers over HTTPS have: where the data port is, and secrets in Base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_seal::SecretKey;
use coffer_seal::limits::KEY_BYTES;
use zeroize::Zeroizing;

use crate::limits::{TRANSFER_CONTEXT_BYTES, TRANSFER_TICKET_BYTES};
use crate::sealed::VERSION;
use crate::sealed::data_port::DataPort;
use crate::sealed::error::SealedError;

/// An answer that does not follow the protocol.
pub(super) fn wrong(problem: &'static str) -> SealedError {
    SealedError::Answer { problem }
}

pub(super) fn check_version(version: u32) -> Result<(), SealedError> {
    match version {
        VERSION => Ok(()),
        _ => Err(wrong("is of another version of the protocol")),
    }
}

/// A ticket: 43 characters of Base64 for URLs, without padding.
pub(super) fn ticket(text: &str) -> Result<Zeroizing<String>, SealedError> {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.len() != TRANSFER_TICKET_BYTES || !text.bytes().all(is_digit) {
        return Err(wrong("has no ticket"));
    }
    Ok(Zeroizing::new(text.to_owned()))
}

/// Where a ticket is good: at the URL of the answer, else at this port of the host that was asked,
/// which may speak TLS.
pub(super) fn data_port(
    url: Option<&str>,
    (port, speaks_tls): (Option<u16>, bool),
    host: &str,
    ticket: &str,
) -> Result<DataPort, SealedError> {
    match (url, port) {
        (Some(url), _) => DataPort::of_url(url).ok_or(wrong("names no data port")),
        (None, Some(port)) => Ok(DataPort::new(host, port, speaks_tls, ticket)),
        (None, None) => Err(wrong("names no data port")),
    }
}

/// A data key, which is nowhere but in its type afterwards.
pub(super) fn key(text: &str) -> Result<SecretKey, SealedError> {
    let key = Zeroizing::new(STANDARD.decode(text.as_bytes()).unwrap_or_default());
    SecretKey::try_filled(|out| {
        let key: &[u8; KEY_BYTES] = key.as_slice().try_into().map_err(|_| ())?;
        out.copy_from_slice(key);
        Ok(())
    })
    .map_err(|()| wrong("has no data key"))
}

/// A context, of any kind: that it is the right one, the commitment shows.
pub(super) fn context(text: &str) -> Result<coffer_seal::Context, SealedError> {
    let context = STANDARD.decode(text).ok();
    context
        .filter(|context| (1..=TRANSFER_CONTEXT_BYTES).contains(&context.len()))
        .map(coffer_seal::Context::raw)
        .ok_or(wrong("has no context"))
}
