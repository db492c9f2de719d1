//! What a copy's task tells of who else may serve, where the copy fences the server off.

use std::time::Instant;

use coffer_replica::{CopyWriter, ReplicaError};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Round;
use crate::blocking::blocking;
use crate::copies::CopyState;
use crate::error::{BackupError, CopyError, Result, VaultError};
use crate::fence::FenceState;
use crate::limits::FENCE_NOTED_EVERY;
use crate::system::FenceNote;

/// What `replica status` tells of a server that could not note that it is fenced off.
const NOT_NOTED: &str = "That this server is fenced off could not be noted in its data folder, and \
                         is tried again each second: until it is, a start without --fenced-by \
                         takes writes";

impl Round {
    /// Whether this copy fences the server off.
    pub(in crate::replica) fn fences(&self) -> Result<bool> {
        Ok(self.inner()?.gate.is_fenced_by(self.name()))
    }

    /// The copy, asked at that time, said that none serves in this one's place.
    pub(in crate::replica) fn is_alone(&self, at: Instant) -> Result<()> {
        self.inner()?.gate.alone(self.name(), at);
        Ok(())
    }

    /// Looks whether another writes the copy by now, or serves in this one's place: where nothing
    /// changes, nothing is put that would tell. What can't be read is no sign of one, and the log
    /// of an engine has its lease.
    pub(in crate::replica) async fn look_for_another(&self, writer: &CopyWriter) -> Result<()> {
        if self.inner()?.gate.is_of_engine() {
            return Ok(());
        }
        match writer.check_alone().await.map_err(VaultError::from) {
            Err(error) if is_of_another(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Tells how it went, and the log whether changes are made.
    pub(in crate::replica) fn tell_gate(&self, done: &Result<()>) {
        let Ok(inner) = self.inner() else {
            return;
        };
        let copy = self.name();
        if let Err(error) = done {
            let why = error.to_string();
            if is_of_another(error) {
                if let Some(copy) = &self.synchronous {
                    copy.end_right();
                }
                inner.gate.ended(copy, why);
            } else {
                inner.gate.not_reached(copy, why);
            }
        }
        match inner.gate.news(copy) {
            None => {}
            Some(FenceState::Alone) => tracing::info!(
                copy,
                "the copy by which this server is fenced was reached, and none serves in its \
                 place: changes are made"
            ),
            Some(FenceState::NotReached) => tracing::warn!(
                copy,
                "this server is fenced off and changes nothing until that copy is reached: whether \
                 another serves in its place is not known"
            ),
            Some(FenceState::Ended) => tracing::error!(
                copy,
                "this server is fenced off: another serves in its place, so it changes nothing any \
                 more. Send clients to that one, and stop this one; when nothing in its folder is \
                 missed, make it a standby of that one"
            ),
        }
    }

    /// Has later starts know that another serves in this server's place, if that is known: until it
    /// is noted or the server stops, for the folder may be full for a while.
    async fn note_fence(&self, stop: &CancellationToken, given_up: &VaultError) {
        let mut is_told = false;
        while let Err(error) = self.try_note_fence().await {
            let is_last = stop.is_cancelled();
            if !is_told || is_last {
                tracing::error!(
                    copy = self.name(),
                    %error,
                    "that this server is fenced off could not be noted: a start without \
                     --fenced-by would change what is there. It is tried again each second until \
                     the stop"
                );
                let problem = format!("{given_up}. {NOT_NOTED}: {error}");
                self.progress.failed(CopyState::Stopped, problem);
                is_told = true;
            }
            if is_last {
                return;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(FENCE_NOTED_EVERY) => {}
            }
        }
        if is_told {
            self.progress
                .failed(CopyState::Stopped, given_up.to_string());
        }
    }

    async fn try_note_fence(&self) -> Result<()> {
        let Ok(inner) = self.inner() else {
            return Ok(());
        };
        let Some(why) = inner.gate.ended_by(self.name()) else {
            return Ok(());
        };
        let (id, copy) = (self.entry.id, self.name().to_owned());
        blocking(move || {
            let in_copies = inner.copies.registry.note_fenced_off(id, why.clone());
            let note = FenceNote { copy, why };
            // Either is found by a start.
            let noted = inner.system.note_fence(&note);
            noted.or(in_copies)?;
            inner.gate.is_noted(&note.copy);
            tracing::error!(
                copy = note.copy,
                "it is noted that this server is fenced off: nor does it change anything after \
                 another start"
            );
            Ok(())
        })
        .await
    }

    /// The copy is asked no more, whatever becomes of it.
    pub(in crate::replica) async fn end_fence(
        &self,
        stop: &CancellationToken,
        given_up: &VaultError,
    ) {
        let fence = self.inner().ok().and_then(|inner| inner.gate.fence());
        let fence = fence.filter(|fence| fence.copy == self.name());
        if fence.is_some_and(|fence| fence.state == FenceState::Alone) {
            tracing::error!(
                copy = self.name(),
                "that copy fences this server, which changes nothing any more once --fenced-after \
                 has passed: see to the copy and start again, or start without --fenced-by"
            );
        }
        self.note_fence(stop, given_up).await;
    }
}

/// Whether it says that another server writes the copy, or serves in place of this one.
pub(crate) fn is_of_another(error: &VaultError) -> bool {
    let VaultError::Backup(BackupError::Copy(CopyError::Replica(error))) = error else {
        return false;
    };
    matches!(
        error,
        ReplicaError::Promoted { .. }
            | ReplicaError::OfEngine { .. }
            | ReplicaError::Fenced { .. }
            | ReplicaError::FencedByKeystore { .. }
    )
}
