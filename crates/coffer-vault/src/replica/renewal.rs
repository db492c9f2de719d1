//! Putting again what a check found to be missing or damaged in a copy.

use coffer_replica::CopyWriter;

use super::round::Round;
use crate::error::{Result, VaultError};

impl Round {
    /// Puts blobs again that were found, and has the round put catalogs and files as a whole.
    pub(super) async fn renew(&mut self, writer: &CopyWriter) -> Result<()> {
        let inner = self.inner()?;
        let findings = self.findings.clone();
        let found = findings.take();
        if found.are_files {
            self.renew_files();
        }
        if found.is_keystore {
            self.carrier.forget().await;
        }
        for (id, of) in found.buckets {
            if of.is_catalog {
                self.renewed.insert(id);
            }
            if of.blobs.is_empty() {
                continue;
            }
            let opened = inner
                .open_buckets
                .open(&inner.folder, &inner.keystore, id)
                .await;
            let put = match opened {
                Ok(bucket) => {
                    // A file that is not there is of an object deleted since, or lost here too.
                    let _pin = bucket.blobs.pin();
                    self.put_blobs(writer, &bucket, &of.blobs).await.map(drop)
                }
                Err(VaultError::NoSuchBucket) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = put {
                of.blobs.iter().for_each(|blob| findings.blob(id, *blob));
                return Err(error);
            }
        }
        Ok(())
    }
}
