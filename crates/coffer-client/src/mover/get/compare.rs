//! What came, compared with what the server tells of the object.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::task::{JoinSet, block_in_place};

use crate::limits::PART_HEADS_MAX;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::target::Target;
use crate::s3::checksum::{Algorithm, Checksum, Running};
use crate::s3::{Composite, ObjectHead, ObjectName, RunningComposite};

/// What was found, and what it was compared with.
pub(super) struct Compared {
    /// A checksum of what came.
    pub(super) found: String,
    pub(super) checked: Checked,
}

/// What an object's bytes were compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checked {
    /// A checksum of all of them.
    Whole,
    /// A checksum of the checksums of its parts.
    Parts,
    /// The seals of its chunks.
    Seals,
    /// Their number.
    Length,
}

impl Checked {
    /// For programs: a word that stays the same.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Whole => "checksum",
            Self::Parts => "part_checksums",
            Self::Seals => "seals",
            Self::Length => "length",
        }
    }

    pub(super) fn is_by_checksum(self) -> bool {
        matches!(self, Self::Whole | Self::Parts)
    }
}

/// What a server tells that can be compared with what comes.
pub(super) enum Told<'a> {
    Whole(&'a Checksum),
    /// Of parts of these lengths.
    Parts(&'a Composite, Vec<u64>),
    Nothing,
}

/// A checksum of what comes, of the kind that was told.
pub(super) enum Summing {
    Whole(Running),
    Parts(RunningComposite),
}

impl Told<'_> {
    pub(super) fn summing(&self) -> Summing {
        match self {
            Self::Whole(told) => Summing::Whole(Running::new(told.algorithm)),
            Self::Parts(told, parts) => {
                let parts = parts.iter().copied();
                Summing::Parts(RunningComposite::new(told.algorithm, parts))
            }
            Self::Nothing => Summing::Whole(Running::new(Algorithm::Crc64Nvme)),
        }
    }
}

impl Summing {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Whole(running) => running.update(bytes),
            Self::Parts(running) => running.update(bytes),
        }
    }

    /// Compares it.
    ///
    /// # Errors
    /// [`MoverError::Damaged`].
    pub(super) fn compared(
        self,
        told: &Told<'_>,
        was_all_sealed: bool,
    ) -> Result<Compared, MoverError> {
        let (found, expected, checked) = match (self, told) {
            (Self::Whole(running), Told::Whole(told)) => {
                (running.done().to_string(), told.to_string(), Checked::Whole)
            }
            (Self::Parts(running), Told::Parts(told, _)) => {
                let found = running.done();
                if told.is_likely() && found.to_string() != told.to_string() {
                    return Ok(unproven(&found, was_all_sealed));
                }
                (found.to_string(), told.to_string(), Checked::Parts)
            }
            (Self::Whole(running), _) => {
                return Ok(unproven(&running.done(), was_all_sealed));
            }
            (Self::Parts(_), _) => return Err(MoverError::Lost),
        };
        same(found, expected, checked)
    }
}

/// Compares a checksum with the one that was told.
///
/// # Errors
/// [`MoverError::Damaged`].
pub(super) fn same(
    found: String,
    expected: String,
    checked: Checked,
) -> Result<Compared, MoverError> {
    if found != expected {
        return Err(MoverError::Damaged { expected, found });
    }
    Ok(Compared { found, checked })
}

/// What came, where the server tells nothing to compare it with.
pub(super) fn unproven(found: &impl ToString, was_all_sealed: bool) -> Compared {
    Compared {
        found: found.to_string(),
        checked: if was_all_sealed {
            Checked::Seals
        } else {
            Checked::Length
        },
    }
}

impl Mover {
    /// What the server tells of an object. The lengths of parts are asked for where they matter.
    ///
    /// # Errors
    /// [`MoverError::S3`] where the server does not answer.
    pub(super) async fn told<'a>(
        &self,
        name: &ObjectName,
        head: &'a ObjectHead,
    ) -> Result<Told<'a>, MoverError> {
        if let Some(told) = &head.checksum {
            return Ok(Told::Whole(told));
        }
        let Some(told) = &head.composite else {
            return Ok(Told::Nothing);
        };
        let parts = self.part_bytes_of(name, head, told.part_count).await?;
        let parts = parts.filter(|parts| {
            let sum = parts
                .iter()
                .try_fold(0u64, |sum, part| sum.checked_add(*part));
            parts.len() == told.part_count as usize && sum == Some(head.bytes)
        });
        Ok(parts.map_or(Told::Nothing, |parts| Told::Parts(told, parts)))
    }

    /// How long an object's parts are: from a list, or by asking for each.
    async fn part_bytes_of(
        &self,
        name: &ObjectName,
        head: &ObjectHead,
        count: u32,
    ) -> Result<Option<Vec<u64>>, MoverError> {
        match self.client.part_bytes(name, &head.etag).await {
            Ok(Some(parts)) => return Ok(Some(parts)),
            Err(error) if error.is_passing() || error.is_of_key() => return Err(error.into()),
            // A server that has no such list, or does not give it to this access key.
            Ok(None) | Err(_) if count > PART_HEADS_MAX => return Ok(None),
            Ok(None) | Err(_) => {}
        }
        let mut parts = vec![0; count as usize];
        let mut asking = JoinSet::new();
        let mut next = 1..=count;
        loop {
            while asking.len() < self.options.jobs
                && let Some(number) = next.next()
            {
                let (client, name) = (Arc::clone(&self.client), name.clone());
                let etag = head.etag.clone();
                asking.spawn(async move { (number, client.head_part(&name, &etag, number).await) });
            }
            let Some(asked) = asking.join_next().await else {
                return Ok(Some(parts));
            };
            match asked.map_err(|_| MoverError::Lost)? {
                (number, Ok(Some(bytes))) => parts[number as usize - 1] = bytes,
                (_, Err(error)) if error.is_passing() || error.is_of_key() => {
                    return Err(error.into());
                }
                _ => return Ok(None),
            }
        }
    }

    /// Compares a file with what was told, where that is not a checksum that is known already.
    pub(super) fn compare_file(
        &self,
        target: &Target,
        bytes: u64,
        told: &Told<'_>,
    ) -> Result<Compared, MoverError> {
        let mut summing = told.summing();
        block_in_place(|| target.each(0..bytes, |piece| summing.update(piece)))?;
        summing.compared(told, false)
    }

    /// Says once that there was nothing to compare with.
    pub(super) fn tell_of_unproven(&self, name: &ObjectName, head: &ObjectHead, checked: Checked) {
        if checked != Checked::Length || self.told.unproven.swap(true, Relaxed) {
            return;
        }
        let why = match &head.composite {
            Some(told) if told.is_likely() => "tells no checksum, and its ETag is none",
            Some(_) => "tells no lengths of the parts that its checksum is of",
            None => "tells no checksum",
        };
        self.tell(&Event::Note(&format!(
            "of s3://{}/{} only the length was compared: the server {why} (told once)",
            name.bucket, name.key
        )));
    }
}
