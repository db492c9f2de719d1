//! Receiving what a ticket is good for.

use std::io;

use coffer_vault::{Arrival, NotTaken};
use tokio::task::yield_now;

use crate::data_port::peer::Peer;

/// Why a transfer was not received.
#[derive(Debug, thiserror::Error)]
pub enum NotReceived {
    /// The connection broke, or the client was too slow: there is no one to answer.
    #[error(transparent)]
    Connection(#[from] io::Error),
    /// What came was not taken.
    #[error(transparent)]
    NotTaken(#[from] NotTaken),
}

/// Receives all bytes of a transfer, of which some have `come` with the head, and makes them
/// durable.
///
/// # Errors
/// [`NotReceived`]; nothing is left of them.
pub async fn receive(
    peer: &mut Peer<'_>,
    mut arrival: Arrival,
    mut come: &[u8],
) -> Result<(), NotReceived> {
    let over = arrival.over();
    let work = async {
        let mut socket = None;
        while arrival.missing_bytes() > 0 {
            if come.is_empty()
                && arrival.may_be_moved()
                && let Some(socket) = socket.get_or_insert_with(|| peer.bare_socket())
            {
                if !peer.has_sent().await? {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                peer.moved(arrival.move_from(socket).await?);
                // One client with much does not keep the others waiting.
                yield_now().await;
                continue;
            }
            let room = arrival.room();
            let count = if come.is_empty() {
                peer.read(room).await?
            } else {
                let count = come.len().min(room.len());
                let (now, later) = come.split_at(count);
                room[..count].copy_from_slice(now);
                come = later;
                count
            };
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            arrival.received(count).await?;
        }
        arrival.finish().await.map_err(NotReceived::from)
    };
    // What ends it goes first: a client that sends without a pause keeps it from being polled.
    tokio::select! {
        biased;
        () = over => Err(NotTaken::Over.into()),
        received = work => received,
    }
}
