//! Copies of a keystore that is in use: the keystore with what belongs to it in the data folder,
//! but for a root key that can be read.

use std::fs;
use std::path::Path;

use coffer_durable::{Access, Folder, NewFile, write_file_atomically};

use crate::error::KeysError;
use crate::key_folder::KeyFolder;
use crate::keystore::copies::Copies;
use crate::keystore::copy::Copy;
use crate::keystore::state::{Keystore, open_slots};
use crate::limits::SLOT_BYTES;
use crate::root::record::{PlacedSource, SourceRecord};
use crate::root::spec::SourceSpec;

impl KeyFolder {
    /// Copies the keystore that was made or opened here into another folder: the keystore, which
    /// source its root key is in, and what that source keeps sealed in the data folder. Not
    /// `root.key`: where that lies decides what a copy is worth. Gives the generation of the copy.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written.
    pub fn copy_into(&self, keystore: &Keystore, folder: &Path) -> Result<u64, KeysError> {
        self.placed(|placed| self.copy_placed(keystore, placed, folder))
    }

    fn copy_placed(
        &self,
        keystore: &Keystore,
        placed: &PlacedSource,
        folder: &Path,
    ) -> Result<u64, KeysError> {
        // As long as this is held, neither the keystore nor its root key is changed.
        let state = keystore.settled()?;
        let newest = state.copies.newest();
        place_keystore(newest, folder)?;
        if placed.spec != SourceSpec::File(None) {
            let record = SourceRecord {
                current: placed.clone(),
                next: None,
            };
            record.write(folder)?;
        }
        let is_sealed = matches!(placed.spec, SourceSpec::Passphrase | SourceSpec::Token(_));
        if let Some(name) = placed.file.filter(|_| is_sealed) {
            let (from, to) = (self.keystore().with_file_name(name), folder.join(name));
            let bytes = fs::read(&from).map_err(KeysError::io("read", &from))?;
            write_file_atomically(&to, &bytes).map_err(KeysError::durable(&to))?;
        }
        Ok(newest.generation())
    }
}

/// Writes a keystore's file with this copy in both slots, in place of what is there.
pub(crate) fn place_keystore(copy: &Copy, folder: &Path) -> Result<(), KeysError> {
    let path = folder.join("keystore");
    let failed = || KeysError::durable(&path);
    let (disk, name) = Folder::of(&path).map_err(KeysError::io("find", &path))?;
    let mut new = NewFile::begin(&disk, name).map_err(failed())?;
    let written = new.file().set_length(2 * SLOT_BYTES as u64);
    let written = written.and_then(|()| new.file().write(0, copy.as_bytes()));
    let written = written.and_then(|()| new.file().write(SLOT_BYTES as u64, copy.as_bytes()));
    written.map_err(KeysError::io("write", &path))?;
    new.replace().map(drop).map_err(failed())
}

impl Keystore {
    /// Whether this keystore's root key opens a copy of it, as it does until it is changed.
    ///
    /// # Errors
    ///
    /// When the copy can't be read.
    pub fn opens_copy(&self, path: &Path) -> Result<bool, KeysError> {
        let copies = Copies::find(open_slots(path, Access::Read)?, path)?;
        Ok(copies.newest().open(&self.state().root).is_ok())
    }
}
