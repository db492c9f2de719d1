//! Whose buckets, objects and uploads are, as answers tell it.

use coffer_vault::{BucketName, Vault};
use s3s::S3Result;
use s3s::dto::{Initiator, Owner};

use crate::around_s3s::answer_xml::escape;
use crate::request::caller::Caller;

/// Owners as a listing of a bucket tells them.
pub(crate) struct Owners {
    bucket: Owner,
}

impl Owners {
    /// Those of a bucket's objects.
    pub(crate) async fn within(
        vault: &Vault,
        caller: &Caller,
        bucket: &BucketName,
    ) -> S3Result<Self> {
        let owner = vault.bucket_owner(&caller.subject, bucket).await;
        let owner = owner.map_err(|error| caller.refused(error))?;
        Ok(Self {
            bucket: told(vault, owner),
        })
    }

    #[cfg(test)]
    pub(crate) fn of_bucket(bucket: Owner) -> Self {
        Self { bucket }
    }

    /// Whose something is: none is the bucket's owner's.
    pub(crate) fn of(&self, owner: Option<String>) -> Owner {
        let mut told = self.bucket.clone();
        if owner.is_some() {
            told.id = owner;
        }
        told
    }

    /// The same in XML: what stands before the id, and the id.
    pub(crate) fn in_xml(&self) -> (String, &str) {
        let mut begin = String::from("<Owner>");
        if let Some(name) = &self.bucket.display_name {
            begin.push_str("<DisplayName>");
            escape(&mut begin, name);
            begin.push_str("</DisplayName>");
        }
        begin.push_str("<ID>");
        (begin, self.bucket.id.as_deref().unwrap_or_default())
    }

    /// Who began an upload: of one that is gone, or signed nothing, the bucket's owner is told.
    pub(crate) fn initiator(&self, made_by: Option<String>) -> Initiator {
        let Owner { display_name, id } = self.of(made_by);
        Initiator { display_name, id }
    }
}

/// Who has this canonical user id; the account is all the name that others are told.
pub(crate) fn told(vault: &Vault, id: String) -> Owner {
    Owner {
        display_name: Some(vault.account_id().to_string()),
        id: Some(id),
    }
}
