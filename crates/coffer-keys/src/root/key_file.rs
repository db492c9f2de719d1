//! Root keys as texts in a file of two places: what all sources that keep a file share.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::PLACE_BYTES;
use crate::medium::Medium;
use crate::new_file::{NewFile, clear_away, sync_folder_of};
use crate::root::source::RootKey;
use crate::root::two_texts::Places;

/// How a source writes a root key as text.
pub(crate) trait RootText {
    /// The key in a text; `None` when the text is not of this kind, as after a power cut.
    fn parse(&self, text: &[u8]) -> Result<Option<RootKey>, KeysError>;

    /// A text that holds the key.
    fn write(&self, root: &RootKey) -> Result<Zeroizing<Vec<u8>>, KeysError>;
}

/// The keys in the file, the first place first; an error when it holds none.
pub(crate) fn candidates(
    medium: Box<dyn Medium>,
    path: &Path,
    kind: &dyn RootText,
) -> Result<Vec<RootKey>, KeysError> {
    let places = Places::read(medium, path)?;
    let mut found = Vec::new();
    for key in keys(&places, kind)?.into_iter().flatten() {
        if !found.contains(&key) {
            found.push(key);
        }
    }
    if found.is_empty() {
        return Err(KeysError::RootMalformed {
            path: path.to_path_buf(),
        });
    }
    Ok(found)
}

/// Adds a key to a file that holds one at rest.
pub(crate) fn add(
    medium: Box<dyn Medium>,
    path: &Path,
    kind: &dyn RootText,
) -> Result<RootKey, KeysError> {
    let mut places = Places::read(medium, path)?;
    // Behind a first key, whatever an interrupted change left may be written over; a whole second
    // key may not, for the keystore may need it.
    match keys(&places, kind)? {
        [Some(_), None] => {}
        _ => {
            return Err(KeysError::RootUnsettled {
                place: path.display().to_string(),
            });
        }
    }
    let root = RootKey::generate();
    places.add(&kind.write(&root)?)?;
    Ok(root)
}

/// Destroys all keys but this one.
pub(crate) fn keep_only(
    medium: Box<dyn Medium>,
    path: &Path,
    kind: &dyn RootText,
    kept: Option<&RootKey>,
) -> Result<(), KeysError> {
    let mut places = Places::read(medium, path)?;
    let Some(kept) = kept else {
        return places.keep_only(None);
    };
    let place = keys(&places, kind)?
        .iter()
        .position(|key| key.as_ref() == Some(kept))
        .ok_or_else(|| missing(path))?;
    places.keep_only(Some(place))
}

/// The text that holds this key.
pub(crate) fn text_of(
    path: &Path,
    kind: &dyn RootText,
    key: &RootKey,
) -> Result<Zeroizing<Vec<u8>>, KeysError> {
    let file = open(path, false)?.ok_or_else(|| missing(path))?;
    let places = Places::read(Box::new(file), path)?;
    let place = keys(&places, kind)?
        .iter()
        .position(|found| found.as_ref() == Some(key))
        .ok_or_else(|| missing(path))?;
    Ok(Zeroizing::new(places.texts()[place].to_vec()))
}

/// Opens the file, which nobody but its owner may have any permission on; `None` when there is
/// none. It is opened for writing only where something is to be changed.
pub(crate) fn open(path: &Path, for_writing: bool) -> Result<Option<File>, KeysError> {
    let file = match OpenOptions::new().read(true).write(for_writing).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(KeysError::io("open", path))?,
    };
    let metadata = file.metadata().map_err(KeysError::io("examine", path))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeysError::RootExposed {
            path: path.to_path_buf(),
            mode,
        });
    }
    if metadata.len() > 2 * PLACE_BYTES as u64 {
        return Err(KeysError::RootMalformed {
            path: path.to_path_buf(),
        });
    }
    Ok(Some(file))
}

/// Makes the file with its first key.
pub(crate) fn create(path: &Path, kind: &dyn RootText) -> Result<RootKey, KeysError> {
    let root = RootKey::generate();
    let text = kind.write(&root)?;
    let new = NewFile::begin(path)?;
    let mut medium = new
        .file()
        .try_clone()
        .map_err(KeysError::io("open", path))?;
    Medium::write(&mut medium, 0, &text).map_err(KeysError::io("write", path))?;
    if !new.place()? {
        return Err(KeysError::RootUnsettled {
            place: path.display().to_string(),
        });
    }
    Ok(root)
}

/// The four calls of a source on its file.
pub(crate) struct OnFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) kind: &'a dyn RootText,
}

impl OnFile<'_> {
    pub(crate) fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        match open(self.path, false)? {
            Some(file) => candidates(Box::new(file), self.path, self.kind),
            None => Ok(Vec::new()),
        }
    }

    pub(crate) fn add(&self) -> Result<RootKey, KeysError> {
        match open(self.path, true)? {
            Some(file) => add(Box::new(file), self.path, self.kind),
            None => create(self.path, self.kind),
        }
    }

    pub(crate) fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        if let Some(kept) = kept {
            let file = open(self.path, false)?.ok_or_else(|| missing(self.path))?;
            if is_at_rest(Box::new(file), self.path, self.kind, kept)? {
                return Ok(());
            }
        } else {
            // A key in a file that never got its name has sealed nothing, but is not to lie about.
            clear_away(self.path)?;
        }
        let Some(file) = open(self.path, true)? else {
            return Ok(());
        };
        keep_only(Box::new(file), self.path, self.kind, kept)?;
        if kept.is_none() {
            fs::remove_file(self.path).map_err(KeysError::io("remove", self.path))?;
            sync_folder_of(self.path)?;
        }
        Ok(())
    }
}

/// Whether there is this key and nothing else, so that a file that can't be written stays usable.
fn is_at_rest(
    medium: Box<dyn Medium>,
    path: &Path,
    kind: &dyn RootText,
    kept: &RootKey,
) -> Result<bool, KeysError> {
    let places = Places::read(medium, path)?;
    Ok(places.is_single() && keys(&places, kind)?[0].as_ref() == Some(kept))
}

fn keys(places: &Places<'_>, kind: &dyn RootText) -> Result<[Option<RootKey>; 2], KeysError> {
    let [first, second] = places.texts();
    Ok([kind.parse(first)?, kind.parse(second)?])
}

fn missing(path: &Path) -> KeysError {
    KeysError::RootMissing {
        place: path.display().to_string(),
    }
}
