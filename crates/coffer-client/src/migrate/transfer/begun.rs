//! Uploads in parts as they are begun, found again, and given up.

use std::sync::Arc;

use tokio::time::timeout;

use crate::limits::REST_WAIT;
use crate::migrate::Migration;
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::{Begun, Part, mark_of_headers};
use crate::migrate::place::Place;
use crate::mover::{begin_upload, part_bytes};
use crate::s3::{ListedVersion, ObjectName, is_ended};

impl Migration {
    /// The upload that an earlier run began and the target still has, with its parts; else a new
    /// one. It stays after an interruption or an error: it is noted, and the next run goes on with
    /// it, or ends it where its version is gone at the source.
    pub(super) async fn begun(
        self: &Arc<Self>,
        what: (&Place, &str, &ListedVersion),
        name: &ObjectName,
        headers: &[(String, String)],
    ) -> Result<(Begun, Vec<Part>), MigrateError> {
        let (place, key, of) = what;
        if let Some((begun, parts)) = place.ledger.upload_of(key, of) {
            let is_other = begun.part_bytes != part_bytes(of.object.bytes)
                || begun.headers != mark_of_headers(headers);
            match self.target.list_parts(name, &begun.upload_id).await {
                // Its tags and locks, which it has from its beginning, are not the source's by now;
                // parts of another length are not what would be sent, or their note is damaged.
                Ok(_) if is_other => {
                    self.end_upload(place, name, &begun).await?;
                }
                Ok(listed) => {
                    let is_there = |part: &Part| {
                        let mut listed = listed.iter();
                        listed.any(|it| it.number == part.number && it.etag == part.etag)
                    };
                    return Ok((begun, parts.into_iter().filter(is_there).collect()));
                }
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((self.begin_parts(what, name, headers).await?, Vec::new()))
    }

    /// Begins an upload, and notes it.
    pub(super) async fn begin_parts(
        self: &Arc<Self>,
        (place, key, of): (&Place, &str, &ListedVersion),
        name: &ObjectName,
        headers: &[(String, String)],
    ) -> Result<Begun, MigrateError> {
        let start = begin_upload(self, &self.target, name, headers).await?;
        let begun = Begun {
            key: key.to_owned(),
            upload_id: start.upload_id,
            compares: start.compares,
            part_bytes: part_bytes(of.object.bytes),
            headers: mark_of_headers(headers),
        };
        if let Err(error) = place.ledger.begun(key, of, &begun) {
            // It is noted nowhere, so nothing would go on with it.
            let _ = self.end_upload(place, name, &begun).await;
            return Err(error);
        }
        Ok(begun)
    }

    /// Ends an upload that nothing would go on with. What can't be ended soon, is noted, and a
    /// later run ends it.
    ///
    /// # Errors
    /// When it can't be noted.
    pub(super) async fn end_upload(
        &self,
        place: &Place,
        name: &ObjectName,
        begun: &Begun,
    ) -> Result<(), MigrateError> {
        let ending = self.target.abort_upload(name, &begun.upload_id);
        match timeout(REST_WAIT, ending).await {
            Ok(answer) if is_ended(&answer) => Ok(()),
            _ => place.ledger.left(begun),
        }
    }
}
