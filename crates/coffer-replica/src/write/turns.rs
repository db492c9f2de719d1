//! Whose turn it is to write a copy: each start of a writer takes the next epoch by a head of its
//! own, and a standby that is promoted ends the turn of the server that it followed.

use super::CopyWriter;
use crate::error::{ReplicaError, Result};
use crate::head::{Head, KnownHead};
use crate::names::{self, CopyId};
use crate::store::Copy;

/// Whose turn it is to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// That of the server whose copy it is.
    Same,
    /// That of a standby, which ends the server's.
    Promoted,
}

impl CopyWriter {
    /// Goes on with a copy, of which `known` was written last.
    ///
    /// # Errors
    /// [`ReplicaError::RolledBack`], [`ReplicaError::Altered`], [`ReplicaError::NoCopy`],
    /// [`ReplicaError::Promoted`].
    pub async fn resume(copy: Copy, known: Option<&KnownHead>) -> Result<Self> {
        copy.check_record().await?;
        Self::take_over(copy, known, Turn::Same).await
    }

    /// Fences off the server that writes a copy, by a head that takes the next epoch and says so.
    /// Asked for again, it takes yet another: what the copy holds stays.
    ///
    /// # Errors
    /// As [`CopyWriter::resume`].
    pub async fn promote(copy: Copy, known: &KnownHead) -> Result<Self> {
        copy.check_record().await?;
        Self::take_over(copy, Some(known), Turn::Promoted).await
    }

    /// Takes the next epoch, by a head of its own.
    pub(super) async fn take_over(
        copy: Copy,
        known: Option<&KnownHead>,
        turn: Turn,
    ) -> Result<Self> {
        let newest = copy.newest_head().await?;
        check_known(newest.as_ref().map(|(_, newest)| newest), known)?;
        if let (Turn::Same, Some((head, _))) = (turn, &newest) {
            head.refuse_promoted()?;
        }
        let (head, known) = newest.unwrap_or((
            Head::default(),
            KnownHead {
                number: 0,
                sha256: String::new(),
            },
        ));
        let mut writer = Self {
            head: Head {
                epoch: head.epoch + 1,
                writer: CopyId::random().to_string(),
                promotions: head.promotions + u32::from(turn == Turn::Promoted),
                ..head
            },
            copy,
            known,
            next: 1,
        };
        writer.commit(writer.head.clone()).await?;
        Ok(writer)
    }

    /// Whether no other writes the copy, as far as the store tells now.
    ///
    /// # Errors
    /// [`ReplicaError::Promoted`], [`ReplicaError::Fenced`]; of the store.
    pub async fn check_alone(&self) -> Result<()> {
        let Some((newest, _)) = self.copy.newest_head().await? else {
            return Ok(());
        };
        newest.refuse_promoted()?;
        match newest.number {
            number if number > self.known.number => Err(ReplicaError::Fenced { number }),
            _ => Ok(()),
        }
    }

    /// What it means that another wrote this head.
    pub(super) async fn fenced_by(&self, number: u64) -> ReplicaError {
        match self.copy.head(number).await {
            Ok((head, _)) if head.promotions > self.head.promotions => {
                ReplicaError::Promoted { number }
            }
            _ => ReplicaError::Fenced { number },
        }
    }
}

/// Whether the newest head is what it must be at least.
pub(crate) fn check_known(newest: Option<&KnownHead>, known: Option<&KnownHead>) -> Result<()> {
    let Some(known) = known else {
        return Ok(());
    };
    match newest {
        Some(newest) if newest.number > known.number || newest == known => Ok(()),
        Some(newest) if newest.number == known.number => Err(ReplicaError::Altered {
            object: names::head(newest.number).to_string(),
            problem: "its hash is not the one that is known",
        }),
        newest => Err(ReplicaError::RolledBack {
            found: newest.map_or(0, |newest| newest.number),
            known: known.number,
        }),
    }
}
