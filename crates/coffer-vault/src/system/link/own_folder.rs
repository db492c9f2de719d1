//! Where another folder has the data folder's name, the database there is not looked at: to open it
//! would put a copy in the place of the log of a server that runs there, and to close ours would
//! remove that log, by path.

use coffer_durable::check_own_folder;

use super::Link;
use crate::data_folder::failed;
use crate::error::Result;

impl Link {
    /// To be called before the files are looked at.
    pub(super) fn assure_own_folder(&self) -> Result<()> {
        check_own_folder(&self.path).map_err(failed("use", &self.path))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.assure_own_folder().is_err() {
            self.drop_connection();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use coffer_durable::OwnFolder;
    use coffer_seal::SecretKey;

    use crate::system::System;

    #[test]
    fn a_database_in_a_folder_that_took_the_name_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let (data, moved) = (root.path().join("data"), root.path().join("moved"));
        let key = SecretKey::from_bytes([0x0d; 32]);
        let change = |system: &System| system.held().change(|_| Ok(()));
        fs::create_dir(&data).unwrap();
        let own = OwnFolder::hold(&data, File::open(&data).unwrap()).unwrap();
        let old = System::open(&data.join("system.db"), &key).unwrap();
        change(&old).unwrap();
        // A backup that was put in its place, with a log of its own.
        fs::rename(&data, &moved).unwrap();
        fs::create_dir(&data).unwrap();
        for name in ["system.db", "system.db-wal"] {
            fs::copy(moved.join(name), data.join(name)).unwrap();
        }
        let files = || {
            let stamp = |entry: fs::DirEntry| {
                let metadata = entry.metadata().unwrap();
                let changed = std::os::unix::fs::MetadataExt::ctime_nsec(&metadata);
                let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
                (entry.file_name(), inode, changed)
            };
            let entries = fs::read_dir(&data).unwrap();
            let mut files: Vec<_> = entries.map(|entry| stamp(entry.unwrap())).collect();
            files.sort();
            files
        };
        let before = files();
        for _ in 0..2 {
            assert!(change(&old).is_err());
            assert!(old.assure_certain().is_err());
        }
        drop(old);
        assert_eq!(files(), before);
        drop(own);
        let ours = System::open(&moved.join("system.db"), &key).unwrap();
        change(&ours).unwrap();
    }
}
