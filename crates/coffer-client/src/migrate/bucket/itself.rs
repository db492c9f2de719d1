//! A bucket that would come into itself: what came would be listed as new, and come again, without
//! an end.

use crate::migrate::Migration;
use crate::migrate::error::MigrateError;
use crate::migrate::names::Name;
use crate::migrate::origin::Origin;
use crate::migrate::place::Place;
use crate::s3::{ObjectHead, ObjectName};

impl Migration {
    /// Source and target are not the same bucket by the same address.
    ///
    /// # Errors
    /// [`MigrateError::IntoItself`].
    pub(super) fn check_elsewhere(&self, from: &str, to: &str) -> Result<(), MigrateError> {
        let Origin::Service { client, .. } = &self.origin else {
            return Ok(());
        };
        let (source, target) = (client.endpoint().text(), self.target.endpoint().text());
        if from == to && source.eq_ignore_ascii_case(target) {
            return Err(MigrateError::IntoItself);
        }
        Ok(())
    }

    /// Nor are they by two addresses: then the source would list below the target's prefix what
    /// came there, and both would tell the same of it.
    ///
    /// # Errors
    /// [`MigrateError::IntoItself`].
    pub(super) async fn check_apart(&self, place: &Place, name: &Name) -> Result<(), MigrateError> {
        let key = { name.key.strip_prefix(&place.prefix) }.filter(|_| !place.prefix.is_empty());
        let (Some(key), Some(client), Some(newest)) = (key, &place.client, name.versions.last())
        else {
            return Ok(());
        };
        if place.from != place.to || newest.is_marker || !place.ledger.is_ours(key, newest) {
            return Ok(());
        }
        let object = ObjectName::new(&place.from, &name.key);
        let at_source = client.head_object(&object).await;
        let at_target = self.target.head_object(&object).await;
        match (at_source, at_target) {
            (Ok(source), Ok(target)) if is_one(&source, &target) => Err(MigrateError::IntoItself),
            // What can't be asked now is told where it is to come.
            _ => Ok(()),
        }
    }
}

/// Whether two answers tell of one object.
fn is_one(a: &ObjectHead, b: &ObjectHead) -> bool {
    let modified = |head: &ObjectHead| head.header("last-modified").map(str::to_owned);
    (a.bytes, &a.etag, &a.version_id) == (b.bytes, &b.etag, &b.version_id)
        && modified(a) == modified(b)
}
