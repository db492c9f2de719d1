//! Deleting objects.

mod plan;
mod versions;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use http::Method;

use crate::limits::{DELETE_COUNT_MAX, REMOVE_KEPT};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Failure};
use crate::mover::folders::Counts;
use crate::mover::location::Location;
use crate::s3::{ListedObject, ObjectName, Paging, S3Error, advice_of_lock};

impl Mover {
    /// Deletes an object, or a version of it. S3 takes a name that is not there for deleted, and
    /// may put a delete marker: it is looked first, for such a name was mistyped. What can't be
    /// looked at is deleted all the same.
    ///
    /// # Errors
    /// [`MoverError`], also where there is none.
    pub async fn remove(&self, name: &ObjectName) -> Result<(), MoverError> {
        // What can't be looked at may be there: the deletion tells.
        let looked = self.client.send_once(&name.request(Method::HEAD)).await;
        if looked.is_err_and(|error| error.is_absent()) {
            return Err(self.absent(name).await);
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
        removed: impl FnMut(&ObjectName),
    ) -> Result<Counts, MoverError> {
        let mut removal = Removal {
            mover: self,
            from,
            removed,
            counts: Counts::default(),
            kept: HashSet::new(),
            has_any: false,
        };
        let mut last = usize::MAX;
        // Some services count objects to where a list goes on. As those before are deleted, as many
        // behind are passed over: the list is asked for again until it is one page.
        while let Some(listed) = removal.pass().await? {
            if listed >= last {
                let prefix = from.key.clone();
                return Err(MoverError::StillListed { prefix });
            }
            last = listed;
        }
        some_begins(from, removal.has_any)?;
        Ok(removal.counts)
    }

    /// Tells why an object or a version is still there.
    fn tell_kept(&self, name: &ObjectName, (code, message): &(String, String)) {
        let ObjectName {
            bucket,
            key,
            version_id,
        } = name;
        let version = version_id.as_deref().map(|id| format!(" (version {id})"));
        let advice = advice_of_lock(code, message).map(|advice| format!("; {advice}"));
        let advice = advice.unwrap_or_default();
        self.tell(&Event::Failed(&Failure {
            what: format!("s3://{bucket}/{key}{}", version.unwrap_or_default()),
            code: code.clone(),
            message: format!("the server answered {code}: {message}{advice}"),
        }));
    }
}

/// Refuses a prefix that no name has, which was mistyped. A bucket may be empty.
fn some_begins(from: &Location, has_any: bool) -> Result<(), MoverError> {
    if !has_any && !from.key.is_empty() {
        let prefix = from.key.clone();
        return Err(MoverError::NoneBegins { prefix });
    }
    Ok(())
}

/// The deletion of all objects below a place.
struct Removal<'a, R> {
    mover: &'a Arc<Mover>,
    from: &'a Location,
    removed: R,
    counts: Counts,
    /// Names that could not be deleted, which was told, by what they hash to.
    kept: HashSet<u64>,
    has_any: bool,
}

impl<R: FnMut(&ObjectName)> Removal<'_, R> {
    /// Deletes what a list from its start names. How many that were, if there may be more: it came
    /// in several pages, and is another one now.
    async fn pass(&mut self) -> Result<Option<usize>, MoverError> {
        let mut after: Option<String> = None;
        let mut paging = Paging::default();
        // What was to be deleted by a request whose answer was lost: in a bucket with versions, the
        // same request once more would put second delete markers.
        let mut unknown: Vec<ListedObject> = Vec::new();
        let (mut attempt, mut listed) = (0, 0);
        let done_before = self.counts.done;
        let mut is_in_pages = false;
        loop {
            let asking = self.mover.page(self.from, after.as_deref(), &mut paging);
            let mut page = asking.await?;
            self.has_any |= !page.objects.is_empty();
            let there: HashSet<&str> = { page.objects.iter() }
                .map(|object| object.key.as_str())
                .collect();
            unknown.retain(|object| !there.contains(object.key.as_str()));
            for object in unknown.drain(..) {
                self.gone(&object);
            }
            page.objects
                .retain(|object| !self.kept.contains(&hash_of(&object.key)));
            if let Some((error, objects)) = self.delete(&page.objects).await? {
                attempt += 1;
                self.mover.client.pause(attempt, error).await?;
                unknown.extend_from_slice(objects);
                // The same page is asked for again.
                paging = Paging::default();
                continue;
            }
            attempt = 0;
            listed += page.objects.len();
            after = page.next;
            if after.is_none() {
                let is_told_of_all = self.kept.len() < REMOVE_KEPT;
                let may_be_more = is_in_pages && is_told_of_all && self.counts.done > done_before;
                return Ok(may_be_more.then_some(listed));
            }
            is_in_pages = true;
        }
    }

    /// Deletes these, and counts them; those of a request whose answer was lost are given back.
    async fn delete<'o>(
        &mut self,
        objects: &'o [ListedObject],
    ) -> Result<Option<(S3Error, &'o [ListedObject])>, MoverError> {
        for objects in objects.chunks(DELETE_COUNT_MAX) {
            let names: Vec<ObjectName> = { objects.iter() }
                .map(|object| ObjectName::new(&self.from.bucket, &object.key))
                .collect();
            let asking = self.mover.client.delete_objects(&self.from.bucket, &names);
            let deleted = match asking.await {
                Ok(deleted) => deleted,
                Err(error) if error.is_without_answer() => return Ok(Some((error, objects))),
                Err(error) => return Err(error.into()),
            };
            for (deleted, object) in deleted.iter().zip(objects) {
                match &deleted.failure {
                    None => self.gone(object),
                    Some(failure) => {
                        self.counts.failed += 1;
                        if self.kept.len() < REMOVE_KEPT {
                            self.kept.insert(hash_of(&object.key));
                        }
                        self.mover.tell_kept(&deleted.name, failure);
                    }
                }
            }
        }
        Ok(None)
    }

    fn gone(&mut self, object: &ListedObject) {
        self.counts.done += 1;
        self.counts.bytes += object.bytes;
        (self.removed)(&ObjectName::new(&self.from.bucket, &object.key));
    }
}

fn hash_of(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
