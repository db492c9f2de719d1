//! Whose turn it is to write a copy: each start of a writer takes the next epoch by a head of its
//! own, and a standby that is promoted ends the turn of the server that it followed.

use std::sync::Arc;

use super::{CopyWriter, Last, LogEnd, Term};
use crate::error::{ReplicaError, Result};
use crate::find::fold::State;
use crate::head::{Covers, Head, KnownHead};
use crate::limits::TURNS_TRIED;
use crate::names::{self, CopyId};
use crate::store::Copy;

/// Whose turn it is to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// That of the server whose copy it is.
    Same,
    /// That of the next gateway of an engine, whose log it is from then on.
    Engine,
    /// That of a standby, which ends the server's, under the name that it has for that.
    Promoted(CopyId),
}

impl Turn {
    /// Refuses a log whose writer is another by now.
    fn check(self, newest: &State) -> Result<()> {
        if let Self::Promoted(name) = self
            && newest.base.writer == name.to_string()
        {
            return Ok(());
        }
        newest.base.refuse_promoted()?;
        match (self, newest.records.first()) {
            (Self::Engine | Self::Promoted(_), _) => Ok(()),
            // Of a version that marked no heads.
            (_, Some(record)) => Err(ReplicaError::OfEngine {
                number: record.place.number,
            }),
            (_, None) => newest.base.refuse_engine(),
        }
    }

    /// Whether it is tried again behind what another wrote meanwhile: a record of who wrote the log
    /// before, and of one that a standby ends, any head as well. Whether that is of another
    /// promotion, it is looked then.
    async fn goes_on_behind(self, copy: &Copy, number: u64) -> Result<bool> {
        match self {
            Self::Promoted(_) => Ok(true),
            Self::Same | Self::Engine => Ok(copy.entry(number).await?.head().is_err()),
        }
    }
}

impl CopyWriter {
    /// Goes on with a copy, of which `known` was written last.
    ///
    /// # Errors
    /// [`ReplicaError::RolledBack`], [`ReplicaError::Altered`], [`ReplicaError::NoCopy`],
    /// [`ReplicaError::Promoted`], [`ReplicaError::OfEngine`].
    pub async fn resume(copy: Copy, known: Option<&KnownHead>) -> Result<Self> {
        copy.check_record().await?;
        Self::take_over(copy, known, Turn::Same).await
    }

    /// Goes on with the log of an engine, as the next of its gateways. Where it was the copy of a
    /// server until now, that server is fenced off.
    ///
    /// # Errors
    /// As [`CopyWriter::resume`].
    pub async fn resume_engine(copy: Copy, known: Option<&KnownHead>) -> Result<Self> {
        copy.check_record().await?;
        Self::take_over(copy, known, Turn::Engine).await
    }

    /// Fences off the server that writes a copy, by a head that takes the next epoch and says so.
    /// Asked for again under the same name, it takes yet another: what the copy holds stays. Of two
    /// standbys one is promoted.
    ///
    /// # Errors
    /// As [`CopyWriter::resume`]; [`ReplicaError::Promoted`] where another was.
    pub async fn promote(copy: Copy, known: &KnownHead, name: CopyId) -> Result<Self> {
        copy.check_record().await?;
        Self::take_over(copy, Some(known), Turn::Promoted(name)).await
    }

    /// Takes the next epoch, by a head of its own. A late record of who wrote the log before may be
    /// faster, or a head of the server that a standby ends. Then that is taken over, too.
    pub(super) async fn take_over(
        copy: Copy,
        known: Option<&KnownHead>,
        turn: Turn,
    ) -> Result<Self> {
        let mut tried = 0;
        loop {
            let newest = copy.newest_state().await?;
            check_known(newest.as_ref().map(|newest| &newest.known), known)?;
            if let Some(newest) = &newest {
                turn.check(newest)?;
            }
            let mut writer = Self::behind(copy.clone(), newest, turn);
            tried += 1;
            match writer.commit(writer.head.clone()).await {
                Err(ReplicaError::Fenced { number })
                    if tried < TURNS_TRIED && turn.goes_on_behind(&copy, number).await? => {}
                done => return done.map(|()| writer),
            }
        }
    }

    /// The writer that goes on with a log, in the next epoch. What it says of chains is what the
    /// newest head says: records behind that stay behind it.
    fn behind(copy: Copy, newest: Option<State>, turn: Turn) -> Self {
        let mut head = Head::default();
        let mut last = Last {
            known: KnownHead {
                number: 0,
                sha256: String::new(),
            },
            as_of_ms: 0,
            head: 0,
        };
        let mut behind = Vec::new();
        if let Some(newest) = newest {
            last = Last {
                known: newest.known,
                as_of_ms: newest.head.as_of_ms,
                head: newest.base.number,
            };
            head = Arc::unwrap_or_clone(newest.base);
            behind = newest.records;
            if !behind.is_empty() {
                let (number, files) = (head.covered(), 0);
                head.covers.get_or_insert(Covers { number, files });
            }
            head.epoch = newest.head.epoch;
        }
        head.epoch += 1;
        head.writer = CopyId::random().to_string();
        if let Turn::Promoted(name) = turn {
            head.writer = name.to_string();
            head.promotions += 1;
        }
        head.is_of_engine |= turn == Turn::Engine;
        let term = Term {
            epoch: head.epoch,
            writer: head.writer.clone(),
            promotions: head.promotions,
            is_of_engine: head.is_of_engine,
        };
        Self {
            copy,
            head,
            end: LogEnd::behind(last, term),
            next: 1,
            behind,
        }
    }

    /// Whether no other writes the copy, as far as the store tells now.
    ///
    /// # Errors
    /// [`ReplicaError::Promoted`], [`ReplicaError::OfEngine`], [`ReplicaError::Fenced`]; of the
    /// store.
    pub async fn check_alone(&self) -> Result<()> {
        let Some(newest) = self.copy.newest_entry().await? else {
            return Ok(());
        };
        if let Ok(head) = newest.head() {
            head.refuse_promoted()?;
            if !self.head.is_of_engine {
                head.refuse_engine()?;
            }
        }
        // One that is being created by this very writer is known when its turn is over.
        let _turn = self.end.turn().await;
        if newest.number() > self.known().number && newest.writer() != self.head.writer {
            return Err(ReplicaError::Fenced {
                number: newest.number(),
            });
        }
        Ok(())
    }

    /// What it means that another wrote this head.
    pub(super) async fn fenced_by(&self, number: u64) -> ReplicaError {
        match self.copy.entry(number).await {
            Ok(entry) => self.end.term.ended_by(&entry),
            Err(_) => ReplicaError::Fenced { number },
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
