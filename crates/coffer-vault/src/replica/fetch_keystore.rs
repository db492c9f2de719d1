//! The folder that is restored into: what it may hold, and the keystore of a copy that one goes
//! along with, fetched into one that has none.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use coffer_durable::write_file_atomically;
use coffer_keys::{CarriedKeystore, ExportIdentity, KeysError};
use coffer_replica::{Copy, CopyRecord, KeystoreRef, ReplicaError, Store, newest_keystore};

use serde::{Deserialize, Serialize};

use crate::backup::BackupRecord;
use crate::data_folder::failed;
use crate::error::{CopyError, Result};

/// What a folder may hold that is restored into: a keystore, and what opens it; and what a restore
/// left that was ended while it wrote the mark, or a start that made the lock.
pub(crate) const KEY_FILES: [&str; 15] = [
    "keystore",
    "keystore.source",
    "root.key",
    "root.passphrase",
    "root-2.passphrase",
    "root.token",
    "root-2.token",
    "tls",
    "backup.json.new",
    "lock",
    "lost+found",
    "keystore.new",
    "root.key.new",
    FETCHED_FILE,
    "keystore.fetched.new",
];

/// Says which keystore was fetched into a folder, for as long as it is restored into.
const FETCHED_FILE: &str = "keystore.fetched";

/// What comes with a keystore that is sealed for recipients, and is not to be there before.
pub(crate) const OPENERS: [&str; 6] = [
    "root.key",
    "keystore.source",
    "root.passphrase",
    "root-2.passphrase",
    "root.token",
    "root-2.token",
];

/// A keystore that was fetched.
#[derive(Serialize, Deserialize)]
pub(super) struct FetchedKeystore {
    reference: KeystoreRef,
    has_root: bool,
    /// Whether this very restore put it there.
    #[serde(skip)]
    is_new: bool,
}

/// Fetches the newest keystore of a copy, if the folder has none and the copy does, or one that an
/// interrupted restore fetched and that is not the newest any more. A folder that is not there is
/// made.
///
/// # Errors
/// [`ReplicaError::Altered`] where it is another than its name says, or than the copy's record.
pub(super) async fn fetch_keystore(
    (store, record): (&Store, &CopyRecord),
    data: &Path,
    identity: Option<&ExportIdentity>,
) -> Result<Option<FetchedKeystore>> {
    let mut left = FetchedKeystore::left(data);
    if let Some(fetched) = left.take_if(|fetched| !fetched.is_whole(data)) {
        fetched.put_back(data);
    }
    if left.is_none() && data.join("keystore").exists() {
        return Ok(None);
    }
    let Some(found) = newest_keystore(&**store).await? else {
        return Ok(left);
    };
    // Whether the heads name none that is newer is looked at later.
    if let Some(fetched) = left.take_if(|left| !left.reference.is_before(&found.reference)) {
        return Ok(Some(fetched));
    }
    let has_root = CarriedKeystore::is_for_recipients(&found.bytes);
    if has_root && identity.is_none() {
        return Err(CopyError::IdentityMissing.into());
    }
    let carried = read_carried(&found.bytes, identity)?;
    if carried.id().to_string() != record.keystore {
        return Err(ReplicaError::Altered {
            object: found.reference.object(),
            problem: "it is of another server than the copy",
        }
        .into());
    }
    found.reference.check_generation(carried.generation())?;
    if !data.exists() {
        let made = DirBuilder::new().mode(0o700).create(data);
        made.map_err(failed("make", data))?;
    }
    check_files(data)?;
    // Before the other is noted: a crash leaves none, which is fetched again.
    if let Some(older) = left {
        older.put_back(data);
    }
    let holds_opener = OPENERS.iter().any(|name| data.join(name).exists());
    if has_root && holds_opener {
        let problem = "it holds what opens another keystore (`root.key` or the like), and the one \
                       in the copy comes with a root key of its own: take an empty folder";
        return Err(target(data, problem));
    }
    let fetched = FetchedKeystore {
        reference: found.reference,
        has_root,
        is_new: true,
    };
    fetched.note(data)?;
    if let Err(error) = carried.place(data) {
        fetched.put_back(data);
        return Err(error.into());
    }
    Ok(Some(fetched))
}

impl FetchedKeystore {
    /// Whether the copy's newest head names this keystore or an earlier one: a store that withholds
    /// the newest shows one with keys that were destroyed since.
    pub(super) async fn check_newest(&self, copy: &Copy) -> Result<()> {
        let newest = copy.newest_head().await?;
        let named = newest.and_then(|(head, _)| head.keystore);
        match named {
            Some(named) if self.reference.is_before(&named) => Err(ReplicaError::OldKeystore {
                found: self.reference.generation(),
                named: named.generation(),
            }
            .into()),
            _ => Ok(()),
        }
    }

    /// Whether it goes again where nothing was restored by it: a folder that is not restored into
    /// keeps none, and one that is keeps what was there before.
    pub(super) fn is_of_no_use(&self, data: &Path) -> bool {
        self.is_new || !BackupRecord::is_begun(data)
    }

    /// What an interrupted restore fetched.
    fn left(data: &Path) -> Option<Self> {
        let text = fs::read(data.join(FETCHED_FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Notes which it is, before it is there.
    fn note(&self, data: &Path) -> Result<()> {
        let path = data.join(FETCHED_FILE);
        let text = serde_json::to_vec(self).unwrap_or_default();
        let written = write_file_atomically(&path, &text).map_err(std::io::Error::from);
        written.map_err(failed("write", &path))
    }

    /// Whether all of it was placed.
    fn is_whole(&self, data: &Path) -> bool {
        data.join("keystore").exists() && (!self.has_root || data.join("root.key").exists())
    }

    /// The restore is done: it is the folder's own.
    pub(super) fn keep(data: &Path) {
        let _ = fs::remove_file(data.join(FETCHED_FILE));
    }

    /// Removes it again: it is of no use, or was not placed as a whole.
    pub(super) fn put_back(&self, data: &Path) {
        if self.has_root && data.join("keystore").exists() {
            let _ = fs::remove_file(data.join("root.key"));
        }
        for name in ["keystore", FETCHED_FILE] {
            let _ = fs::remove_file(data.join(name));
        }
    }
}

/// Whether a folder holds nothing but keys, or what an interrupted restore left.
pub(crate) fn check_files(data: &Path) -> Result<()> {
    let is_going_on = BackupRecord::is_begun(data);
    if let Ok(Some(_)) = BackupRecord::read(data) {
        let problem = "it was restored into already, and is complete: `coffer serve --data` with \
                       this folder and --accept-rollback goes on from it; to restore again, take \
                       another folder";
        return Err(target(data, problem));
    }
    for entry in fs::read_dir(data).map_err(failed("read", data))? {
        let name = entry.map_err(failed("read", data))?.file_name();
        let is_key = KEY_FILES.iter().any(|known| name == *known);
        if !is_going_on && !is_key {
            let problem = "it holds more than a keystore and what opens it: take a folder of its \
                           own";
            return Err(target(data, problem));
        }
    }
    Ok(())
}

/// Reads the keystore of a copy, by the identity that was given.
pub(crate) fn read_carried(
    bytes: &[u8],
    identity: Option<&ExportIdentity>,
) -> Result<CarriedKeystore> {
    let carried = CarriedKeystore::read(bytes, identity);
    carried.map_err(|error| match error {
        KeysError::ExportDidNotOpen if identity.is_some() => CopyError::OtherIdentity.into(),
        error => error.into(),
    })
}

pub(crate) fn target(data: &Path, problem: &'static str) -> crate::error::VaultError {
    let path = data.display().to_string();
    CopyError::Target { path, problem }.into()
}
