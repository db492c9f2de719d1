//! Root keys as texts in a file of two: what all sources that keep a file share.

use std::io;
use std::path::Path;

use coffer_durable::{Access, Disk, DiskFile, Folder, NewFile, Slot, clear_away, remove_durably};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::TEXT_SLOT_BYTES;
use crate::root::source::RootKey;
use crate::root::two_texts::TwoTexts;

/// How a source writes a root key as text.
pub(crate) trait RootText {
    /// The key in a text; `None` when the text is not of this kind, as after a power cut.
    fn parse(&self, text: &[u8]) -> Result<Option<RootKey>, KeysError>;

    /// A text that holds the key.
    fn write(&self, root: &RootKey) -> Result<Zeroizing<Vec<u8>>, KeysError>;
}

/// The file of a source, whether or not it is there.
pub(crate) struct KeyFile<'a> {
    disk: Box<dyn Disk>,
    name: &'a str,
    path: &'a Path,
    kind: &'a dyn RootText,
}

impl<'a> KeyFile<'a> {
    pub(crate) fn new(path: &'a Path, kind: &'a dyn RootText) -> Result<Self, KeysError> {
        let (folder, name) = Folder::of(path).map_err(KeysError::io("find", path))?;
        Ok(Self::on(Box::new(folder), name, path, kind))
    }

    pub(crate) fn on(
        disk: Box<dyn Disk>,
        name: &'a str,
        path: &'a Path,
        kind: &'a dyn RootText,
    ) -> Self {
        Self {
            disk,
            name,
            path,
            kind,
        }
    }

    /// The keys in the file, the first text first; an error when it is there and holds none.
    pub(crate) fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        let Some(file) = self.open(Access::Read)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for key in self.keys(&self.read(file)?)?.into_iter().flatten() {
            if !found.contains(&key) {
                found.push(key);
            }
        }
        if found.is_empty() {
            return Err(self.malformed());
        }
        Ok(found)
    }

    /// Adds a key to a file that holds one at rest, or makes the file with its first key.
    pub(crate) fn add(&self) -> Result<RootKey, KeysError> {
        let root = RootKey::generate();
        let Some(file) = self.open(Access::Write)? else {
            self.create(&self.kind.write(&root)?)?;
            return Ok(root);
        };
        let mut texts = self.read(file)?;
        // Behind a first key, whatever an interrupted change left may be written over; a whole
        // second key may not, for the keystore may need it.
        let [Some(_), None] = self.keys(&texts)? else {
            return Err(self.unsettled());
        };
        texts.add(&self.kind.write(&root)?)?;
        Ok(root)
    }

    fn create(&self, text: &[u8]) -> Result<(), KeysError> {
        let failed = || KeysError::durable(self.path);
        let mut new = NewFile::begin(&*self.disk, self.name).map_err(failed())?;
        let written = new.file().write(0, text);
        written.map_err(KeysError::io("write", self.path))?;
        match new.place() {
            Err(error) if error.is_taken() => Err(self.unsettled()),
            placed => placed.map(drop).map_err(failed()),
        }
    }

    /// Destroys all keys but this one; without one, the file goes as well.
    pub(crate) fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        if let Some(kept) = kept {
            let file = self.open(Access::Read)?.ok_or_else(|| self.missing())?;
            let texts = self.read(file)?;
            // At rest it is not written to, so that a file that can't be written stays usable.
            if texts.is_single() && self.keys(&texts)?[0].as_ref() == Some(kept) {
                return Ok(());
            }
        } else {
            // A key in a file that never got its name has sealed nothing, but is not to lie about.
            clear_away(&*self.disk, self.name).map_err(KeysError::durable(self.path))?;
        }
        let Some(file) = self.open(Access::Write)? else {
            return Ok(());
        };
        let mut texts = self.read(file)?;
        let slot = kept.map(|kept| self.slot_of(&texts, kept)).transpose()?;
        texts.keep_only(slot)?;
        if kept.is_none() {
            remove_durably(&*self.disk, self.name).map_err(KeysError::durable(self.path))?;
        }
        Ok(())
    }

    /// The text that holds this key.
    pub(crate) fn text_of(&self, key: &RootKey) -> Result<Zeroizing<Vec<u8>>, KeysError> {
        let file = self.open(Access::Read)?.ok_or_else(|| self.missing())?;
        let texts = self.read(file)?;
        let slot = self.slot_of(&texts, key)?;
        Ok(Zeroizing::new(texts.texts()[slot as usize].to_vec()))
    }

    /// Opens the file, which only its owner may have any permission on; `None` when there is none.
    /// It is opened for writing only where something is to be changed.
    fn open(&self, access: Access) -> Result<Option<Box<dyn DiskFile>>, KeysError> {
        let file = match self.disk.open(self.name, access) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(KeysError::io("open", self.path))?,
        };
        let examined = || KeysError::io("examine", self.path);
        let mode = file.mode().map_err(examined())?;
        if mode & 0o077 != 0 {
            return Err(KeysError::RootExposed {
                path: self.path.to_path_buf(),
                mode,
            });
        }
        if file.length_bytes().map_err(examined())? > 2 * TEXT_SLOT_BYTES as u64 {
            return Err(self.malformed());
        }
        Ok(Some(file))
    }

    fn read(&self, file: Box<dyn DiskFile>) -> Result<TwoTexts<'a>, KeysError> {
        TwoTexts::read(file, self.path)
    }

    fn keys(&self, texts: &TwoTexts<'_>) -> Result<[Option<RootKey>; 2], KeysError> {
        let [first, second] = texts.texts();
        Ok([self.kind.parse(first)?, self.kind.parse(second)?])
    }

    fn slot_of(&self, texts: &TwoTexts<'_>, key: &RootKey) -> Result<Slot, KeysError> {
        let keys = self.keys(texts)?;
        let holds = |slot: &Slot| keys[*slot as usize].as_ref() == Some(key);
        let slot = Slot::BOTH.into_iter().find(holds);
        slot.ok_or_else(|| self.missing())
    }

    fn missing(&self) -> KeysError {
        KeysError::RootMissing {
            place: self.path.display().to_string(),
        }
    }

    fn unsettled(&self) -> KeysError {
        KeysError::RootUnsettled {
            place: self.path.display().to_string(),
        }
    }

    fn malformed(&self) -> KeysError {
        KeysError::RootMalformed {
            path: self.path.to_path_buf(),
        }
    }
}
