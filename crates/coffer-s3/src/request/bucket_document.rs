//! What configures a bucket and is kept as JSON: read, set, removed.

use coffer_vault::{BucketConfiguration, Vault};
use s3s::{S3Error, S3Result, s3_error};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::parameters::names;
use crate::request::caller::Caller;

/// A kind of them.
#[derive(Clone, Copy)]
pub(crate) struct BucketDocument {
    pub(crate) kind: BucketConfiguration,
    /// What it is called, after an article.
    pub(crate) told: &'static str,
    /// How long it may be.
    pub(crate) max_bytes: usize,
}

impl BucketDocument {
    /// What is set, if anything is.
    pub(crate) async fn read<T: DeserializeOwned>(
        self,
        vault: &Vault,
        caller: &Caller,
        bucket: &str,
    ) -> S3Result<Option<T>> {
        let bucket = names::bucket(bucket)?;
        let read = vault.bucket_configuration(&caller.subject, &bucket, self.kind);
        let document = read.await.map_err(|error| caller.refused(error))?;
        Ok(document.and_then(|document| serde_json::from_str(&document).ok()))
    }

    /// Sets it.
    pub(crate) async fn set(
        self,
        vault: &Vault,
        caller: &Caller,
        bucket: &str,
        wanted: &(impl Serialize + Sync),
    ) -> S3Result {
        let document = serde_json::to_string(wanted).expect("rules are JSON");
        if document.len() > self.max_bytes {
            return Err(self.too_long());
        }
        self.keep(vault, caller, bucket, Some(document)).await
    }

    /// Removes it.
    pub(crate) async fn remove(self, vault: &Vault, caller: &Caller, bucket: &str) -> S3Result {
        self.keep(vault, caller, bucket, None).await
    }

    async fn keep(
        self,
        vault: &Vault,
        caller: &Caller,
        bucket: &str,
        document: Option<String>,
    ) -> S3Result {
        let bucket = names::bucket(bucket)?;
        vault
            .set_bucket_configuration(&caller.subject, &bucket, self.kind, document)
            .await
            .map_err(|error| caller.refused(error))
    }

    fn too_long(self) -> S3Error {
        let Self {
            told, max_bytes, ..
        } = self;
        s3_error!(InvalidRequest, "A {told} has at most {max_bytes} bytes")
    }
}
