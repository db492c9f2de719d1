//! Renaming: an object is given another name in its bucket, and no byte of it moves.
//!
//! Who renames could as well copy the object and delete it, and is asked for as much: to read, to
//! write and to delete.

use aws_lc_rs::digest;
use coffer_durable::now_ms;
use coffer_store::record::ObjectName;
use coffer_store::{Judge, NotRenamed, Rename, RenameToken};

use super::conditions::{Conditions, holds};
use crate::access::{Act, BucketName, Right, Subject};
use crate::acts::Changed;
use crate::audit::{Facts, On};
use crate::error::{AdministrationError, Result, VaultError};
use crate::open_buckets::UsedBucket;
use crate::vault::Vault;

/// What ids of requests are formed with.
const TOKEN_LABEL: &str = "coffer rename token v1";

/// An object that is to have another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenameObject {
    /// The name that it has.
    pub source: ObjectName,
    /// The name that it is to have, in place of what is there.
    pub target: ObjectName,
    /// Only if this is so of the object.
    pub source_conditions: Conditions,
    /// Only if this is so of what is under its new name.
    pub target_conditions: Conditions,
    /// What the client knows the request by: sent again within a day, it is done once.
    pub token: Option<String>,
}

impl Vault {
    /// Gives an object another name in its bucket, in one durable step. Its content, its
    /// description and its time stay as they are.
    ///
    /// # Errors
    /// [`VaultError::NoSuchObject`]; [`VaultError::PreconditionFailed`]; [`VaultError::Invalid`] in
    /// a bucket that keeps versions, or did; [`AdministrationError::TokenOfAnother`].
    pub async fn rename_object(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        rename: RenameObject,
    ) -> Result<()> {
        if rename.source == rename.target {
            return Err(VaultError::Invalid {
                what: "an object is renamed to another name than it has",
            });
        }
        let also = [Right::Read, Right::Delete];
        let grant = self.changeable_by(subject, bucket, &also).await?;
        // The answer tells whether there is such an object.
        grant.note_read().await?;
        let token = rename
            .token
            .as_deref()
            .map(|token| token_of(&rename, token, &subject.id.to_string()));
        let [was, is] = ["source", "target"].map(|end| Facts::from([("end", end.to_owned())]));
        let (source, target) = (rename.source.clone(), rename.target.clone());
        let wanted = Rename {
            source: rename.source,
            target: rename.target,
            source_is: judge(rename.source_conditions),
            target_is: judge(rename.target_conditions),
            token,
            now_ms: now_ms(),
        };
        let change = move |bucket: UsedBucket| async move {
            let renamed = bucket.catalog.rename(wanted).await?;
            Ok(Changed::freeing((), renamed.map_err(refusal)?))
        };
        let on = [On::Told(&source, &was), On::Told(&target, &is)];
        grant.change(Act::RenameObject, on, change).await
    }
}

fn judge(conditions: Conditions) -> Judge {
    Box::new(move |there| match there {
        Some(there) => holds(there.etag, there.modified_ms, &conditions).is_ok(),
        // Where nothing is, nothing is matched, and nothing was modified.
        None => conditions.if_match.is_none() && conditions.if_modified_since_ms.is_none(),
    })
}

fn refusal(why: NotRenamed) -> VaultError {
    match why {
        NotRenamed::Absent(absent) => absent.into(),
        NotRenamed::Condition => VaultError::PreconditionFailed,
        NotRenamed::TokenOfAnother => AdministrationError::TokenOfAnother.into(),
        NotRenamed::HasVersions => VaultError::Invalid {
            what: "objects are not renamed in a bucket that keeps versions, or did, for versions \
                   belong to their names: copy the object and delete it",
        },
    }
}

/// What a request is known by: of this subject, and whatever it asks for.
fn token_of(rename: &RenameObject, token: &str, subject: &str) -> RenameToken {
    let known_by = digest_of(&[TOKEN_LABEL, subject, token]);
    let mut id = [0; 16];
    id.copy_from_slice(&known_by[..16]);
    let conditions = format!(
        "{:?} {:?}",
        rename.source_conditions, rename.target_conditions
    );
    let asked = [
        rename.source.expose(),
        rename.target.expose(),
        conditions.as_str(),
    ];
    RenameToken {
        id,
        request: digest_of(&asked),
    }
}

fn digest_of(texts: &[&str]) -> [u8; 32] {
    let mut sha = digest::Context::new(&digest::SHA256);
    for text in texts {
        sha.update(&(text.len() as u64).to_be_bytes());
        sha.update(text.as_bytes());
    }
    let mut formed = [0; 32];
    formed.copy_from_slice(sha.finish().as_ref());
    formed
}
