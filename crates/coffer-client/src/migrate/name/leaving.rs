//! What is at the target and came of no version that the source has now. It is deleted when both
//! lists have come to their ends in order: a name that comes late looks as if it were gone.

use std::sync::Arc;

use tokio::task::{JoinError, JoinSet, block_in_place};

use crate::migrate::error::{MigrateError, Reach};
use crate::migrate::place::{Place, Versioning};
use crate::migrate::plan::Both;
use crate::migrate::report::Line;
use crate::migrate::{Migration, Mode};
use crate::s3::{ListedVersion, ObjectName};

/// A version that was to be deleted, its name at the source, and what became of that.
type Parting = (String, ListedVersion, Result<bool, MigrateError>);

impl Migration {
    /// A version at the target that came of none that the source has now.
    pub(super) fn left_over(
        &self,
        place: &Place,
        both: &Both,
        there: &ListedVersion,
        deletes: bool,
    ) {
        let is_ours = place.ledger.is_ours(&both.key, there);
        let is_name_gone = both.from.is_empty();
        // Without versions there, what it was before is no less at the source than it ever was.
        let is_gone = is_ours && !both.is_hidden && (is_name_gone || place.lists_versions());
        let is_to_go = is_gone && deletes && self.options.delete;
        if is_to_go {
            if let Err(error) = place.ledger.leaves(&both.key, there, is_name_gone) {
                self.parted(place, (&both.key, there), Err(error));
            }
            return;
        }
        let outcome = match (is_ours, both.is_hidden) {
            (true, false) if is_gone => "gone",
            (true, false) => "older",
            (true, true) => "unread",
            (false, _) => "only-at-target",
        };
        self.note_left(place, (&both.key, there), outcome, None);
    }

    /// Deletes what was found to be gone, if both lists have come in order, or tells what would be.
    ///
    /// # Errors
    /// What holds for all that is left, or that what was noted can't be read.
    pub(in crate::migrate) async fn leave(
        self: &Arc<Self>,
        place: &Arc<Place>,
        is_in_order: bool,
    ) -> Result<(), MigrateError> {
        let mut tasks: JoinSet<Parting> = JoinSet::new();
        let mut leaving = place.ledger.leaving()?;
        let mut outcome = Ok(());
        while let Some(leaver) = block_in_place(|| leaving.next()) {
            let (key, there, is_name_gone) = match leaver {
                Ok(leaver) => leaver,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            while tasks.len() >= self.options.jobs && outcome.is_ok() {
                outcome = self.parting(place, tasks.join_next().await).await;
            }
            if !is_in_order || outcome.is_err() {
                self.note_left(place, (&key, &there), "gone", None);
                continue;
            }
            let (migration, place) = (Arc::clone(self), Arc::clone(place));
            tasks.spawn(async move {
                let what = (key.as_str(), &there);
                let deleted = migration.left(&place, what, is_name_gone).await;
                (key, there, deleted)
            });
        }
        while outcome.is_ok() && !tasks.is_empty() {
            outcome = self.parting(place, tasks.join_next().await).await;
        }
        tasks.shutdown().await;
        outcome
    }

    /// Notes what became of a version that was to be deleted.
    ///
    /// # Errors
    /// What holds for all that is left.
    async fn parting(
        self: &Arc<Self>,
        place: &Place,
        parting: Option<Result<Parting, JoinError>>,
    ) -> Result<(), MigrateError> {
        let Some(Ok((key, there, deleted))) = parting else {
            return Ok(());
        };
        if let Err(error) = &deleted
            && error.reach() != Reach::One
            && let Some(ended) = self.of_all(place).await
        {
            self.note_left(place, (&key, &there), "gone", None);
            return Err(ended);
        }
        self.parted(place, (&key, &there), deleted);
        Ok(())
    }

    /// Deletes a version, unless the source has what it came of after all, or has something of its
    /// name, of which it had nothing when it was listed. False where another has put something else
    /// in its place. Of a plan, nothing is deleted.
    async fn left(
        &self,
        place: &Place,
        (key, there): (&str, &ListedVersion),
        is_name_gone: bool,
    ) -> Result<bool, MigrateError> {
        if place.has_still(key, there, is_name_gone).await? {
            return Err(MigrateError::Again);
        }
        if self.options.mode == Mode::Plan {
            return Ok(true);
        }
        self.delete_at_target(place, there).await
    }

    /// Notes what became of a version that was to be deleted.
    fn parted(
        &self,
        place: &Place,
        what: (&str, &ListedVersion),
        deleted: Result<bool, MigrateError>,
    ) {
        match deleted {
            Ok(true) if self.options.mode == Mode::Plan => {
                self.note_left(place, what, "would-delete", None);
            }
            Ok(true) => self.note_left(place, what, "deleted", None),
            // What another has put there by now is theirs.
            Ok(false) => self.note_left(place, what, "only-at-target", None),
            Err(error) => {
                place.count(|tally| tally.missing += 1);
                let name = format!("s3://{}/{} is gone at the source", place.to, what.0);
                self.missing(&name, &error);
                self.note_left(place, what, "gone", Some(error.to_string()));
            }
        }
    }

    fn note_left(
        &self,
        place: &Place,
        (key, there): (&str, &ListedVersion),
        outcome: &'static str,
        problem: Option<String>,
    ) {
        place.count(|tally| match outcome {
            "deleted" | "would-delete" => {
                (tally.gone, tally.deleted) = (tally.gone + 1, tally.deleted + 1)
            }
            "gone" => tally.gone += 1,
            "unread" => tally.unread += 1,
            "older" => tally.older += 1,
            _ => tally.others += 1,
        });
        self.report.line(&Line {
            outcome,
            bucket: &place.to,
            key,
            source_version: "",
            modified: &there.object.modified,
            bytes: there.object.bytes,
            is_marker: there.is_marker,
            target_version: Some(&there.version_id),
            checksum: None,
            proof: None,
            problem,
        });
    }

    /// False where another has put something else in its place.
    async fn delete_at_target(
        &self,
        place: &Place,
        there: &ListedVersion,
    ) -> Result<bool, MigrateError> {
        let mut name = ObjectName::new(&place.to, &there.object.key);
        // Without its id, a deletion would put a delete marker, or take another version.
        let has_id = there.version_id != "null";
        if has_id || place.versioning != Versioning::Never {
            name.version_id = Some(there.version_id.clone());
        }
        if has_id || place.versioning == Versioning::Enabled {
            self.target.delete_object(&name).await?;
            return Ok(true);
        }
        // Where no versions are kept any more, others replace the null version, also by a marker:
        // one is never of this migration, which puts them where versions are kept.
        if there.is_marker {
            return Ok(false);
        }
        self.delete_seen(&name, there).await
    }
}
