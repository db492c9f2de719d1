//! What was found older than it is held to be: an older copy of it was put back.

use std::fmt;

use coffer_durable::rfc3339;
use coffer_keys::KeystoreRollback;
use coffer_seal::BucketId;

/// Something that is older than what stands above it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// What it is.
    pub of: RollbackOf,
    /// How far it had come in the copy that was found; 0 also where there is none.
    pub found: u64,
    /// How far it had come, at least.
    pub held: u64,
    /// When it had, in milliseconds since 1970.
    pub held_ms: i64,
}

/// What can be put back alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollbackOf {
    /// The keystore, and perhaps the whole folder. What holds it is in this place.
    Keystore {
        /// The source of the root key.
        place: String,
    },
    /// The server's database.
    System,
    /// The audit log.
    Audit,
    /// The anchor.
    Anchor,
    /// A bucket's catalog.
    Catalog(BucketId),
    /// All: it is a copy that a backup made.
    Backup,
}

impl Rollback {
    /// As the keystore tells of itself.
    pub(crate) fn of_keystore(rollback: KeystoreRollback) -> Self {
        Self {
            of: RollbackOf::Keystore {
                place: rollback.place,
            },
            found: rollback.found,
            held: rollback.held.generation,
            held_ms: rollback.held.held_ms,
        }
    }

    /// The file or folder, relative to the data folder.
    pub fn file(&self) -> String {
        match &self.of {
            RollbackOf::Keystore { .. } => "keystore".to_owned(),
            RollbackOf::System => "system.db".to_owned(),
            RollbackOf::Audit => "audit/".to_owned(),
            RollbackOf::Anchor => "anchor".to_owned(),
            RollbackOf::Catalog(id) => format!("buckets/{id}/catalog.db"),
            RollbackOf::Backup => "backup.json".to_owned(),
        }
    }
}

impl fmt::Display for Rollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            of,
            found,
            held,
            held_ms,
        } = self;
        if *of == RollbackOf::Backup {
            let began = rfc3339(*held_ms);
            return write!(
                f,
                "this is a copy of a server as of {began}: a backup, or a folder that was restored \
                 from a sealed copy, or a standby that was promoted"
            );
        }
        let unit = match of {
            RollbackOf::Keystore { .. } | RollbackOf::Backup => "generation",
            RollbackOf::Audit => "record",
            RollbackOf::Anchor => "number",
            RollbackOf::System | RollbackOf::Catalog(_) => "commit",
        };
        let (file, behind) = (self.file(), held.saturating_sub(*found));
        match (found, behind) {
            (0, _) => write!(f, "{file} is missing, or from before it was counted: ")?,
            // The audit log of another time may have a record of this number as well.
            (_, 0) => write!(f, "{file} is of another time: ")?,
            _ => write!(f, "{file} is an older copy, {behind} behind: ")?,
        }
        write!(f, "it ends with {unit} {found}, and had {unit} {held} at ")?;
        f.write_str(&rfc3339(*held_ms))?;
        match of {
            RollbackOf::Keystore { place } => write!(f, " as {place} holds"),
            _ => Ok(()),
        }
    }
}

/// Several, in a sentence; of many only the first.
pub(crate) fn listed(found: &[Rollback]) -> String {
    const TOLD: usize = 10;
    let told = found.iter().take(TOLD).map(Rollback::to_string);
    let mut text = told.collect::<Vec<_>>().join("; ");
    if found.len() > TOLD {
        text += &format!("; and {} more", found.len() - TOLD);
    }
    text
}
