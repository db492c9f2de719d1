//! An object is given another name, in one transaction: its row moves, its content stays where it
//! is, for nothing that seals it knows the name.

use coffer_seal::BlobId;
use rusqlite::params;

use crate::catalog::finished_uploads::{forget_old, request_of};
use crate::catalog::open::Catalog;
use crate::catalog::versions::find::why_absent;
use crate::catalog::versions::place::{There, find, remove_only};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::record::ObjectName;
use crate::version::{Absent, Versioning};

/// What a condition may ask of an object.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Its entity tag, without quotation marks.
    pub etag: &'a str,
    /// When it was made, in milliseconds since 1970.
    pub modified_ms: i64,
}

/// Whether what is under a name is as it must be.
pub type Judge = Box<dyn Fn(Option<Standing<'_>>) -> bool + Send>;

/// A request by which a client means one rename, however often it sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenameToken {
    /// What the request is known by.
    pub id: [u8; 16],
    /// Digest of what it asks for.
    pub request: [u8; 32],
}

/// An object that is to have another name.
pub struct Rename {
    /// The name that it has.
    pub source: ObjectName,
    /// The name that it is to have, in place of what is there.
    pub target: ObjectName,
    /// What must be true of the object.
    pub source_is: Judge,
    /// What must be true of what is under its new name.
    pub target_is: Judge,
    /// By what the request is known.
    pub token: Option<RenameToken>,
    /// When it is, in milliseconds since 1970.
    pub now_ms: i64,
}

/// Why an object is not given another name. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRenamed {
    /// There is none.
    Absent(Absent),
    /// The bucket keeps versions, or did: each belongs to its name.
    HasVersions,
    /// A condition does not hold.
    Condition,
    /// The token was used, and another rename was meant by it.
    TokenOfAnother,
}

impl Catalog {
    /// Gives an object another name. Durable when this returns. Tells which blobs nothing refers
    /// to any more: those of what was under the new name. A request that is known by its token, and
    /// was done less than a day before, changes nothing.
    ///
    /// # Errors
    /// Those of the catalog; why it was not done is the inner result. [`StoreError::Locked`].
    pub async fn rename(&self, rename: Rename) -> Result<Result<Vec<BlobId>, NotRenamed>> {
        let known = self.known_versioning();
        self.write(move |session| {
            if known.state_in(session)? != Versioning::Never {
                return Ok(Err(NotRenamed::HasVersions));
            }
            move_row(session, &rename)
        })
        .await
    }
}

fn move_row(session: &Session, rename: &Rename) -> Result<Result<Vec<BlobId>, NotRenamed>> {
    let Rename { source, target, .. } = rename;
    if let Some(token) = &rename.token
        && let Some(request) = request_of(session, &token.id, rename.now_ms)?
    {
        return Ok(if request == token.request {
            Ok(Vec::new())
        } else {
            Err(NotRenamed::TokenOfAnother)
        });
    }
    let Some(there) = find(session, source)? else {
        return Ok(Err(NotRenamed::Absent(why_absent(session, source)?)));
    };
    let replaced = find(session, target)?;
    let standing = |there: &There| (there.etag.clone(), there.modified_ms);
    let holds = |judge: &Judge, there: Option<(String, i64)>| {
        judge(there.as_ref().map(|(etag, modified_ms)| Standing {
            etag,
            modified_ms: *modified_ms,
        }))
    };
    if !holds(&rename.source_is, Some(standing(&there)))
        || !holds(&rename.target_is, replaced.as_ref().map(standing))
    {
        return Ok(Err(NotRenamed::Condition));
    }
    // As where it would be deleted.
    if !there.lock.is_none() {
        return Err(StoreError::Locked);
    }
    let freed = match &replaced {
        Some(replaced) => remove_only(session, target, replaced)?,
        None => Vec::new(),
    };
    let moved = session
        .prepare_cached("UPDATE object SET name = ?2 WHERE name = ?1")?
        .execute([source.expose().as_bytes(), target.expose().as_bytes()])?;
    if moved != 1 {
        return Err(StoreError::damaged_catalog());
    }
    // The name that it had.
    session.note_removed();
    if let Some(token) = &rename.token {
        note(session, token, &there, rename.now_ms)?;
    }
    Ok(Ok(freed))
}

/// Notes a rename for who asks again, among completed uploads and as long as those.
fn note(session: &Session, token: &RenameToken, there: &There, now_ms: i64) -> Result<()> {
    forget_old(session, now_ms)?;
    session
        .prepare_cached(
            "INSERT OR REPLACE INTO finished_upload(upload_id, finished_ms, request, etag,
                 size_bytes)
             VALUES(?, ?, ?, ?, ?)",
        )?
        .execute(params![
            token.id,
            now_ms,
            token.request,
            there.etag,
            there.size_bytes
        ])?;
    Ok(())
}
