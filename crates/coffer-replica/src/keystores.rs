//! Keystores in a copy: sealed by the caller, put under names that are given once, and the ones
//! before removed.
//!
//! A keystore is not a piece of a head, for heads of the window keep what they name, and of
//! keystores the newest only is to be there: the ones before may hold keys that were destroyed.

use std::time::Instant;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::find::listed;
use crate::head::KeystoreRef;
use crate::limits::{KEYSTORE_LOOKS, KEYSTORE_MAX_BYTES, VERSIONS_TRIED_EVERY};
use crate::names::{self, Number};
use crate::store::versions::names_version;
use crate::store::{Copy, create_versioned, get, read_versioned, remove};
use crate::write::CopyWriter;

/// Puts keystores into a copy, in the epoch of one start of its writer.
pub struct KeystoreWriter {
    copy: Copy,
    epoch: u32,
    /// What was put last, or may have been: the same bytes go again under the same name.
    attempt: Option<(Number, Bytes)>,
    /// What was put last, for sure.
    put: Option<KeystoreRef>,
    /// Whether all before that were removed.
    is_alone: bool,
    /// Whether what lies there under its name is known to be damaged.
    is_damaged: bool,
    /// Whether the store named a version of what was put, as one does that keeps what is removed.
    names_version: bool,
    /// When a trial showed that it does.
    kept: Option<Instant>,
}

/// What keeps those before from being gone.
const KEPT: &str = "its store keeps versions of what is removed, older keystores among them: turn \
                    versioning off for that bucket or container, and remove the older versions \
                    below keystores/ there by hand. It is looked again within ten minutes, and \
                    when the keystore changes";

/// A keystore that was found in a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKeystore {
    /// Which it is.
    pub reference: KeystoreRef,
    /// As it lies there.
    pub bytes: Bytes,
}

impl KeystoreWriter {
    /// Of this writer's epoch.
    pub fn new(writer: &CopyWriter) -> Self {
        Self {
            copy: writer.copy().clone(),
            epoch: writer.head().epoch,
            attempt: None,
            put: None,
            is_alone: false,
            is_damaged: false,
            names_version: false,
            kept: None,
        }
    }

    /// What was put last in this epoch. Those before it may be there still.
    pub fn put(&self) -> Option<&KeystoreRef> {
        self.put.as_ref()
    }

    /// Whether all before what was put last were removed.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Removes all but what was put last: those before it; later on what came late of them as well,
    /// where the answer had been lost, or not waited for; and what another put there.
    ///
    /// # Errors
    /// Of the store: the same can be tried again. [`ReplicaError::NotDone`] where it keeps what is
    /// removed, as far as it tells. [`ReplicaError::FencedByKeystore`] where another server's is
    /// beside it.
    pub async fn keep_alone(&mut self) -> Result<()> {
        let Some(at) = self.put.as_ref().map(|put| put.at) else {
            return Ok(());
        };
        self.is_alone = false;
        let others = self.listed_beside(at).await?;
        // What was put before versions were turned on named none, and is kept from now on.
        self.names_version |= !others.is_empty();
        for path in &others {
            remove(&*self.copy.store, path).await?;
        }
        if self.names_version && self.keeps_removed().await? {
            return Err(ReplicaError::NotDone(KEPT));
        }
        self.is_alone = true;
        Ok(())
    }

    /// Whether the store keeps what is removed, by a trial that is not made each time.
    async fn keeps_removed(&mut self) -> Result<bool> {
        if self
            .kept
            .is_some_and(|kept| kept.elapsed() < VERSIONS_TRIED_EVERY)
        {
            return Ok(true);
        }
        let keeps = self.copy.keeps_removed().await?;
        self.kept = keeps.then(Instant::now);
        self.names_version = keeps;
        Ok(keeps)
    }

    /// Whether what was put is missing there, or damaged; not, where the store does not tell.
    pub async fn is_lost(&self) -> bool {
        let Some(put) = &self.put else {
            return false;
        };
        // What is after it in its own epoch is none that this server put, and is removed.
        let found = self.copy.has_keystore(put, |_| false).await;
        use ReplicaError::{Altered, Missing};
        matches!(found, Err(Altered { .. } | Missing { .. }))
    }

    /// What was put is missing there, or damaged: the next is put in its place.
    pub fn forget(&mut self) {
        (self.put, self.attempt) = (None, None);
        (self.is_alone, self.is_damaged) = (false, true);
    }

    /// Puts a keystore of a generation as this epoch's, unless it is there. After a failure the
    /// bytes of the first attempt go again. Those before it stay until
    /// [`KeystoreWriter::keep_alone`], which a store may refuse: it is the newest beside them.
    ///
    /// # Errors
    /// Of the store: the same can be tried again. [`ReplicaError::Fenced`] and
    /// [`ReplicaError::FencedByKeystore`], and those that say that the copy is not there.
    pub async fn put_newest(&mut self, generation: u64, sealed: Vec<u8>) -> Result<KeystoreRef> {
        let at = Number {
            epoch: self.epoch,
            number: generation,
        };
        if self.put.as_ref().is_none_or(|put| put.at != at) {
            let again = self.attempt.as_ref().filter(|(tried, _)| *tried == at);
            let bytes = again.map_or_else(|| Bytes::from(sealed), |(_, bytes)| bytes.clone());
            self.attempt = Some((at, bytes.clone()));
            // Each change has the store tried anew: versions may have been turned off since.
            (self.is_alone, self.kept) = (false, None);
            self.check_own().await?;
            let (put, version) = self.create(at, bytes).await?;
            self.names_version = names_version(version.as_deref());
            // One that took the copy over while this was under way puts another beside it.
            self.check_own().await?;
            self.listed_beside(at).await?;
            (self.put, self.is_damaged) = (Some(put), false);
        }
        self.attempt = None;
        let reference = self.put.clone();
        reference.ok_or_else(|| ReplicaError::Missing {
            object: names::keystore(at).to_string(),
        })
    }

    /// Whether the copy is there, and this is its writer: a disk that is not mounted leaves an
    /// empty folder, in which a keystore would count for nothing.
    async fn check_own(&self) -> Result<()> {
        self.copy.check_record().await?;
        let newest = self.copy.newest_entry().await?;
        match newest.ok_or(ReplicaError::NoCopy)? {
            newest if newest.epoch() > self.epoch => Err(ReplicaError::Fenced {
                number: newest.number(),
            }),
            _ => Ok(()),
        }
    }

    /// With the version that the store names of it.
    async fn create(&self, at: Number, bytes: Bytes) -> Result<(KeystoreRef, Option<String>)> {
        let (store, path) = (&*self.copy.store, names::keystore(at));
        let sha256 = sha256_hex(&bytes);
        if self.is_damaged {
            let put = store.put(&path, bytes.into()).await?;
            return Ok((KeystoreRef { at, sha256 }, put.version));
        }
        let created = create_versioned(store, &path, bytes).await;
        if let Ok(Some(put)) = created {
            return Ok((KeystoreRef { at, sha256 }, put.version));
        }
        // In doubt, or there: it is read what lies there.
        let (found, version) = match read_versioned(store, &path, KEYSTORE_MAX_BYTES).await {
            Err(ReplicaError::Missing { object }) => {
                return Err(created.err().unwrap_or(ReplicaError::Missing { object }));
            }
            found => found?,
        };
        if sha256_hex(&found) != sha256 {
            return Err(ReplicaError::Altered {
                object: path.to_string(),
                problem: "another keystore is there, which this server did not put there",
            });
        }
        Ok((KeystoreRef { at, sha256 }, version))
    }

    /// Where those of earlier epochs and generations are, what was left of puts that were ended
    /// half-way, and what is of this epoch, which this server alone puts, and later than what it
    /// put: readers would take that for the newest. One of a later epoch is another server's, and
    /// may hold what this one lacks.
    async fn listed_beside(&self, at: Number) -> Result<Vec<Path>> {
        let store = &*self.copy.store;
        let there = listed(store, &Path::from(names::KEYSTORES)).await?;
        let numbered = |path: Path| {
            let name = path.filename()?;
            let finished = names::finished(name);
            Some((Number::from_name(finished)?, finished != name, path))
        };
        let there: Vec<_> = there.into_iter().filter_map(numbered).collect();
        let newest = there.iter().max_by_key(|(number, ..)| *number);
        if let Some((number, _, path)) = newest.filter(|(it, ..)| it.epoch > self.epoch) {
            return Err(ReplicaError::FencedByKeystore {
                object: path.to_string(),
                epoch: number.epoch,
                own: self.epoch,
            });
        }
        let tried = self.attempt.as_ref().map(|(tried, _)| *tried);
        let is_other = |(number, is_unfinished, _): &(Number, bool, Path)| {
            *number != at && Some(*number) != tried || *number == at && *is_unfinished
        };
        let others = there.into_iter().filter(is_other);
        Ok(others.map(|(.., path)| path).collect())
    }
}

impl Copy {
    /// Whether the copy has this very keystore, or a later one that is what readers take for one:
    /// they take the latest, so it is looked at that.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn has_keystore(
        &self,
        named: &KeystoreRef,
        is_keystore: impl Fn(&FoundKeystore) -> bool,
    ) -> Result<()> {
        let path = names::keystore(named.at);
        let missing = match get(&*self.store, &path, KEYSTORE_MAX_BYTES).await {
            Ok(found) if sha256_hex(&found) == named.sha256 => return Ok(()),
            Ok(_) => {
                return Err(ReplicaError::Altered {
                    object: path.to_string(),
                    problem: "its hash is another one",
                });
            }
            Err(missing @ ReplicaError::Missing { .. }) => missing,
            Err(error) => return Err(error),
        };
        for _ in 0..KEYSTORE_LOOKS {
            match newest_keystore(&*self.store).await {
                Ok(Some(later)) if later.reference.at > named.at => {
                    let object = later.reference.object();
                    let problem = "it is no keystore of this server, and the one that a head \
                                   names, which is before it, is not there";
                    let is_keystore = is_keystore(&later);
                    let altered = || ReplicaError::Altered { object, problem };
                    return is_keystore.then_some(()).ok_or_else(altered);
                }
                Ok(_) => break,
                // One after it was put meanwhile, and that one removed.
                Err(ReplicaError::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(missing)
    }
}

/// The newest keystore of a copy; none of one that holds none. Nothing tells yet that it is what
/// the server put there: the heads open with what is in it, and name it, or an earlier one.
///
/// # Errors
/// Of the store.
pub async fn newest_keystore(store: &dyn ObjectStore) -> Result<Option<FoundKeystore>> {
    let Some((at, path)) = list(store).await?.pop() else {
        return Ok(None);
    };
    let bytes = get(store, &path, KEYSTORE_MAX_BYTES).await?;
    let sha256 = sha256_hex(&bytes);
    let reference = KeystoreRef { at, sha256 };
    Ok(Some(FoundKeystore { reference, bytes }))
}

/// The newest keystore of a copy, unless it is the one that is known.
///
/// # Errors
/// Of the store. [`ReplicaError::Missing`] where there is none, or none any more.
pub async fn newer_keystore(
    store: &dyn ObjectStore,
    known: Option<&KeystoreRef>,
) -> Result<Option<FoundKeystore>> {
    let newest = list(store).await?.pop().map(|(at, _)| at);
    if newest.is_some() && newest == known.map(|known| known.at) {
        return Ok(None);
    }
    let found = newest_keystore(store).await?;
    let object = || names::KEYSTORES.to_owned();
    found
        .map(Some)
        .ok_or_else(|| ReplicaError::Missing { object: object() })
}

/// Those that are there, ascending.
async fn list(store: &dyn ObjectStore) -> Result<Vec<(Number, Path)>> {
    let listed = listed(store, &Path::from(names::KEYSTORES)).await?;
    let numbered = |path: Path| Some((Number::from_name(path.filename()?)?, path));
    let mut found: Vec<_> = listed.into_iter().filter_map(numbered).collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(found)
}
