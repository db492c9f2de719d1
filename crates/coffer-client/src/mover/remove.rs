//! Deleting objects.

use std::collections::HashSet;
use std::sync::Arc;

use crate::limits::DELETE_COUNT_MAX;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Failure};
use crate::mover::folders::Counts;
use crate::mover::location::Location;
use crate::s3::{Deleted, ListedObject, ObjectName, S3Error};

impl Mover {
    /// Deletes an object. That there is none is no error, as with S3.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn remove(&self, name: &ObjectName) -> Result<(), MoverError> {
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
        // What was to be deleted by a request whose answer was lost: in a bucket with versions, the
        // same request once more would put second delete markers.
        let mut unknown: Vec<ListedObject> = Vec::new();
        let mut attempt = 0;
        let mut has_any = false;
        loop {
            let page = self.page(from, after.as_deref()).await?;
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
                let deleted = match self.remove_listed(from, objects).await {
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

    async fn remove_listed(
        &self,
        from: &Location,
        objects: &[ListedObject],
    ) -> Result<Vec<Deleted>, S3Error> {
        let names: Vec<ObjectName> = { objects.iter() }
            .map(|object| ObjectName::new(&from.bucket, &object.key))
            .collect();
        self.client.delete_objects(&from.bucket, &names).await
    }

    /// Tells why an object is still there.
    fn tell_kept(&self, name: &ObjectName, (code, message): &(String, String)) {
        self.tell(&Event::Failed(&Failure {
            what: format!("s3://{}/{}", name.bucket, name.key),
            code: code.clone(),
            message: format!("the server answered {code}: {message}"),
        }));
    }
}
