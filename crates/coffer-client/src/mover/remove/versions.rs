//! Deleting versions and delete markers, until a list has none.

use std::collections::HashSet;
use std::sync::Arc;

use super::{hash_of, some_begins};
use crate::limits::{DELETE_COUNT_MAX, REMOVE_KEPT, REMOVE_ROUNDS};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::folders::Counts;
use crate::mover::location::Location;
use crate::s3::{Deleted, ListedVersion, ObjectName, Paging, S3Error, VersionsPage};

impl Mover {
    /// Deletes all versions and delete markers of objects whose names begin with that of a place;
    /// `removed` is told of each. They are listed again until a list has none but those that can't
    /// be deleted: others may come meanwhile, and some services cut lists off.
    ///
    /// # Errors
    /// When they can't be listed, none has such a name, or there are some after all that were
    /// listed were deleted again and again; all else is told and counted.
    pub async fn remove_versions(
        self: &Arc<Self>,
        from: &Location,
        removed: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let mut removal = Removal {
            mover: self,
            from,
            removed,
            counts: Counts::default(),
            kept: HashSet::new(),
        };
        let mut rounds = 0;
        let mut first_before = None;
        loop {
            let page = removal.list(None).await?;
            let has_none = page.versions.is_empty() && page.next.is_none();
            some_begins(from, rounds > 0 || !has_none)?;
            // A version that was deleted and is listed all the same would be for ever.
            let first = { page.versions.iter() }
                .map(mark)
                .find(|it| !removal.kept.contains(it));
            let is_still_there = first.is_some() && first == first_before;
            if rounds == REMOVE_ROUNDS || is_still_there {
                return Err(MoverError::VersionsStillListed {
                    prefix: from.key.clone(),
                    left: page.versions.len(),
                    has_more: page.next.is_some(),
                    rounds,
                });
            }
            let has_deleted = removal.round(page).await?;
            let is_told_of_all = removal.kept.len() < REMOVE_KEPT;
            if !has_deleted || !is_told_of_all {
                return Ok(removal.counts);
            }
            first_before = first;
            rounds += 1;
        }
    }

    /// Deletes versions of one bucket, and once more where no answer came: what is gone stays so.
    async fn delete_versions(
        &self,
        bucket: &str,
        names: &[ObjectName],
    ) -> Result<Vec<Deleted>, S3Error> {
        let mut attempt = 0;
        loop {
            match self.client.delete_objects(bucket, names).await {
                Err(error) if error.is_without_answer() => {
                    attempt += 1;
                    self.client.pause(attempt, error).await?;
                }
                answered => return answered,
            }
        }
    }
}

/// The deletion of all versions below a place.
struct Removal<'a, R> {
    mover: &'a Arc<Mover>,
    from: &'a Location,
    removed: R,
    counts: Counts,
    /// Versions that could not be deleted, which was told, by what they hash to.
    kept: HashSet<u64>,
}

impl<R: FnMut(&ObjectName)> Removal<'_, R> {
    async fn list(&self, after: Option<&(String, String)>) -> Result<VersionsPage, S3Error> {
        let Location { bucket, key } = self.from;
        self.mover.client.list_versions(bucket, key, after).await
    }

    /// Deletes what a list names that begins with this page. False where it names nothing that can
    /// be deleted.
    async fn round(&mut self, mut page: VersionsPage) -> Result<bool, MoverError> {
        let mut paging = Paging::default();
        let done_before = self.counts.done;
        loop {
            paging.follow(&self.mover.client, page.names(), page.next.as_ref())?;
            // What a page begins behind is still there when it is asked for.
            let next = match &page.next {
                Some(after) => Some(self.list(Some(after)).await?),
                None => None,
            };
            let mut versions = page.versions;
            versions.retain(|version| !self.kept.contains(&mark(version)));
            for versions in versions.chunks(DELETE_COUNT_MAX) {
                self.delete(versions).await?;
            }
            match next {
                Some(next) => page = next,
                None => return Ok(self.counts.done > done_before),
            }
        }
    }

    /// Deletes these, and counts them.
    async fn delete(&mut self, versions: &[ListedVersion]) -> Result<(), MoverError> {
        let bucket = &self.from.bucket;
        let named = |version: &ListedVersion| ObjectName {
            version_id: Some(version.version_id.clone()),
            ..ObjectName::new(bucket, &version.object.key)
        };
        let names: Vec<_> = versions.iter().map(named).collect();
        let deleted = self.mover.delete_versions(bucket, &names).await?;
        for (deleted, version) in deleted.iter().zip(versions) {
            match &deleted.failure {
                None => {
                    self.counts.done += 1;
                    self.counts.bytes += version.object.bytes;
                    (self.removed)(&deleted.name);
                }
                Some(failure) => {
                    self.counts.failed += 1;
                    if self.kept.len() < REMOVE_KEPT {
                        self.kept.insert(mark(version));
                    }
                    self.mover.tell_kept(&deleted.name, failure);
                }
            }
        }
        Ok(())
    }
}

fn mark(version: &ListedVersion) -> u64 {
    hash_of(&(&version.object.key, &version.version_id))
}
