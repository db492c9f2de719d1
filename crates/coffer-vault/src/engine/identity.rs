//! The identity of an engine whose gateways share a passphrase or a token: it lies in the store,
//! sealed by that, and is nowhere else but in the memory of gateways.

use std::path::PathBuf;

use bytes::Bytes;
use coffer_keys::{
    ExportIdentity, FoundIdentity, KeysError, SealedIdentity, SourceSecrets, SourceSpec,
    open_identity,
};
use coffer_replica::{CopyRecord, IdentityPlace, Place, Store};

use super::cache::check_cache;
use crate::blocking::blocking;
use crate::error::{CopyError, Result};

/// What the store of an engine has of its identity.
pub struct EngineIdentity {
    from: Place,
    store: Store,
    found: Option<Bytes>,
}

impl EngineIdentity {
    /// Looks into the store.
    ///
    /// # Errors
    /// Of the store; of an object that is too long.
    pub async fn look(from: &Place) -> Result<Self> {
        let (from, opened) = (from.clone(), from.clone());
        let store = blocking(move || Ok(opened.open(false)?)).await?;
        let found = IdentityPlace::new(store.clone()).read().await?;
        Ok(Self { from, store, found })
    }

    /// Whether there is one. If not, a gateway that starts makes it.
    pub fn is_there(&self) -> bool {
        self.found.is_some()
    }

    /// The identity that is there.
    ///
    /// # Errors
    /// [`CopyError::EngineIdentity`]; of the token.
    pub async fn open(self, source: SourceSpec, secrets: SourceSecrets) -> Result<ExportIdentity> {
        let found = self.found.ok_or(CopyError::EngineIdentity {
            problem: "is not there",
        })?;
        opened(found, source, secrets).await
    }

    /// The identity that is there; where there is none and no log either, one that is made: for the
    /// gateway whose cache is in this folder. Of several that make one at once, one counts.
    ///
    /// # Errors
    /// As [`EngineIdentity::open`]; of a store that has a log and no identity; as
    /// [`prepare_cache`](super::prepare_cache); of the store, and then one may be there.
    pub async fn open_or_make(
        self,
        source: SourceSpec,
        secrets: SourceSecrets,
        cache: PathBuf,
    ) -> Result<ExportIdentity> {
        let place = IdentityPlace::new(self.store.clone());
        let mut found = self.found;
        if found.is_none() && CopyRecord::is_filled(&*self.store).await? {
            // Another gateway may have made both by now.
            found = place.read().await?;
            if found.is_none() {
                return Err(CopyError::EngineIdentity { problem: WITHOUT }.into());
            }
        }
        if let Some(found) = found {
            return opened(found, source, secrets).await;
        }
        let (spec, with, from) = (source.clone(), secrets.clone(), self.from);
        let make = move || -> Result<_> {
            check_cache(&cache, &from, false)?;
            Ok(SealedIdentity::make(&spec, &with)?)
        };
        let made = blocking(make).await?;
        let sealed = Bytes::from(made.sealed.clone());
        let counts = place.settle(sealed.clone()).await?;
        if counts == sealed {
            tracing::info!(source = %source, "made the engine's identity, sealed in its store");
            return Ok(made.identity);
        }
        take_back(move || made.withdraw()).await;
        opened(counts, source, secrets).await
    }
}

/// Takes back what was made and does not count. Where the token fails, it keeps a key that opens
/// nothing that lies anywhere: that is told, and holds up no gateway. Whether nothing is left.
async fn take_back(
    withdraw: impl FnOnce() -> std::result::Result<(), KeysError> + Send + 'static,
) -> bool {
    let taken = blocking(move || Ok(withdraw()?)).await;
    if let Err(error) = &taken {
        tracing::warn!(%error, "the token keeps a key of an identity that does not count");
    }
    taken.is_ok()
}

async fn opened(
    found: Bytes,
    source: SourceSpec,
    secrets: SourceSecrets,
) -> Result<ExportIdentity> {
    let open = move || -> Result<_> { Ok(open_identity(&found, &source, &secrets)?) };
    let problem = match blocking(open).await? {
        FoundIdentity::Opened(identity) => return Ok(identity),
        FoundIdentity::OtherPassphrase => OTHER_PASSPHRASE,
        FoundIdentity::NoKey => NO_KEY,
        FoundIdentity::OtherSource => OTHER_SOURCE,
        FoundIdentity::Costly => COSTLY,
        FoundIdentity::Damaged => DAMAGED,
    };
    Err(CopyError::EngineIdentity { problem }.into())
}

const WITHOUT: &str = "is not there, and a log is: its gateways are given the identity \
                       (--identity FILE), or the store lost it, and it is to be put back";
const OTHER_PASSPHRASE: &str = "does not open with this passphrase: it is another one, or the \
                                object was altered";
const NO_KEY: &str = "needs a key that this token does not hold, or was altered";
const OTHER_SOURCE: &str = "is not sealed by the kind of source that --root-key names";
const COSTLY: &str = "asks for more memory to try a passphrase than is given to that: seal it anew \
                      with less work";
const DAMAGED: &str = "is none, or was altered: put back the one that was there";

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use std::fs;
    use std::path::Path;

    use coffer_replica::CopyRecord;
    use coffer_seal::KeystoreId;
    use zeroize::Zeroizing;

    use super::super::cache::note_log;
    use super::*;

    fn place(folder: &Path) -> Place {
        Place::parse(&format!("file://{}", folder.display())).unwrap()
    }

    fn secrets(passphrase: &str) -> SourceSecrets {
        SourceSecrets {
            passphrase: Some(Zeroizing::new(passphrase.as_bytes().to_vec())),
            pin: None,
        }
    }

    /// As a gateway does; who its keystore is sealed for, or why there is no telling.
    async fn recipient(
        store: &Path,
        cache: &Path,
        passphrase: &str,
    ) -> std::result::Result<String, String> {
        let there = EngineIdentity::look(&place(store)).await.unwrap();
        let (source, secrets) = (SourceSpec::Passphrase, secrets(passphrase));
        let opened = there.open_or_make(source, secrets, cache.to_owned()).await;
        let opened = opened.map_err(|error| error.to_string())?;
        Ok(opened.recipient().to_string())
    }

    #[tokio::test]
    async fn all_who_have_the_passphrase_have_one_identity() {
        let (store, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, cache) = (store.path(), cache.path());
        let (one, two) = tokio::join!(
            recipient(at, cache, "six random words"),
            recipient(at, cache, "six random words")
        );
        assert!(one.is_ok() && one == two, "{one:?} {two:?}");
        let lies_there = fs::read(at.join("identity")).unwrap();
        let refused = recipient(at, cache, "other words").await.unwrap_err();
        assert!(
            refused.contains("does not open with this passphrase"),
            "{refused}"
        );
        assert_eq!(fs::read(at.join("identity")).unwrap(), lies_there);
        fs::write(at.join("identity"), "none").unwrap();
        let damaged = recipient(at, cache, "six random words").await.unwrap_err();
        assert!(damaged.contains("was altered"), "{damaged}");
    }

    #[tokio::test]
    async fn who_comes_too_late_with_one_opens_the_one_that_counts() {
        let (store, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, cache) = (store.path(), cache.path());
        let late = EngineIdentity::look(&place(at)).await.unwrap();
        let counts = recipient(at, cache, "six random words").await.unwrap();
        let (source, secrets) = (SourceSpec::Passphrase, secrets("six random words"));
        let opened = late.open_or_make(source, secrets, cache.to_owned()).await;
        assert_eq!(opened.unwrap().recipient().to_string(), counts);
    }

    #[tokio::test]
    async fn a_token_that_keeps_what_does_not_count_holds_nothing_up() {
        assert!(take_back(|| Ok(())).await);
        assert!(!take_back(|| Err(KeysError::TokenKeepsKey)).await);
    }

    #[tokio::test]
    async fn none_is_made_beside_a_log_or_in_place_of_one_that_was_lost() {
        let (store, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, cache) = (store.path(), cache.path());
        let record = CopyRecord::of_engine(KeystoreId([1; 16]));
        note_log(cache, &place(at), record).unwrap();
        let refused = recipient(at, cache, "six random words").await.unwrap_err();
        assert!(refused.contains("all that is left of it"), "{refused}");
        let record = serde_json::to_vec(&CopyRecord::new(KeystoreId([1; 16]))).unwrap();
        fs::write(at.join("copy.json"), record).unwrap();
        fs::create_dir_all(at.join("heads/000000000")).unwrap();
        fs::write(at.join("heads/000000000/000000000001"), "sealed").unwrap();
        let refused = recipient(at, cache, "six random words").await.unwrap_err();
        assert!(refused.contains("is not there, and a log is"), "{refused}");
        assert!(!at.join("identity").exists());
    }
}
