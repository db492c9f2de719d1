//! Deleting objects.

use std::sync::Arc;

use crate::limits::DELETE_COUNT_MAX;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Failure};
use crate::mover::folders::Counts;
use crate::mover::location::Location;
use crate::s3::ObjectName;

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
                let names: Vec<ObjectName> = { objects.iter() }
                    .map(|object| ObjectName::new(&from.bucket, &object.key))
                    .collect();
                let deleted = self.client.delete_objects(&from.bucket, &names).await?;
                for (deleted, object) in deleted.iter().zip(objects) {
                    match &deleted.failure {
                        None => {
                            counts.done += 1;
                            counts.bytes += object.bytes;
                            removed(&deleted.name);
                        }
                        Some((code, message)) => {
                            counts.failed += 1;
                            self.tell(&Event::Failed(&Failure {
                                what: format!("s3://{}/{}", from.bucket, deleted.name.key),
                                code: code.clone(),
                                message: format!("the server answered {code}: {message}"),
                            }));
                        }
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(counts);
            }
        }
    }
}
