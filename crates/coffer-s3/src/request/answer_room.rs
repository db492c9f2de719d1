//! The room of an answer among all answers: taken before what it tells is done or read, where its
//! length can be foretold, and held until its last byte has been sent.

use std::sync::Arc;

use bytes::Bytes;
use s3s::{Body, HttpResponse, S3Error, S3Result, s3_error};

use crate::limits::ANSWER_FREE_BYTES;
use crate::request::memory_budget::Reservation;

/// Bytes of an answer with the room that they take. Connections let go of a body once they have
/// its bytes, which may be long before these are sent: so the room goes with the bytes.
struct Held {
    bytes: Bytes,
    _room: Arc<Reservation>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Takes room for an answer as it was written, where it is in memory whole.
///
/// # Errors
/// `SlowDown`, when the others take up all the room.
pub(crate) fn hold(response: &mut HttpResponse, room: &Arc<Reservation>) -> S3Result {
    let bytes = response.body().bytes().unwrap_or_default();
    room.set(bytes.len()).map_err(|_| no_room())?;
    if bytes.len() > ANSWER_FREE_BYTES {
        let _room = room.clone();
        *response.body_mut() = Body::from(Bytes::from_owner(Held { bytes, _room }));
    }
    Ok(())
}

/// The refusal of what is answered at greater length than there is room for.
pub(crate) fn no_room() -> S3Error {
    s3_error!(
        SlowDown,
        "The server holds as many large answers as it may. Please try again."
    )
}

/// Bytes that a text takes in an answer, at most: XML writes some bytes as six, and encoding for a
/// URL writes those that are no ASCII as three.
pub(crate) fn written_bytes(text: &str) -> usize {
    let written = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => 1,
        0x80.. => 3,
        _ => 6,
    };
    text.bytes().map(written).sum()
}
