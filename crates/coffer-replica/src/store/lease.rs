//! The lease of an engine: which of its gateways serves, as one object beside the log that is
//! changed by compare-and-swap alone.
//!
//! A lease decides who should write, so that the others wait and forward; it does not decide what
//! counts. That is decided where a head is created under its number, which a gateway that was
//! paused, or that the store lied to, fails at. So what is in a lease lies in the clear, and needs
//! no key: `docs/decisions/0061-an-engine-with-one-owner.md`.

use bytes::Bytes;
use coffer_seal::random_bytes;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::error::{ReplicaError, Result};
use crate::limits::{
    LEASE_ADDRESS_MAX_BYTES, LEASE_COUNT_MAX, LEASE_LASTS_MAX_MS, LEASE_MAX_BYTES,
    LEASE_REQUEST_TIMEOUT,
};
use crate::names::{CopyId, LEASE, PROBES};
use crate::store::{Store, create};

/// The only format there is.
const FORMAT: u32 = 1;

/// Who serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    format: u32,
    /// A random name of one taking by a gateway; earlier versions have one for each start.
    pub gateway: CopyId,
    /// How often the lease changed hands.
    pub number: u64,
    /// How often it was renewed: no two leases are the same bytes.
    pub renewals: u64,
    /// Where the gateway takes requests of others: a host and a port.
    pub address: String,
    /// How long it counts when it was seen last, in milliseconds.
    pub lasts_ms: u64,
    /// Its gateway gave it back.
    pub is_over: bool,
}

/// A lease as it lies in the store.
#[derive(Clone, Debug)]
pub struct FoundLease {
    /// What it says.
    pub lease: Lease,
    version: UpdateVersion,
}

/// The lease of one store.
#[derive(Clone)]
pub struct LeasePlace(Store);

impl Lease {
    /// The next one, for another gateway.
    pub fn taken(before: Option<&Self>, gateway: CopyId, address: String, lasts_ms: u64) -> Self {
        Self {
            format: FORMAT,
            gateway,
            number: before.map_or(0, |before| before.number) + 1,
            renewals: 0,
            address,
            lasts_ms,
            is_over: false,
        }
    }

    /// The same, renewed.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self {
            renewals: self.renewals + 1,
            ..self.clone()
        }
    }

    /// The same, given back.
    #[must_use]
    pub fn over(&self) -> Self {
        Self {
            is_over: true,
            ..self.renewed()
        }
    }

    /// What is in it that no gateway writes. It lies in the clear, so anything may be, and the next
    /// one counts on from it.
    fn excess(&self) -> Option<&'static str> {
        if self.number >= LEASE_COUNT_MAX || self.renewals >= LEASE_COUNT_MAX {
            Some("it counts beyond what any lease comes to")
        } else if self.lasts_ms > LEASE_LASTS_MAX_MS {
            Some("it would last longer than any that is written")
        } else if self.address.len() > LEASE_ADDRESS_MAX_BYTES {
            Some("its address is longer than any that is written")
        } else {
            None
        }
    }
}

impl LeasePlace {
    /// The lease in this store.
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// Tries whether the store creates and replaces objects on conditions, as an engine needs it.
    ///
    /// # Errors
    /// [`ReplicaError::NoConditions`], [`ReplicaError::NoSwap`]; of the store.
    pub async fn probe(&self) -> Result<()> {
        let name: [u8; 16] = random_bytes();
        let path = Path::from(format!("{PROBES}/{}", CopyId(name)));
        let tried = self.tried(&path).await;
        let removed = self.0.delete(&path).await;
        tried?;
        Ok(removed?)
    }

    async fn tried(&self, path: &Path) -> Result<()> {
        if !create(&*self.0, path, Bytes::from_static(b"1")).await? {
            // Another's, or ours, of which the answer was lost: it does not happen by itself.
            return Err(ReplicaError::NotDone(
                "the store says that the object of a trial is there already, as after an attempt \
                 of which the answer was lost: try again",
            ));
        }
        if create(&*self.0, path, Bytes::from_static(b"2")).await? {
            return Err(ReplicaError::NoConditions);
        }
        let first = version_of(&self.0.head(path).await?);
        let swapped = self.swap(path, Bytes::from_static(b"2"), first.clone());
        match swapped.await {
            Ok(Some(_)) => {}
            Ok(None) => return Err(ReplicaError::NoSwap { problem: REFUSED }),
            Err(ReplicaError::Store(error)) if is_unknown(&error) => {
                return Err(ReplicaError::NoSwap { problem: UNKNOWN });
            }
            Err(error) => return Err(error),
        }
        match self.swap(path, Bytes::from_static(b"3"), first).await? {
            Some(_) => Err(ReplicaError::NoSwap { problem: IGNORED }),
            None => Ok(()),
        }
    }

    /// What lies there; none, if nothing does.
    ///
    /// # Errors
    /// Of the store; [`ReplicaError::Altered`], [`ReplicaError::NewerFormat`].
    pub async fn read(&self) -> Result<Option<FoundLease>> {
        in_time(self.read_now()).await
    }

    async fn read_now(&self) -> Result<Option<FoundLease>> {
        let path = Path::from(LEASE);
        let found = match self.0.get(&path).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found?,
        };
        let altered = |problem| ReplicaError::Altered {
            object: LEASE.to_owned(),
            problem,
        };
        if found.meta.size > LEASE_MAX_BYTES {
            return Err(altered("it is longer than any that is written"));
        }
        let version = version_of(&found.meta);
        let text = found.bytes().await?;
        let lease: Lease = serde_json::from_slice(&text).map_err(|_| altered("it is no lease"))?;
        if lease.format != FORMAT {
            return Err(ReplicaError::NewerFormat {
                found: lease.format,
                known: FORMAT,
            });
        }
        match lease.excess() {
            Some(problem) => Err(altered(problem)),
            None => Ok(Some(FoundLease { lease, version })),
        }
    }

    /// Puts a lease in the place of the one that was found, or where there was none. None:
    /// another was there first.
    ///
    /// # Errors
    /// Of the store: then it is in doubt, and asked for again, or read.
    pub async fn put(
        &self,
        next: &Lease,
        before: Option<&FoundLease>,
    ) -> Result<Option<FoundLease>> {
        in_time(self.put_now(next, before)).await
    }

    async fn put_now(
        &self,
        next: &Lease,
        before: Option<&FoundLease>,
    ) -> Result<Option<FoundLease>> {
        let path = Path::from(LEASE);
        let text = Bytes::from(serde_json::to_vec(next).unwrap_or_default());
        let put = match before {
            None => create(&*self.0, &path, text).await.map(drop),
            Some(before) => {
                let swapped = self.swap(&path, text, before.version.clone()).await;
                if let Ok(Some(version)) = swapped {
                    let lease = next.clone();
                    return Ok(Some(FoundLease { lease, version }));
                }
                swapped.map(drop)
            }
        };
        // It was made, or an earlier attempt was of which the answer was lost, or another's is
        // there.
        let found = self.read_now().await?;
        match found {
            Some(found) if found.lease == *next => Ok(Some(found)),
            Some(found) if before.is_none_or(|before| found.lease != before.lease) => Ok(None),
            _ => put.and(Err(ReplicaError::NotDone(
                "the store said that another lease is there, or that it took this one, and has \
                 the one of before",
            ))),
        }
    }

    /// The new version; none, where another was there.
    async fn swap(
        &self,
        path: &Path,
        bytes: Bytes,
        version: UpdateVersion,
    ) -> Result<Option<UpdateVersion>> {
        let options = PutOptions::from(PutMode::Update(version));
        match self.0.put_opts(path, bytes.into(), options).await {
            Ok(done) => Ok(Some(UpdateVersion {
                e_tag: done.e_tag,
                version: done.version,
            })),
            Err(
                object_store::Error::Precondition { .. } | object_store::Error::NotFound { .. },
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

const REFUSED: &str = "it refused to replace an object that was just as it had been told";
const UNKNOWN: &str = "it does not know conditions on what is to be replaced";
const IGNORED: &str = "it replaced an object that was no longer as it had been told";

fn is_unknown(error: &object_store::Error) -> bool {
    use object_store::Error::{NotImplemented, NotSupported};
    matches!(error, NotImplemented { .. } | NotSupported { .. })
}

fn version_of(meta: &object_store::ObjectMeta) -> UpdateVersion {
    UpdateVersion {
        e_tag: meta.e_tag.clone(),
        version: meta.version.clone(),
    }
}

/// A lease that is waited for longer tells nothing any more.
async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = timeout(LEASE_REQUEST_TIMEOUT, work).await;
    done.unwrap_or_else(|_| {
        Err(ReplicaError::NoAnswer {
            seconds: LEASE_REQUEST_TIMEOUT.as_secs(),
        })
    })
}
