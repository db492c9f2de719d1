//! Deleting objects.

use std::collections::HashSet;
use std::sync::Arc;

use crate::limits::DELETE_COUNT_MAX;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Failure};
use crate::mover::folders::Counts;
use crate::mover::location::Location;
use crate::s3::{Deleted, EmptyPages, ListedObject, ListedVersion, ObjectName, S3Error};

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
    /// When they can't be listed, or none has such a name; all else is told and counted.
    pub async fn remove_folder(
        self: &Arc<Self>,
        from: &Location,
        mut removed: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let mut counts = Counts::default();
        let mut gone = |counts: &mut Counts, object: &ListedObject| {
            counts.done += 1;
            counts.bytes += object.bytes;
            removed(&ObjectName::new(&from.bucket, &object.key));
        };
        let mut after: Option<String> = None;
        let mut empty = EmptyPages::default();
        // What was to be deleted by a request whose answer was lost: in a bucket with versions, the
        // same request once more would put second delete markers.
        let mut unknown: Vec<ListedObject> = Vec::new();
        let mut attempt = 0;
        let mut has_any = false;
        loop {
            let page = self.page(from, after.as_deref(), &mut empty).await?;
            has_any |= !page.objects.is_empty();
            let listed: HashSet<&str> = { page.objects.iter() }
                .map(|object| object.key.as_str())
                .collect();
            unknown.retain(|object| !listed.contains(object.key.as_str()));
            for object in unknown.drain(..) {
                gone(&mut counts, &object);
            }
            let mut lost = None;
            for objects in page.objects.chunks(DELETE_COUNT_MAX) {
                let deleted = match self.delete_listed(from, objects).await {
                    Ok(deleted) => deleted,
                    Err(error) if error.is_without_answer() => {
                        lost = Some((error, objects));
                        break;
                    }
                    Err(error) => return Err(error.into()),
                };
                for (deleted, object) in deleted.iter().zip(objects) {
                    match &deleted.failure {
                        None => gone(&mut counts, object),
                        Some(failure) => {
                            counts.failed += 1;
                            self.tell_kept(&deleted.name, failure);
                        }
                    }
                }
            }
            if let Some((error, objects)) = lost {
                attempt += 1;
                self.client.pause(attempt, error).await?;
                unknown.extend_from_slice(objects);
                continue;
            }
            attempt = 0;
            after = page.next;
            if after.is_some() {
                continue;
            }
            // A prefix that no name has was mistyped. A bucket may be empty.
            if !has_any && !from.key.is_empty() {
                let prefix = from.key.clone();
                return Err(MoverError::NoneBegins { prefix });
            }
            return Ok(counts);
        }
    }

    /// Deletes all versions and delete markers of objects whose names begin with that of a place;
    /// `removed` is told of each.
    ///
    /// # Errors
    /// When they can't be listed, or none has such a name; all else is told and counted.
    pub async fn remove_versions(
        self: &Arc<Self>,
        from: &Location,
        mut removed: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let Location { bucket, key } = from;
        let mut counts = Counts::default();
        let mut page = self.client.list_versions(bucket, key, None).await?;
        // A prefix that no name has was mistyped. A bucket may be empty.
        if page.versions.is_empty() && page.next.is_none() && !key.is_empty() {
            let prefix = key.clone();
            return Err(MoverError::NoneBegins { prefix });
        }
        let mut empty = EmptyPages::default();
        loop {
            empty.count(&self.client, page.versions.is_empty())?;
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
                let (names, bytes): (Vec<_>, Vec<_>) = versions.iter().map(named).unzip();
                let deleted = self.delete_versions(bucket, &names).await?;
                for (deleted, bytes) in deleted.iter().zip(bytes) {
                    match &deleted.failure {
                        None => {
                            counts.done += 1;
                            counts.bytes += bytes;
                            removed(&deleted.name);
                        }
                        Some(failure) => {
                            counts.failed += 1;
                            self.tell_kept(&deleted.name, failure);
                        }
                    }
                }
            }
            match next {
                Some(next) => page = next,
                None => return Ok(counts),
            }
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

    async fn delete_listed(
        &self,
        from: &Location,
        objects: &[ListedObject],
    ) -> Result<Vec<Deleted>, S3Error> {
        let names: Vec<ObjectName> = { objects.iter() }
            .map(|object| ObjectName::new(&from.bucket, &object.key))
            .collect();
        self.client.delete_objects(&from.bucket, &names).await
    }

    /// Tells why an object or a version is still there.
    fn tell_kept(&self, name: &ObjectName, (code, message): &(String, String)) {
        let ObjectName {
            bucket,
            key,
            version_id,
        } = name;
        let version = version_id.as_deref().map(|id| format!(" (version {id})"));
        self.tell(&Event::Failed(&Failure {
            what: format!("s3://{bucket}/{key}{}", version.unwrap_or_default()),
            code: code.clone(),
            message: format!("the server answered {code}: {message}"),
        }));
    }
}
