//! The anchor: how new the catalogs, the server's database and the audit log are, at least.
//!
//! A small file of two slots, written by turns: in each a sealed message under a key that follows
//! from the system key. So a write that is torn leaves the anchor before it, whose number is the
//! one before. The keystore holds the number of an anchor, and so an older one is found.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use coffer_durable::{Access, Disk, Folder, NewFile, Slot, TwoSlots};
use coffer_seal::{BucketId, Context, KeystoreId, SecretKey, open, seal};

use crate::error::KeysError;
use crate::keystore::state::Keystore;
use crate::limits::{
    ANCHOR_BUCKET_BYTES, ANCHOR_FIXED_BYTES, ANCHOR_FRAME_BYTES, ANCHOR_SLOT_BYTES,
    BUCKET_COUNT_MAX,
};

const MAGIC: [u8; 8] = *b"cofferAN";

/// The newest format that is understood, and the one that is written.
const FORMAT: u32 = 1;

/// The version of what is sealed.
const BODY_VERSION: u16 = 1;

/// What the anchor's key is derived with from the keystore's system key.
const KEY_LABEL: &[u8] = b"coffer anchor key v1\0";

/// What an anchor says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    /// How many commits the server's database had.
    pub system_commits: u64,
    /// The number of a record of the audit log.
    pub audit_record: u64,
    /// The hash of that record.
    pub audit_hash: [u8; 32],
    /// When it was so, in milliseconds since 1970 (UTC).
    pub held_ms: i64,
    /// How many commits each bucket's catalog had.
    pub commits: BTreeMap<BucketId, u64>,
}

/// The anchor's file.
pub struct AnchorFile {
    disk: Box<dyn Disk>,
    path: PathBuf,
    key: SecretKey,
    keystore_id: KeystoreId,
    /// `None` while there is no file.
    slots: Option<TwoSlots>,
    newest: Option<(u64, Anchor)>,
    /// The slot that is written next.
    slot: Slot,
}

impl AnchorFile {
    /// Reads the anchor of this keystore. One that is not there, or of which no slot opens, is
    /// none: the keystore tells whether there was one.
    ///
    /// # Errors
    ///
    /// [`KeysError::NewerFormat`]; when the file can't be read.
    pub fn open(path: &Path, keystore: &Keystore) -> Result<Self, KeysError> {
        Self::open_as(path, keystore, Access::Write)
    }

    /// As [`AnchorFile::open`], to be read only.
    ///
    /// # Errors
    ///
    /// As [`AnchorFile::open`].
    pub fn open_read_only(path: &Path, keystore: &Keystore) -> Result<Self, KeysError> {
        Self::open_as(path, keystore, Access::Read)
    }

    fn open_as(path: &Path, keystore: &Keystore, access: Access) -> Result<Self, KeysError> {
        let key = keystore.system_key().derive(KEY_LABEL);
        let (folder, _) = Folder::of(path).map_err(KeysError::io("find", path))?;
        Self::open_on(Box::new(folder), path, access, key, keystore.id())
    }

    pub(crate) fn open_on(
        disk: Box<dyn Disk>,
        path: &Path,
        access: Access,
        key: SecretKey,
        keystore_id: KeystoreId,
    ) -> Result<Self, KeysError> {
        let slots = match disk.open(name_of(path)?, access) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            file => {
                let file = file.map_err(KeysError::io("open", path))?;
                Some(TwoSlots::new(file, ANCHOR_SLOT_BYTES))
            }
        };
        let mut file = Self {
            disk,
            path: path.to_owned(),
            key,
            keystore_id,
            slots,
            newest: None,
            slot: Slot::A,
        };
        for slot in Slot::BOTH {
            if let Some((number, anchor)) = file.read(slot)?
                && file.number() < number
            {
                file.newest = Some((number, anchor));
                file.slot = slot.other();
            }
        }
        Ok(file)
    }

    /// Whether there is a file.
    pub fn exists(&self) -> bool {
        self.slots.is_some()
    }

    /// The newest anchor, if there is one.
    pub fn newest(&self) -> Option<&Anchor> {
        self.newest.as_ref().map(|(_, anchor)| anchor)
    }

    /// Its number, from 1; 0 when there is none.
    pub fn number(&self) -> u64 {
        self.newest.as_ref().map_or(0, |(number, _)| *number)
    }

    /// Makes what was read durable: a killed server may have left it in memory only.
    ///
    /// # Errors
    ///
    /// When the file can't be synced.
    pub fn sync(&mut self) -> Result<(), KeysError> {
        match &mut self.slots {
            Some(slots) => slots.sync().map_err(KeysError::durable(&self.path)),
            None => Ok(()),
        }
    }

    /// Writes the next anchor, with a number higher than `above` and the one before it. It is
    /// durable when this returns; when it fails, the one before is whole.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write(&mut self, anchor: Anchor, above: u64) -> Result<u64, KeysError> {
        let number = self.number().max(above) + 1;
        let bytes = self.sealed(number, &anchor);
        let failed = || KeysError::durable(&self.path);
        match &mut self.slots {
            Some(slots) => slots.write(self.slot, &bytes).map_err(failed())?,
            None => {
                let mut new = NewFile::begin(&*self.disk, name_of(&self.path)?).map_err(failed())?;
                let written = new.file().write(0, &bytes);
                written.map_err(KeysError::io("write", &self.path))?;
                let file = new.replace().map_err(failed())?;
                self.slots = Some(TwoSlots::new(file, ANCHOR_SLOT_BYTES));
                self.slot = Slot::A;
            }
        }
        self.newest = Some((number, anchor));
        self.slot = self.slot.other();
        Ok(number)
    }

    /// `magic(8) format(4) number(8) length(4)`, then the sealed message.
    fn sealed(&self, number: u64, anchor: &Anchor) -> Vec<u8> {
        let context = Context::anchor(self.keystore_id, number);
        let sealed = seal(&self.key, &context, &anchor.to_bytes());
        let sealed_bytes = u32::try_from(sealed.len()).expect("limits.rs: an anchor fits its slot");
        let bytes = [
            &MAGIC[..],
            &FORMAT.to_be_bytes(),
            &number.to_be_bytes(),
            &sealed_bytes.to_be_bytes(),
            &sealed,
        ]
        .concat();
        assert!(
            bytes.len() <= ANCHOR_SLOT_BYTES,
            "limits.rs: an anchor fits its slot"
        );
        bytes
    }

    fn read(&mut self, slot: Slot) -> Result<Option<(u64, Anchor)>, KeysError> {
        // One that can't be read is as good as one that is torn: the other one may be whole.
        let content = self.slots.as_mut().map(|slots| slots.read(slot));
        let Some(Ok(content)) = content else {
            return Ok(None);
        };
        let Some(frame) = Frame::parse(&content) else {
            return Ok(None);
        };
        if frame.format > FORMAT {
            return Err(KeysError::NewerFormat {
                found: frame.format,
                known: FORMAT,
            });
        }
        let context = Context::anchor(self.keystore_id, frame.number);
        let body = open(&self.key, &context, frame.sealed).ok();
        let anchor = body.and_then(|body| Anchor::from_bytes(&body));
        Ok(anchor.map(|anchor| (frame.number, anchor)))
    }
}

fn name_of(path: &Path) -> Result<&str, KeysError> {
    let found = Folder::of(path).map_err(KeysError::io("find", path));
    found.map(|(_, name)| name)
}

/// An anchor, as it lies in its slot.
struct Frame<'a> {
    format: u32,
    number: u64,
    sealed: &'a [u8],
}

impl<'a> Frame<'a> {
    fn parse(slot: &'a [u8]) -> Option<Self> {
        let rest = slot.strip_prefix(&MAGIC)?;
        let (format, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sealed_bytes, rest) = rest.split_first_chunk()?;
        Some(Self {
            format: u32::from_be_bytes(*format),
            number: u64::from_be_bytes(*number),
            sealed: rest.get(..u32::from_be_bytes(*sealed_bytes) as usize)?,
        })
    }
}

impl Anchor {
    fn to_bytes(&self) -> Vec<u8> {
        let capacity = ANCHOR_FIXED_BYTES + self.commits.len() * ANCHOR_BUCKET_BYTES;
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&BODY_VERSION.to_be_bytes());
        bytes.extend_from_slice(&self.system_commits.to_be_bytes());
        bytes.extend_from_slice(&self.audit_record.to_be_bytes());
        bytes.extend_from_slice(&self.audit_hash);
        bytes.extend_from_slice(&self.held_ms.to_be_bytes());
        bytes.extend_from_slice(&(self.commits.len() as u32).to_be_bytes());
        for (id, commits) in &self.commits {
            bytes.extend_from_slice(&id.0);
            bytes.extend_from_slice(&commits.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (system_commits, rest) = rest.split_first_chunk()?;
        let (audit_record, rest) = rest.split_first_chunk()?;
        let (audit_hash, rest) = rest.split_first_chunk()?;
        let (held_ms, rest) = rest.split_first_chunk()?;
        let (count, mut rest) = rest.split_first_chunk()?;
        let count = u32::from_be_bytes(*count) as usize;
        if u16::from_be_bytes(*version) != BODY_VERSION || count > BUCKET_COUNT_MAX {
            return None;
        }
        let mut commits = BTreeMap::new();
        for _ in 0..count {
            let (id, behind) = rest.split_first_chunk()?;
            let (number, behind) = behind.split_first_chunk()?;
            commits.insert(BucketId(*id), u64::from_be_bytes(*number));
            rest = behind;
        }
        rest.is_empty().then_some(Self {
            system_commits: u64::from_be_bytes(*system_commits),
            audit_record: u64::from_be_bytes(*audit_record),
            audit_hash: *audit_hash,
            held_ms: i64::from_be_bytes(*held_ms),
            commits,
        })
    }
}

const _: () = assert!(ANCHOR_FRAME_BYTES == MAGIC.len() + 4 + 8 + 4);
