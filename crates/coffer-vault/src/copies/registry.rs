//! Which copies there are, and were: the file `copies` in the data folder, sealed.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use coffer_durable::{now_ms, write_file_atomically};
use coffer_keys::Keystore;
use coffer_replica::{CopyId, KnownHead};
use coffer_seal::{Context, LevelId, SecretKey, open, seal};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::data_folder::failed;
use crate::error::{CopyError, Result, VaultError};
use crate::limits::{COPIES_MAX, COPIES_REMEMBERED};

/// The file in the data folder.
const COPIES_FILE: &str = "copies";

/// The only format there is.
const FORMAT: u32 = 1;

/// A copy, as the server remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) id: CopyId,
    /// By which its changes are noted.
    pub(crate) cursor: u32,
    pub(crate) made_ms: i64,
    /// Since when nothing is copied there any more. What is there may stay.
    pub(crate) removed_ms: Option<i64>,
    /// When the newest level or bucket was made that there was by then; none of a copy that is
    /// kept up, or was given up by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) newest_ms: Option<i64>,
    /// The head that was written last.
    pub(crate) known: Option<KnownHead>,
    /// What that is as of, or what was known to be there when the server was stopped; 0 of one
    /// that was never complete, and as earlier versions left it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) as_of_ms: i64,
    /// How long what was can be restored, in milliseconds.
    #[serde(default)]
    pub(crate) keep_ms: i64,
    /// The head that had all when the server was stopped.
    #[serde(default)]
    pub(crate) rested: Option<u64>,
    /// Of a copy that a keystore goes along with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keystore: Option<WithKeystore>,
    /// Of a copy that acknowledgements wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sync: Option<SyncEntry>,
    /// What showed that another serves in the place of this server, which the copy fences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fenced_off: Option<String>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// What is remembered of a copy that acknowledgements wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncEntry {
    /// How long a write waits before it is in doubt, in milliseconds.
    pub(crate) wait_ms: u64,
    /// Since when all do, in milliseconds since 1970: it was whole then for the first time.
    pub(crate) since_ms: Option<i64>,
}

/// What is remembered of the keystore in a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithKeystore {
    /// For whom it is sealed: recipients of age. For none: the root key opens it.
    pub(crate) recipients: Vec<String>,
    /// How many people approved that. Levels that ask for more stay out.
    pub(crate) people: u8,
    /// The levels that go along, each of which was counted as exported.
    pub(crate) levels: BTreeSet<LevelId>,
    /// What the copy took last, with those before it removed.
    pub(crate) taken: Option<TakenKeystore>,
    /// Whether it is the log of an engine: then all levels go along, for it is the keystore of this
    /// very server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_of_engine: bool,
    /// Receipts of erases that say that the copy is yet to take the keystore without the keys.
    pub(crate) pending: Vec<String>,
}

/// A keystore that a copy took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakenKeystore {
    pub(crate) generation: u64,
    pub(crate) at_ms: i64,
    /// Whether it took it since the start.
    #[serde(skip)]
    pub(crate) is_of_this_start: bool,
}

impl WithKeystore {
    /// Whether the copy took this generation, or a later one, since the start. What it took before
    /// counts for nothing: where an older keystore was put back, generations fall, and name others
    /// from then on.
    pub(crate) fn has_taken(&self, generation: u64) -> bool {
        let taken = self.taken.filter(|taken| taken.is_of_this_start);
        taken.is_some_and(|taken| taken.generation >= generation)
    }

    /// Forgets a keystore that is newer than the server's own: that is another by now.
    fn forget_newer(&mut self, generation: u64) {
        self.taken = self.taken.filter(|taken| taken.generation <= generation);
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    copies: Vec<Entry>,
}

/// All of them.
pub(crate) struct Registry {
    path: PathBuf,
    key: SecretKey,
    context: Context,
    entries: Mutex<Vec<Entry>>,
}

impl Registry {
    /// Reads the file, if there is one. One that does not open is told now, and whenever copies
    /// are asked for; it keeps nothing else from being served.
    pub(crate) fn open(folder: &Path, keystore: &Keystore) -> (Self, Result<()>) {
        let registry = Self {
            path: folder.join(COPIES_FILE),
            key: keystore.system_key().derive(b"coffer copies v1\0"),
            context: Context::raw([&b"coffer copies v1\0"[..], &keystore.id().0].concat()),
            entries: Mutex::default(),
        };
        let read = registry.read().map(|mut entries| {
            let carried = entries
                .iter_mut()
                .filter_map(|entry| entry.keystore.as_mut());
            carried.for_each(|with| with.forget_newer(keystore.generation()));
            *registry.entries.lock() = entries;
        });
        (registry, read)
    }

    fn read(&self) -> Result<Vec<Entry>> {
        let sealed = match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            sealed => sealed.map_err(failed("read", &self.path))?,
        };
        let json = open(&self.key, &self.context, &sealed).map_err(|_| CopyError::Registry)?;
        let document = serde_json::from_slice::<Document>(&json).ok();
        let document = document.filter(|document| document.format == FORMAT);
        Ok(document.ok_or(CopyError::Registry)?.copies)
    }

    /// All, also those that were removed, as far as they are remembered.
    pub(crate) fn all(&self) -> Vec<Entry> {
        self.entries.lock().clone()
    }

    /// All that are kept up.
    pub(crate) fn current(&self) -> Vec<Entry> {
        let entries = self.entries.lock();
        let current = entries.iter().filter(|entry| entry.removed_ms.is_none());
        current.cloned().collect()
    }

    /// One that is kept up.
    pub(crate) fn get(&self, name: &str) -> Result<Entry> {
        let found = self.current().into_iter().find(|entry| entry.name == name);
        let name = name.to_owned();
        Ok(found.ok_or(CopyError::NoSuchCopy { name })?)
    }

    /// The one of this id that is kept up.
    pub(crate) fn of_id(&self, id: CopyId) -> Option<Entry> {
        self.current().into_iter().find(|entry| entry.id == id)
    }

    /// A cursor for a new copy of this name.
    ///
    /// # Errors
    /// [`CopyError::Name`], [`CopyError::Exists`], [`CopyError::TooMany`].
    pub(crate) fn cursor_for(&self, name: &str) -> Result<u32> {
        let is_known =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let name = name.to_owned();
        if !(1..=63).contains(&name.len()) || name.starts_with('-') || !name.bytes().all(is_known) {
            return Err(CopyError::Name { name }.into());
        }
        let current = self.current();
        if current.iter().any(|entry| entry.name == name) {
            return Err(CopyError::Exists { name }.into());
        }
        if current.len() >= COPIES_MAX {
            return Err(CopyError::TooMany { max: COPIES_MAX }.into());
        }
        let entries = self.entries.lock();
        let highest = entries.iter().map(|entry| entry.cursor).max();
        Ok(highest.unwrap_or(0) + 1)
    }

    /// Changes what is remembered, durably. Blocks.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<Entry>)) -> Result<()> {
        let mut entries = self.entries.lock();
        // A file that could not be read is not written over.
        self.read()?;
        let mut copies = entries.clone();
        change(&mut copies);
        let removed = copies
            .iter()
            .filter(|entry| entry.removed_ms.is_some())
            .count();
        let mut surplus = removed.saturating_sub(COPIES_REMEMBERED);
        copies.retain(|entry| {
            let goes = surplus > 0 && entry.removed_ms.is_some();
            surplus -= usize::from(goes);
            !goes
        });
        let document = Document {
            format: FORMAT,
            copies,
        };
        let json = serde_json::to_vec(&document).map_err(|_| VaultError::Damaged)?;
        let sealed = seal(&self.key, &self.context, &json);
        let written = write_file_atomically(&self.path, &sealed).map_err(std::io::Error::from);
        written.map_err(failed("write", &self.path))?;
        *entries = document.copies;
        Ok(())
    }

    /// Remembers the head that a copy has now. Blocks.
    pub(crate) fn note_head(&self, id: CopyId, known: &KnownHead, as_of_ms: i64) -> Result<()> {
        self.change(|entries| {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
                entry.known = Some(known.clone());
                entry.as_of_ms = as_of_ms;
                entry.rested = None;
            }
        })
    }

    /// Remembers what showed that another serves in this server's place. Blocks.
    pub(crate) fn note_fenced_off(&self, id: CopyId, why: String) -> Result<()> {
        self.change(|entries| {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
                entry.fenced_off = Some(why);
            }
        })
    }

    /// By which copy it is remembered that this server is fenced off, and what showed it.
    pub(crate) fn fenced_off(&self) -> Option<(String, String)> {
        let entries = self.entries.lock();
        let found = |entry: &Entry| Some((entry.name.clone(), entry.fenced_off.clone()?));
        entries.iter().find_map(found)
    }

    /// Forgets that. Blocks.
    pub(crate) fn forget_fences(&self) -> Result<()> {
        self.change(|entries| {
            for entry in entries {
                entry.fenced_off = None;
            }
        })
    }

    /// Changes what is remembered of the keystore in a copy, if one goes along. Blocks.
    pub(crate) fn change_keystore(
        &self,
        id: CopyId,
        change: impl FnOnce(&mut WithKeystore),
    ) -> Result<()> {
        self.change(|entries| {
            let found = entries.iter_mut().find(|entry| entry.id == id);
            if let Some(with) = found.and_then(|entry| entry.keystore.as_mut()) {
                change(with);
            }
        })
    }

    /// Remembers that a copy was whole, so that acknowledgements wait for it. Blocks.
    pub(crate) fn note_whole(&self, id: CopyId, at_ms: i64) -> Result<()> {
        self.change(|entries| {
            let found = entries.iter_mut().find(|entry| entry.id == id);
            if let Some(sync) = found.and_then(|entry| entry.sync.as_mut()) {
                sync.since_ms.get_or_insert(at_ms);
            }
        })
    }

    /// Remembers that this head has all, and that nothing is acknowledged any more. Blocks.
    pub(crate) fn note_rest(&self, id: CopyId, number: u64) -> Result<()> {
        self.change(|entries| {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
                (entry.rested, entry.as_of_ms) = (Some(number), now_ms());
            }
        })
    }
}
