//! The keystore of the copy: with each new one the standby learns of new buckets, and loses the
//! keys that an erase destroyed.

use std::path::{Path, PathBuf};

use coffer_durable::rfc3339;
use coffer_keys::{CarriedKeystore, KeyFolder, Keystore, SourceSecrets, SourceSpec};
use coffer_replica::{
    Copy, CopyReader, CopyRecord, FoundKeystore, KeystoreRef, ReplicaError, Store, newer_keystore,
};

use super::{Reached, Standby, states};
use crate::backup::BackupRecord;
use crate::blocking::blocking;
use crate::data_folder::Folder;
use crate::error::{BackupError, CopyError, Result, VaultError};
use crate::limits::STANDBY_KEYSTORES_TRIED;
use crate::replica::{OPENERS, read_carried, target};

impl Standby {
    /// Reaches the copy, with its newest keystore and its newest head. Between the looks for both
    /// its server may put another keystore, remove the one before, and name it in a head: so both
    /// are looked for again before it is said that there is none, or an older one.
    pub(super) async fn reach_newest(&mut self) -> Result<CopyReader> {
        let mut tried = 0;
        loop {
            tried += 1;
            match self.try_reach().await {
                Err(error) if tried < STANDBY_KEYSTORES_TRIED && is_of_keystore(&error) => {}
                done => return done,
            }
        }
    }

    async fn try_reach(&mut self) -> Result<CopyReader> {
        self.reach().await?;
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        self.newest(reached).await
    }

    /// Reaches the copy, with its newest keystore.
    pub(super) async fn reach(&mut self) -> Result<()> {
        let (store, known) = match &self.reached {
            Some(reached) => (reached.store.clone(), Some(&reached.reference)),
            None => {
                let from = self.from.clone();
                let store = blocking(move || Ok(from.open(false)?)).await?;
                (store, None)
            }
        };
        let found = newer_keystore(&*store, known).await;
        let found = match found {
            Err(ReplicaError::Missing { .. }) => return Err(self.without_keystore(&store).await),
            found => found?,
        };
        let Some(found) = found else {
            return Ok(());
        };
        let record = self.record(&store).await?;
        let (carried, tried) = self.try_open(&found).await?;
        let (id, key) = (tried.id(), tried.system_key());
        let copy = Copy::of(store.clone(), record.clone(), id, &key).await?;
        // Only what opens the newest head of this copy takes the place of what the folder has.
        let newest = CopyReader::newest(copy.clone(), self.known.as_ref()).await?;
        if let Some(written) = &self.written {
            newest.check_goes_on_from(written).await?;
        }
        check_head(&newest, &found.reference)?;
        let keystore = self.place(carried).await?;
        self.reached = Some(Reached {
            store,
            keystore,
            reference: found.reference,
            copy,
            record,
        });
        Ok(())
    }

    /// Why there is no keystore.
    async fn without_keystore(&self, store: &Store) -> VaultError {
        match CopyRecord::read(&**store).await {
            Err(error) => error.into(),
            Ok(_) => CopyError::NoKeystore.into(),
        }
    }

    /// What this is to who reads its log.
    pub(super) fn called(&self) -> &'static str {
        if self.link.is_of_engine() {
            "this gateway"
        } else {
            "the standby"
        }
    }

    /// What is told of an engine's log. It is never without a keystore; one that is not complete
    /// has no other to ask for it, and one that was put back can't be made anew elsewhere.
    pub(super) fn told_of_log(&self, error: VaultError) -> VaultError {
        match error {
            VaultError::Backup(BackupError::Copy(of)) if self.link.is_of_engine() => match of {
                CopyError::NeverComplete => CopyError::EngineNeverComplete.into(),
                CopyError::NoKeystore => CopyError::EngineKeystoreLost.into(),
                CopyError::Replica(
                    ReplicaError::RolledBack { known: number, .. }
                    | ReplicaError::Replaced { number },
                ) => CopyError::EngineRolledBack { number }.into(),
                of => of.into(),
            },
            error => error,
        }
    }

    /// Opens a keystore that was found, beside what the folder has, and refuses one that is not of
    /// the server that is followed: any that can write to the store can put one there, and seal it
    /// for the same recipients.
    async fn try_open(&self, found: &FoundKeystore) -> Result<(CarriedKeystore, Keystore)> {
        let has_root = CarriedKeystore::is_for_recipients(&found.bytes);
        if has_root && self.identity.is_none() {
            return Err(CopyError::FollowingIdentityMissing.into());
        }
        let carried = read_carried(&found.bytes, self.identity.as_ref())?;
        let data = self.data().to_owned();
        let (source, secrets) = (self.vault.source.clone(), self.vault.secrets.clone());
        let reference = found.reference.clone();
        blocking(move || {
            Folder::assure_own(&data)?;
            let is_first = !data.join("keystore").exists();
            if is_first && has_root && OPENERS.iter().any(|name| data.join(name).exists()) {
                let problem = "it holds what opens another keystore (`root.key` or the like), and \
                               the one in the copy comes with a root key of its own: take an \
                               empty folder";
                return Err(target(&data, problem));
            }
            if !BackupRecord::is_begun(&data) {
                BackupRecord::begun(carried.id(), rfc3339(0)).write(&data)?;
            }
            let source = source.as_ref();
            let own = own_keystore(&data, source, &secrets);
            let tried = states::try_keys(&data, &carried, |folder| open(folder, source, &secrets));
            let is_other = match (&own, &tried) {
                (Some(own), Ok(tried)) => !is_same_server(own, tried),
                (Some(own), Err(_)) => own.id() != carried.id(),
                (None, _) => false,
            };
            if is_other {
                let object = reference.object();
                return Err(CopyError::ForeignKeystore { object }.into());
            }
            reference.check_generation(carried.generation())?;
            Ok((carried, tried?))
        })
        .await
    }

    /// Puts a keystore into the folder, in the place of the one before, and opens it there.
    async fn place(&self, carried: CarriedKeystore) -> Result<Keystore> {
        let data = self.data().to_owned();
        let (source, secrets) = (self.vault.source.clone(), self.vault.secrets.clone());
        blocking(move || {
            Folder::assure_own(&data)?;
            carried.place(&data)?;
            open(&data, source.as_ref(), &secrets)
        })
        .await
    }

    /// The copy as its newest head has it.
    async fn newest(&self, reached: &Reached) -> Result<CopyReader> {
        let reader = CopyReader::newest(reached.copy.clone(), self.known.as_ref()).await?;
        check_head(&reader, &reached.reference)?;
        Ok(reader)
    }
}

/// Whether it says that there is no keystore, or an older one than is named.
fn is_of_keystore(error: &VaultError) -> bool {
    let VaultError::Backup(BackupError::Copy(error)) = error else {
        return false;
    };
    matches!(
        error,
        CopyError::NoKeystore | CopyError::Replica(ReplicaError::OldKeystore { .. })
    )
}

/// Whether a head can be followed with this keystore.
pub(super) fn check_head(reader: &CopyReader, keystore: &KeystoreRef) -> Result<()> {
    let head = reader.head();
    if head.as_of_ms == 0 {
        return Err(CopyError::NeverComplete.into());
    }
    match &head.keystore {
        None => Err(CopyError::NoKeystore.into()),
        Some(named) if keystore.is_before(named) => Err(ReplicaError::OldKeystore {
            found: keystore.generation(),
            named: named.generation(),
        }
        .into()),
        Some(_) => Ok(()),
    }
}

/// The keystore of the state that is served; where none is, the folder's.
fn own_keystore(
    data: &Path,
    source: Option<&SourceSpec>,
    secrets: &SourceSecrets,
) -> Option<Keystore> {
    let served = states::newest(data).map(|(folder, _)| folder);
    let mut folders = served.iter().map(PathBuf::as_path).chain([data]);
    folders.find_map(|folder| open(folder, source, secrets).ok())
}

/// Whether two keystores are of one server: an id alone can be copied, for it is in the clear.
pub(super) fn is_same_server(one: &Keystore, other: &Keystore) -> bool {
    one.id() == other.id() && one.system_key() == other.system_key()
}

/// Opens the keystore that the folder has.
pub(super) fn open(
    data: &Path,
    source: Option<&SourceSpec>,
    secrets: &SourceSecrets,
) -> Result<Keystore> {
    Ok(KeyFolder::new(data).open_read_only(source, secrets)?)
}
