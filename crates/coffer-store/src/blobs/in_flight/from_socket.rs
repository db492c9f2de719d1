//! Bytes that come to a blob's file straight from a socket.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use crate::blobs::in_flight::pipe::move_bytes;
use crate::blobs::in_flight::{BlobFile, InFlight};
use crate::blobs::space_ahead;
use crate::blobs::write_stall;
use crate::error::{Result, StoreError};
use crate::limits::SPACE_AHEAD_BYTES;

impl BlobFile {
    /// Whether there is a file, or one on its way, that all bytes so far belong to.
    pub(crate) fn has_begun(&self) -> bool {
        self.flushed_bytes > 0
    }

    /// Moves what a socket has, `most_bytes` at most, behind what was written. Where writes wait,
    /// the thread that waits reads the socket, too: what it writes it has just looked at.
    pub(crate) async fn move_from(
        &mut self,
        socket: &Arc<OwnedFd>,
        most_bytes: u64,
    ) -> Result<usize> {
        let file = self.written().await?.ok_or(StoreError::Closed)?;
        // One that is not waited for can't go on: it is not known what was moved.
        self.file = None;
        let offset_bytes = self.flushed_bytes;
        // The next step begins where space is asked for.
        let step_bytes = SPACE_AHEAD_BYTES - offset_bytes % SPACE_AHEAD_BYTES;
        let most_bytes = step_bytes.min(most_bytes) as usize;
        let moved = if write_stall::are_likely() {
            let (in_flight, socket, file) = (self.in_flight.clone(), socket.clone(), file.clone());
            let work = move || in_flight.move_in(&socket, &file, offset_bytes, most_bytes);
            let handed_over = write_stall::hand_over(work);
            handed_over.await.map_err(|_| StoreError::Closed)?
        } else {
            let began = Instant::now();
            let moved = self
                .in_flight
                .move_in(socket, &file, offset_bytes, most_bytes);
            write_stall::note(began.elapsed());
            moved
        }?;
        self.file = Some(file);
        self.flushed_bytes += moved as u64;
        Ok(moved)
    }
}

impl InFlight {
    /// Moves bytes to where they belong. Blocks where the disk makes it wait.
    fn move_in(
        &self,
        socket: &OwnedFd,
        file: &File,
        offset_bytes: u64,
        most_bytes: usize,
    ) -> Result<usize> {
        self.make_room(file)?;
        space_ahead::take(file, offset_bytes);
        move_bytes(socket, file, offset_bytes, most_bytes)
            .map_err(|error| self.store.failed("write a blob", self.id, error))
    }
}
