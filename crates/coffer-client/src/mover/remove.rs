//! Deleting objects.

use std::sync::Arc;

use crate::limits::DELETE_COUNT_MAX;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Failure};
use crate::mover::folders::Counts;
use crate::mover::location::Location;
use crate::s3::{ListedVersion, ObjectName};

impl Mover {
    /// Deletes an object. That there is none is no error, as with S3, but where the name is that of
    /// a folder, as it were: then what is below it was meant.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn remove(&self, name: &ObjectName) -> Result<(), MoverError> {
        if name.key.ends_with('/')
            && name.version_id.is_none()
            && let Err(
                absent @ MoverError::Absent {
                    has_bucket: true, ..
                },
            ) = self.head(name).await
        {
            return Err(absent);
        }
        Ok(self.client.delete_object(name).await?)
    }

    /// Deletes all objects whose names begin with that of a place; `removed` is told of each.
    ///
    /// # Errors
    /// When they can't be listed; all else is told and counted.
    pub async fn remove_folder(
        self: &Arc<Self>,
        from: &Location,
        mut removed: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let mut counts = Counts::default();
        let mut after: Option<String> = None;
        loop {
            let page = self.page(from, after.as_deref()).await?;
            for objects in page.objects.chunks(DELETE_COUNT_MAX) {
                let listed: Vec<_> = { objects.iter() }
                    .map(|object| (ObjectName::new(&from.bucket, &object.key), object.bytes))
                    .collect();
                self.remove_listed(&listed, &mut counts, &mut removed)
                    .await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(counts);
            }
        }
    }

    /// Deletes all versions and delete markers of objects whose names begin with that of a place;
    /// `removed` is told of each.
    ///
    /// # Errors
    /// When they can't be listed; all else is told and counted.
    pub async fn remove_versions(
        self: &Arc<Self>,
        from: &Location,
        mut removed: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let Location { bucket, key } = from;
        let mut counts = Counts::default();
        let mut page = self.client.list_versions(bucket, key, None).await?;
        loop {
            // What a page begins behind is still there when it is asked for.
            let next = match &page.next {
                Some(after) => Some(self.client.list_versions(bucket, key, Some(after)).await?),
                None => None,
            };
            for versions in page.versions.chunks(DELETE_COUNT_MAX) {
                let named = |version: &ListedVersion| {
                    let mut name = ObjectName::new(bucket, &version.object.key);
                    name.version_id = Some(version.version_id.clone());
                    (name, version.object.bytes)
                };
                let listed: Vec<_> = versions.iter().map(named).collect();
                self.remove_listed(&listed, &mut counts, &mut removed)
                    .await?;
            }
            match next {
                Some(next) => page = next,
                None => return Ok(counts),
            }
        }
    }

    /// Deletes these, which are of one bucket, with their lengths.
    async fn remove_listed(
        &self,
        listed: &[(ObjectName, u64)],
        counts: &mut Counts,
        removed: &mut impl FnMut(&ObjectName),
    ) -> Result<(), MoverError> {
        let names: Vec<ObjectName> = listed.iter().map(|(name, _)| name.clone()).collect();
        let Some(ObjectName { bucket, .. }) = names.first() else {
            return Ok(());
        };
        let deleted = self.client.delete_objects(bucket, &names).await?;
        for (deleted, (_, bytes)) in deleted.iter().zip(listed) {
            let ObjectName {
                key, version_id, ..
            } = &deleted.name;
            match &deleted.failure {
                None => {
                    counts.done += 1;
                    counts.bytes += bytes;
                    removed(&deleted.name);
                }
                Some((code, message)) => {
                    counts.failed += 1;
                    let version = version_id.as_deref().map(|id| format!(" (version {id})"));
                    self.tell(&Event::Failed(&Failure {
                        what: format!("s3://{bucket}/{key}{}", version.unwrap_or_default()),
                        code: code.clone(),
                        message: format!("the server answered {code}: {message}"),
                    }));
                }
            }
        }
        Ok(())
    }
}
