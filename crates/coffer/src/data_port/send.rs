//! Sending what a ticket is good for.

use std::io;
use std::sync::Arc;

use coffer_vault::{SegmentFile, Sending};

use crate::data_port::peer::Peer;
use crate::data_port::records::FileRoom;
use crate::limits::SEND_WINDOW_BYTES;

/// Answers with all bytes of a transfer. An error ends the connection: the client has a head by
/// then that promises them all.
pub async fn send(peer: &mut Peer<'_>, mut sending: Sending, keeps_open: bool) -> io::Result<()> {
    let connection = if keeps_open {
        ""
    } else {
        "Connection: close\r\n"
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\
         Cache-Control: no-store\r\nContent-Length: {}\r\n{connection}\r\n",
        sending.sealed_bytes()
    );
    let (over, hung_up) = (sending.over(), peer.hung_up());
    let work = async {
        peer.send(head.as_bytes(), true).await?;
        let mut room = FileRoom::default();
        while let Some(file) = sending.next_segment().await.map_err(io::Error::other)? {
            send_segment(peer, &mut sending, Arc::new(file), &mut room).await?;
        }
        io::Result::Ok(())
    };
    // What ends it goes first: a client that takes all at once keeps the others from being polled.
    let sent = tokio::select! {
        biased;
        () = over => Err(io::ErrorKind::PermissionDenied.into()),
        sent = work => sent,
        () = hung_up => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    match sent {
        Ok(()) => sending.done(),
        Err(_) => peer.reset(),
    }
    sent
}

async fn send_segment(
    peer: &mut Peer<'_>,
    sending: &mut Sending,
    file: Arc<SegmentFile>,
    room: &mut FileRoom,
) -> io::Result<()> {
    let sealed = file.sealed();
    let mut at = sealed.start;
    while at < sealed.end {
        let window_end = sealed.end.min(at + SEND_WINDOW_BYTES);
        if !file.is_cached(at..window_end) {
            let (file, window) = (file.clone(), at..window_end);
            let fetched = tokio::task::spawn_blocking(move || file.fetch(window)).await;
            let fetched = fetched.map_err(io::Error::other)?;
            fetched.map_err(|error| {
                tracing::warn!(listener = "data", %error, "what is stored could not be sent");
                io::Error::other(error)
            })?;
        }
        while at < window_end {
            let sent = { peer.send_file(file.file(), at..window_end, room) }.await?;
            if sent == 0 {
                sending.damaged(&file.cut_off());
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            at += sent as u64;
            sending.sent(sent as u64);
        }
    }
    Ok(())
}
