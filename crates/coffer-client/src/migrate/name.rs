//! One name: its versions in order, and what is at the target that came of none of them.

mod finding;
mod leaving;

use std::sync::Arc;

use crate::migrate::error::{MigrateError, Reach};
use crate::migrate::ledger::identity;
use crate::migrate::place::Place;
use crate::migrate::plan::{Both, Matched};
use crate::migrate::report::{Line, Proof};
use crate::migrate::transfer::Seen;
use crate::migrate::{Migration, Mode};
use crate::mover::{Event, Moved};
use crate::s3::ListedVersion;
use crate::s3::checksum::{Algorithm, Checksum};

use self::finding::Found;

/// What became of a version.
struct Outcome {
    outcome: &'static str,
    target_version: Option<String>,
    checksum: Option<Checksum>,
    proof: Option<Proof>,
}

impl Outcome {
    fn there(there: &ListedVersion, proof: Proof, checksum: Option<Checksum>) -> Self {
        Self {
            outcome: "there",
            target_version: Some(there.version_id.clone()).filter(|id| id != "null"),
            checksum,
            proof: Some(proof),
        }
    }
}

/// What is done for a name, and how far it has come.
pub(super) struct Work {
    both: Both,
    matched: Matched,
    /// False where the source has nothing at all.
    deletes: bool,
    next: usize,
    is_held_up: bool,
    has_moved: bool,
}

/// A name with what its next version met, which may hold for others, too, and is not told yet.
pub(super) struct Held {
    work: Work,
    pub(super) error: MigrateError,
}

impl Work {
    pub(super) fn new(both: Both, matched: Matched, deletes: bool) -> Self {
        Self {
            both,
            matched,
            deletes,
            next: 0,
            is_held_up: false,
            has_moved: false,
        }
    }
}

impl Migration {
    /// Does what is to be done for a name: whether anything of it was moved.
    ///
    /// # Errors
    /// What may hold for more than the name; all else is told.
    pub(super) async fn name(
        self: &Arc<Self>,
        place: &Arc<Place>,
        mut work: Work,
    ) -> Result<bool, Box<Held>> {
        while let Some(of) = work.both.from.get(work.next) {
            place.count(|tally| {
                tally.markers += u64::from(of.is_marker);
                tally.versions += u64::from(!of.is_marker);
                tally.bytes += of.object.bytes;
            });
            let outcome = if work.is_held_up {
                Err(MigrateError::Waits)
            } else {
                self.version(place, &work.both, work.next, &mut work.matched)
                    .await
            };
            match outcome {
                Err(error) if error.reach() != Reach::One => {
                    return Err(Box::new(Held { work, error }));
                }
                outcome => self.pass(place, &mut work, outcome),
            }
        }
        for (there, used) in work.both.there.iter().zip(&work.matched.used) {
            if !used {
                // What did not come has nothing in its place yet.
                let deletes = work.deletes && !work.is_held_up;
                self.left_over(place, &work.both, there, deletes);
            }
        }
        Ok(work.has_moved)
    }

    /// Tells what a name met, which holds for it alone, and goes on with it.
    pub(super) async fn go_on(
        self: &Arc<Self>,
        place: &Arc<Place>,
        held: Held,
    ) -> Result<bool, Box<Held>> {
        let Held { mut work, error } = held;
        self.pass(place, &mut work, Err(error));
        self.name(place, work).await
    }

    /// Notes what became of the next version.
    fn pass(&self, place: &Place, work: &mut Work, outcome: Result<Outcome, MigrateError>) {
        // What is compared says nothing of what follows it.
        let did_not_come = |error: &MigrateError| !error.is_beside_content();
        let is_missing = outcome.as_ref().is_err_and(did_not_come);
        work.is_held_up |= is_missing && self.options.mode != Mode::Check;
        work.has_moved |= outcome.as_ref().is_ok_and(|done| done.outcome == "moved");
        let of = &work.both.from[work.next];
        self.note(place, &work.both.key, of, outcome);
        work.next += 1;
    }

    /// Sees to one version of the source.
    async fn version(
        self: &Arc<Self>,
        place: &Arc<Place>,
        both: &Both,
        index: usize,
        matched: &mut Matched,
    ) -> Result<Outcome, MigrateError> {
        let of = &both.from[index];
        if let Some(at) = matched.of[index] {
            let settled = self.settled(place, &both.key, of, &both.there[at]).await?;
            return in_its_place(matched, index, settled);
        }
        if self.options.mode == Mode::Plan {
            return self.planned(place, both, index, matched);
        }
        let differs = match self.found(place, both, index, matched).await? {
            Found::There(outcome) => return in_its_place(matched, index, outcome),
            Found::Other(differs) => differs,
        };
        if self.options.mode == Mode::Check {
            let other = differs.map(|what| MigrateError::Differs { what });
            return Err(other.unwrap_or(MigrateError::Absent));
        }
        self.may_come(place, both, index, matched, differs)?;
        let outcome = self.moved(place, &both.key, of, &mut matched.seen).await?;
        if !place.keeps_versions() {
            // What was there has been replaced.
            matched.used.fill(true);
        }
        Ok(outcome)
    }

    /// A version that the ledger says is there.
    async fn settled(
        &self,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        there: &ListedVersion,
    ) -> Result<Outcome, MigrateError> {
        if of.is_marker {
            return Ok(Outcome::there(there, Proof::Marker, None));
        }
        if self.options.mode == Mode::Check {
            let (same, head) = self.same(place, key, of, there).await?;
            self.same_attributes(place, of, there, &head).await?;
            return Ok(Outcome::there(there, same.proof, Some(same.checksum)));
        }
        if self.options.tags_and_locks {
            self.bring_late(place, key, of, there).await?;
        }
        let recorded = place.ledger.crc_of(key, of).map(|crc| Checksum {
            algorithm: Algorithm::Crc64Nvme,
            value: crc.to_be_bytes().to_vec(),
        });
        Ok(Outcome::there(there, Proof::Recorded, recorded))
    }

    /// Moves a version to where that was seen.
    async fn moved(
        self: &Arc<Self>,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        seen: &mut Seen,
    ) -> Result<Outcome, MigrateError> {
        if of.is_marker {
            let what = (&**place, key, of);
            let id = self.hide(what, &place.at_target(key), seen).await?;
            *seen = Seen::Nothing;
            let identity = identity(Some(&id), "");
            place.ledger.arrived(key, of, (&identity, None), None)?;
            return Ok(Outcome {
                outcome: "moved",
                target_version: Some(id),
                checksum: None,
                proof: Some(Proof::Marker),
            });
        }
        let bytes = of.object.bytes;
        self.tell(&Event::Found { files: 1, bytes });
        let landed = self.land(place, key, of, seen).await?;
        *seen = Seen::stored(&place.at_target(key), bytes, &landed.etag);
        let crc = crc_of(Some(&landed.checksum));
        let target = (landed.identity.as_str(), landed.by);
        place.ledger.arrived(key, of, target, crc)?;
        let name = place.at_target(key);
        self.tell(&Event::Done(&Moved {
            from: place.what(key, of),
            to: format!("s3://{}/{}", name.bucket, name.key),
            bytes,
            kept_bytes: 0,
            checksum: Some(landed.checksum.to_string()),
            verified: true,
            checked: None,
            stored: None,
            transfer: if self.target.endpoint().is_https() {
                "tls"
            } else {
                "http"
            },
            version_id: landed.version_id.clone(),
        }));
        Ok(Outcome {
            outcome: "moved",
            target_version: landed.version_id,
            checksum: Some(landed.checksum),
            proof: Some(landed.proof),
        })
    }

    /// Notes what became of a version.
    fn note(
        &self,
        place: &Place,
        key: &str,
        of: &ListedVersion,
        outcome: Result<Outcome, MigrateError>,
    ) {
        let bytes = of.object.bytes;
        let mut line = Line {
            outcome: "missing",
            bucket: &place.to,
            key,
            source_version: Some(of.version_id.as_str())
                .filter(|id| *id != "null")
                .unwrap_or_default(),
            modified: &of.object.modified,
            bytes,
            is_marker: of.is_marker,
            target_version: None,
            checksum: None,
            proof: None,
            problem: None,
        };
        match &outcome {
            Ok(done) => {
                line.outcome = done.outcome;
                line.target_version = done.target_version.as_deref();
                line.checksum = done.checksum.as_ref().map(ToString::to_string);
                line.proof = done.proof;
                let is_proven = done.proof.is_some() && !of.is_marker;
                let is_there = done.outcome == "there";
                place.count(|tally| {
                    tally.there += u64::from(is_there);
                    tally.moved += u64::from(!is_there);
                    tally.moved_bytes += if is_there { 0 } else { bytes };
                    tally.proven += u64::from(is_proven);
                    tally.proven_bytes += if is_proven { bytes } else { 0 };
                });
            }
            Err(error) => {
                line.problem = Some(error.to_string());
                place.count(|tally| tally.missing += 1);
                self.missing(&place.what(key, of), error);
            }
        }
        self.report.line(&line);
    }
}

/// What is there, if it is where it belongs among the versions of its name.
fn in_its_place(
    matched: &mut Matched,
    index: usize,
    there: Outcome,
) -> Result<Outcome, MigrateError> {
    if matched.is_behind(index) {
        return Err(MigrateError::OtherOrder);
    }
    Ok(there)
}

fn crc_of(checksum: Option<&Checksum>) -> Option<u64> {
    let checksum = checksum.filter(|it| it.algorithm == Algorithm::Crc64Nvme)?;
    checksum
        .value
        .clone()
        .try_into()
        .ok()
        .map(u64::from_be_bytes)
}
