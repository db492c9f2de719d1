//! Whether a stopped server's blobs are what their catalogs say: each begins with the commitment to
//! its data key, and has its length.

use std::path::PathBuf;

use coffer_seal::BucketId;
use coffer_store::ContentWalk;
use coffer_store::record::BlobRef;

use crate::error::Result;
use crate::limits::{VERIFY_PAGE, WRONG_BLOBS_MAX};
use crate::offline::Offline;
use crate::open_buckets::{OpenBucket, customer_key};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitmentsChecked {
    /// How many blobs the catalogs name.
    pub blob_count: u64,
    /// How many of them are not what their catalog says.
    pub wrong_count: u64,
    /// The first of those, and catalogs that can't be read.
    pub wrong: Vec<WrongBlob>,
}

/// A blob, or a catalog, that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBlob {
    /// Its file, relative to the data folder.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Offline {
    /// Checks every blob of every catalog, without reading more than its header. `told` hears how
    /// many were checked so far.
    pub async fn check_commitments(&self, mut told: impl FnMut(u64)) -> CommitmentsChecked {
        let mut checked = CommitmentsChecked::default();
        for entry in self.keystore.buckets() {
            let id = entry.id;
            if let Err(error) = self.check_bucket(id, &mut checked, &mut told).await {
                let file = self.folder.bucket(id).join("catalog.db");
                checked.add(self.relative(file), error.to_string());
            }
        }
        checked
    }

    async fn check_bucket(
        &self,
        id: BucketId,
        checked: &mut CommitmentsChecked,
        told: &mut impl FnMut(u64),
    ) -> Result<()> {
        let bucket = self.open_id(id).await?;
        let mut walk = ContentWalk::default();
        while let Some(page) = walk.next(&bucket.catalog, VERIFY_PAGE).await? {
            for blob in page.iter().flat_map(|(_, content)| content.blobs()) {
                self.check_blob(&bucket, blob, checked).await;
            }
            told(checked.blob_count);
        }
        Ok(())
    }

    async fn check_blob(
        &self,
        bucket: &OpenBucket,
        blob: &BlobRef,
        checked: &mut CommitmentsChecked,
    ) {
        if self.lies_elsewhere(bucket, blob) {
            return;
        }
        checked.blob_count += 1;
        let what = match customer_key::unwrap(&bucket.key(), blob, None) {
            Err(_) => "its wrapped data key does not open".to_owned(),
            // A client's key is needed to open more.
            Ok(None) => {
                let checked = bucket.blobs.check_length(blob.id, blob.plaintext_bytes);
                match checked.await {
                    Ok(()) => return,
                    Err(error) => error.to_string(),
                }
            }
            Ok(Some(key)) => match bucket.blobs.open(blob.id, &key, blob.plaintext_bytes).await {
                Ok(_) => return,
                Err(error) => error.to_string(),
            },
        };
        checked.add(self.relative(bucket.blobs.path(blob.id)), what);
    }

    fn relative(&self, path: PathBuf) -> PathBuf {
        match path.strip_prefix(self.folder.path()) {
            Ok(relative) => relative.to_owned(),
            Err(_) => path,
        }
    }
}

impl CommitmentsChecked {
    fn add(&mut self, file: PathBuf, what: String) {
        self.wrong_count += 1;
        if self.wrong.len() < WRONG_BLOBS_MAX {
            self.wrong.push(WrongBlob { file, what });
        }
    }
}
