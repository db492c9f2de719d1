//! A version of which the ledger knows nothing: whether it is at the target all the same, and
//! whether it may come where others stored something.

use std::sync::Arc;

use super::{Outcome, crc_of};
use crate::migrate::Migration;
use crate::migrate::compare::{Same, same_time};
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::identity;
use crate::migrate::place::Place;
use crate::migrate::plan::{Both, Matched};
use crate::migrate::report::Proof;
use crate::migrate::transfer::second;
use crate::s3::ListedVersion;

/// What was found of a version at the target.
pub(super) enum Found {
    /// It is there.
    There(Outcome),
    /// It is not, and in what one of its length differs, if there is one.
    Other(Option<String>),
}

/// What at the target may be a version of the source, by what lists tell. What the ledger knows as
/// this migration's own came of another one; of a file that was touched, the newest may be it.
fn candidates(place: &Place, both: &Both, index: usize, matched: &Matched) -> Vec<usize> {
    let of = &both.from[index];
    let behind = { matched.of[..index].iter() }.rev().find_map(|at| *at);
    let may_be = |at: &usize| {
        let there = &both.there[*at];
        let is_newest_of_file = place.folder.is_some() && at + 1 == both.there.len();
        !matched.used[*at]
            && there.is_marker == of.is_marker
            && there.object.bytes == of.object.bytes
            && (is_newest_of_file || !place.ledger.is_ours(&both.key, there))
    };
    (behind.map_or(0, |at| at + 1)..both.there.len())
        .filter(may_be)
        .collect()
}

impl Migration {
    /// Looks among what is there, and of which the ledger knows nothing, for a version of the
    /// source: of a run whose ledger is lost, or that ended before its last line. It is this
    /// migration's own only if the ledger says that it was sent: another may have stored the same.
    ///
    /// Of a file that was touched in any way, the newest at the target may have the content still.
    pub(super) async fn found(
        &self,
        place: &Arc<Place>,
        both: &Both,
        index: usize,
        matched: &mut Matched,
    ) -> Result<Found, MigrateError> {
        let of = &both.from[index];
        let mut differs = None;
        for at in candidates(place, both, index, matched) {
            let there = &both.there[at];
            let is_ours = place.ledger.is_ours(&both.key, there);
            let (proof, checksum) = if of.is_marker {
                (Proof::Marker, None)
            } else {
                match self.compared(place, &both.key, of, (there, is_ours)).await {
                    Ok(same) => (same.proof, Some(same.checksum)),
                    Err(MigrateError::Differs { what }) => {
                        differs = Some(what);
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            };
            (matched.of[index], matched.used[at]) = (Some(at), true);
            let (id, etag) = (&there.version_id, &there.object.etag);
            let (crc, target) = (crc_of(checksum.as_ref()), identity(Some(id), etag));
            if place.ledger.was_sent(&both.key, of) {
                // Nothing that is newer than what is there now was sent before.
                let by = second(there.object.modified_at()).filter(|_| id == "null");
                place.ledger.arrived(&both.key, of, (&target, by), crc)?;
            } else {
                place.ledger.same(&both.key, of, &target, crc)?;
            }
            return Ok(Found::There(Outcome::there(there, proof, checksum)));
        }
        Ok(Found::Other(differs))
    }

    /// Compares a version with one at the target, with all that they are beside their bytes; of a
    /// file that this migration has stored, that is its time.
    async fn compared(
        &self,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        (there, is_ours): (&ListedVersion, bool),
    ) -> Result<Same, MigrateError> {
        let (same, head) = self.same(place, key, of, there).await?;
        self.same_attributes(place, of, there, &head).await?;
        if is_ours {
            same_time(of, &head)?;
        }
        Ok(same)
    }

    /// What a run would do with a version. It would compare one of its length, which may be read
    /// for that: it is taken for the same, and told that it was not looked at.
    pub(super) fn planned(
        &self,
        place: &Place,
        both: &Both,
        index: usize,
        matched: &mut Matched,
    ) -> Result<Outcome, MigrateError> {
        if let Some(at) = candidates(place, both, index, matched).first().copied() {
            (matched.of[index], matched.used[at]) = (Some(at), true);
            if both.there[at].is_marker {
                return Ok(Outcome::there(&both.there[at], Proof::Marker, None));
            }
            place.count(|tally| tally.uncompared += 1);
        } else {
            self.may_come(place, both, index, matched, None)?;
            if !place.keeps_versions() {
                // What is there would be replaced.
                matched.used.fill(true);
            }
        }
        Ok(Outcome {
            outcome: "would-move",
            target_version: None,
            checksum: None,
            proof: None,
        })
    }

    /// Whether a version that is not at the target may be put there.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn may_come(
        &self,
        place: &Place,
        both: &Both,
        index: usize,
        matched: &Matched,
        differs: Option<String>,
    ) -> Result<(), MigrateError> {
        let is_last = index + 1 == both.from.len();
        if !place.keeps_versions() && (both.from[index].is_marker || !is_last) {
            return Err(MigrateError::NoVersions);
        }
        if matched.has_newer(index) {
            return Err(MigrateError::Late);
        }
        let is_foreign = |(there, used): (&ListedVersion, &bool)| {
            !used && !place.ledger.is_ours(&both.key, there)
        };
        if !self.options.overwrite && both.there.iter().zip(&matched.used).any(is_foreign) {
            let how = differs.map(|what| format!(", and is other: {what}"));
            let how = how.unwrap_or_default();
            return Err(MigrateError::Occupied { how });
        }
        Ok(())
    }
}
