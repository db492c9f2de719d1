//! A bucket of the source and where it goes, while it is worked on.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::task::block_in_place;

use crate::migrate::body::{Opened, named, open_file, open_object};
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::Ledger;
use crate::migrate::report::BucketReport;
use crate::s3::{Client, ListedVersion, ObjectName, Paging};

/// What versioning is at a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Versioning {
    Never,
    Enabled,
    Suspended,
}

/// Which objects of a bucket may be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locks {
    None,
    /// Versions with ids of their own.
    WithIds,
    All,
}

impl Locks {
    fn may_be_on(self, version: &ListedVersion) -> bool {
        match self {
            Self::None => false,
            Self::WithIds => version.version_id != "null",
            Self::All => true,
        }
    }
}

impl Versioning {
    /// In a word.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Never => "not set",
            Self::Enabled => "enabled",
            Self::Suspended => "suspended",
        }
    }
}

/// A bucket of the source and where it goes.
pub(super) struct Place {
    /// Its name at the source; of one folder, nothing.
    pub(super) from: String,
    /// Which of its objects may be locked.
    pub(super) locks: Locks,
    /// Whether the source keeps versions: then an older one that is gone there is a difference.
    pub(super) source_keeps: bool,
    /// Whether the source says whether it does.
    pub(super) says_versioning: bool,
    /// Where it is read, if it is no folder.
    pub(super) client: Option<Arc<Client>>,
    /// Its folder, if it is one.
    pub(super) folder: Option<PathBuf>,
    /// Whether links below that folder are followed.
    pub(super) follows_links: bool,
    /// How the source is told.
    pub(super) text: String,
    /// The bucket at the target.
    pub(super) to: String,
    /// What names get before them there.
    pub(super) prefix: String,
    /// Whether that bucket is there.
    pub(super) is_there: bool,
    /// Whether something at the source could not be read, so that not all its names are known.
    pub(super) is_unread: AtomicBool,
    /// Whether it keeps versions, or did.
    pub(super) versioning: Versioning,
    /// Whether the dates of its answers are by the clock that times of objects are by; not set
    /// before that is known.
    pub(super) has_dates: OnceLock<bool>,
    pub(super) ledger: Ledger,
    pub(super) tally: Mutex<BucketReport>,
}

impl Place {
    /// Whether the bucket at the target keeps versions.
    pub(super) fn keeps_versions(&self) -> bool {
        self.versioning == Versioning::Enabled
    }

    /// Whether the source's versions are to be listed: it keeps them, or some came with their ids.
    pub(super) fn lists_versions(&self) -> bool {
        self.source_keeps || self.ledger.knows_ids()
    }

    /// Sees that a source that lists ids of versions says what its versioning is: else the target
    /// would keep none, and what is gone be left.
    ///
    /// # Errors
    /// [`MigrateError::UnsaidVersioning`].
    pub(super) fn check_versioning(&self, listed: &[ListedVersion]) -> Result<(), MigrateError> {
        let has_ids = || listed.iter().any(|it| it.version_id != "null");
        if self.says_versioning || !(self.ledger.knows_ids() || has_ids()) {
            return Ok(());
        }
        Err(MigrateError::UnsaidVersioning)
    }

    /// What a name becomes at the target.
    pub(super) fn at_target(&self, key: &str) -> ObjectName {
        ObjectName::new(&self.to, format!("{}{key}", self.prefix))
    }

    /// A version that was listed there.
    pub(super) fn version_at_target(&self, version: &ListedVersion) -> ObjectName {
        named(&self.to, &version.object.key, version)
    }

    /// How a version of the source is told.
    pub(super) fn what(&self, key: &str, version: &ListedVersion) -> String {
        match version.version_id.as_str() {
            "null" => format!("{}/{key}", self.text),
            id => format!("{}/{key}?versionId={id}", self.text),
        }
    }

    /// Opens a version of the source.
    pub(super) async fn open(
        &self,
        key: &str,
        version: &ListedVersion,
    ) -> Result<Opened, MigrateError> {
        match (&self.client, &self.folder) {
            (Some(client), _) => {
                let may_be_locked = self.locks.may_be_on(version);
                open_object(client, (&self.from, may_be_locked), version).await
            }
            (None, Some(folder)) => open_file((folder, self.follows_links), key, version).await,
            (None, None) => Err(MigrateError::Absent),
        }
    }

    /// Whether the source has an object of this name now.
    ///
    /// # Errors
    /// What asking it meets.
    pub(super) async fn has_by_now(&self, key: &str) -> Result<bool, MigrateError> {
        match (&self.client, &self.folder) {
            (Some(client), _) => {
                match client.head_object(&ObjectName::new(&self.from, key)).await {
                    Ok(_) => Ok(true),
                    Err(error) if error.is_absent() => Ok(false),
                    Err(error) => Err(error.into()),
                }
            }
            (None, Some(folder)) => is_file_there(&folder.join(key)),
            (None, None) => Ok(false),
        }
    }

    /// Whether a version that is to be deleted at the target came of one that the source still has:
    /// a list may leave out some of a name, and asked for that name alone, tell them.
    ///
    /// # Errors
    /// What asking it meets.
    pub(super) async fn has_still(
        &self,
        key: &str,
        there: &ListedVersion,
        is_name_gone: bool,
    ) -> Result<bool, MigrateError> {
        let Some(client) = self.client.as_ref().filter(|_| self.lists_versions()) else {
            return Ok(is_name_gone && self.has_by_now(key).await?);
        };
        let mut paging = Paging::default();
        let mut after = None;
        loop {
            let page = { client.list_versions(&self.from, key, after.as_ref()) }.await?;
            let is_of_it = |it: &&ListedVersion| it.object.key == key;
            let is_it = |it: ListedVersion| is_name_gone || self.ledger.came_of(key, there, &it);
            let is_past = page.versions.iter().any(|it| it.object.key.as_str() > key);
            let next = page.next.clone().filter(|_| !is_past);
            paging.follow(client, page.names(), next.as_ref())?;
            if page.versions.iter().filter(is_of_it).cloned().any(is_it) {
                return Ok(true);
            }
            if next.is_none() {
                return Ok(false);
            }
            after = next;
        }
    }

    pub(super) fn count(&self, add: impl FnOnce(&mut BucketReport)) {
        add(&mut self.tally.lock());
    }
}

/// Whether something else than a folder has this name. A link counts, wherever it leads.
fn is_file_there(path: &Path) -> Result<bool, MigrateError> {
    match block_in_place(|| fs::symlink_metadata(path)) {
        Ok(there) => Ok(!there.is_dir()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(MigrateError::local("looking for it again", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_where_no_folder_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        for there in ["file", "link"] {
            assert!(is_file_there(&at(there)).unwrap(), "{there}");
        }
        for none in ["folder", "folder/", "none", "none/file", "file/below"] {
            assert!(!is_file_there(&at(none)).unwrap(), "{none}");
        }
    }
}
