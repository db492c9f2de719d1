//! What would be deleted, told and left.

use http::Method;

use super::some_begins;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::folders::Counts;
use crate::mover::location::Location;
use crate::s3::{ObjectName, Paging, S3Error};

impl Mover {
    /// Looks whether there is an object, or a version of it. One that may not be read may be there.
    ///
    /// # Errors
    /// [`MoverError`], where there is none, or the server can't be asked.
    pub async fn would_remove(&self, name: &ObjectName) -> Result<(), MoverError> {
        let looked = self.client.send(&name.request(Method::HEAD)).await;
        match looked {
            // What S3 says of a delete marker.
            Ok(_) | Err(S3Error::Refused { status: 405, .. }) => Ok(()),
            Err(error) if error.is_absent() => Err(self.absent(name).await),
            Err(error) => match self.reason(name, error).await {
                denied if denied.code() == Some("AccessDenied") => Ok(()),
                error => Err(error.into()),
            },
        }
    }

    /// Tells `found` of all that [`remove_folder`](Self::remove_folder) would delete.
    ///
    /// # Errors
    /// When it can't be listed, or nothing has such a name.
    pub async fn would_remove_folder(
        &self,
        from: &Location,
        mut found: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let (mut after, mut counts) = (None, Counts::default());
        let mut paging = Paging::default();
        loop {
            let asking = self.page(from, after.as_deref(), &mut paging);
            let page = asking.await?;
            for object in &page.objects {
                counts.done += 1;
                counts.bytes += object.bytes;
                found(&ObjectName::new(&from.bucket, &object.key));
            }
            after = page.next;
            if after.is_none() {
                some_begins(from, counts.done > 0)?;
                return Ok(counts);
            }
        }
    }

    /// Tells `found` of all that [`remove_versions`](Self::remove_versions) would delete.
    ///
    /// # Errors
    /// As of [`would_remove_folder`](Self::would_remove_folder).
    pub async fn would_remove_versions(
        &self,
        from: &Location,
        mut found: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let Location { bucket, key } = from;
        let (mut after, mut counts) = (None, Counts::default());
        let mut paging = Paging::default();
        loop {
            let page = self
                .client
                .list_versions(bucket, key, after.as_ref())
                .await?;
            paging.follow(&self.client, page.names(), page.next.as_ref())?;
            for version in &page.versions {
                counts.done += 1;
                counts.bytes += version.object.bytes;
                found(&ObjectName {
                    version_id: Some(version.version_id.clone()),
                    ..ObjectName::new(bucket, &version.object.key)
                });
            }
            after = page.next;
            if after.is_none() {
                some_begins(from, counts.done > 0)?;
                return Ok(counts);
            }
        }
    }
}
