//! What a copy is made of: another object, which is to be readable when the copy commits, too.

use coffer_store::record::{ChecksumAlgorithm, ObjectName};
use coffer_store::version::Which;

use crate::access::{BucketName, Right, Subject};
use crate::digest::DigestPlan;
use crate::error::{BodyError, Result};
use crate::objects::conditions::Conditions;
use crate::objects::ingest::Incoming;
use crate::open_buckets::CustomerKey;
use crate::vault::Vault;

/// An object to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// Its bucket.
    pub bucket: BucketName,
    /// Its name.
    pub name: ObjectName,
    /// Which version of it.
    pub which: Which,
    /// Only if.
    pub conditions: Conditions,
    /// The client's key that it is sealed under, where it is.
    pub customer_key: Option<CustomerKey>,
}

/// The bucket that a copy is made from, and who makes it; none of what is no copy.
pub(crate) struct Source(Option<(Vault, Subject, BucketName)>);

impl Source {
    /// What is copied, if anything is, to be asked again at the commit.
    pub(crate) fn of(vault: &Vault, subject: &Subject, from: Option<BucketName>) -> Self {
        Self(from.map(|from| (vault.clone(), subject.clone(), from)))
    }

    /// Sees that who copies may still read there: what is said of sharing a bucket may have been
    /// changed while its bytes were copied.
    ///
    /// # Errors
    /// [`AccessDenied`](crate::VaultError::AccessDenied), and those of finding what is copied.
    pub(crate) async fn still_readable(self) -> Result<()> {
        match self.0 {
            Some((vault, subject, from)) => {
                let readable = vault.readable(&subject, &from, Right::Read);
                readable.await.map(drop)
            }
            None => Ok(()),
        }
    }
}

/// An object's bytes as an upload.
pub(crate) fn incoming_copy(
    body: crate::objects::body::ObjectBody,
    checksum: Option<ChecksumAlgorithm>,
) -> Incoming {
    use futures::TryStreamExt;
    Incoming {
        declared_bytes: Some(body.remaining_bytes()),
        digests: DigestPlan {
            checksum,
            md5: false,
        },
        body: Box::pin(body.map_err(|error| BodyError(Box::new(error)))),
        check: Box::new(|_| Ok(())),
        is_proven: true,
        arrived: None,
    }
}
