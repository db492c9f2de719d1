//! What receipts say of sealed copies.

use serde::{Deserialize, Serialize};

/// A sealed copy on another store, and what it could still hold of what was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedCopy {
    /// Its name.
    pub name: String,
    /// Its id, in hexadecimal digits, which tells it from any other; absent in earlier formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where it is, without what names files of the server's machine.
    pub url: String,
    /// When it was made; RFC 3339, UTC.
    pub made_at: String,
    /// Since when it is not kept up any more; RFC 3339, UTC.
    pub removed_at: Option<String>,
    /// How long it keeps what was deleted or replaced.
    pub keep_seconds: u64,
    /// What it could still hold, in a sentence.
    pub holds: String,
    /// Of a copy that holds a keystore: whether that is one without the keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keystore: Option<CopyKeystore>,
}

/// The keystore in a sealed copy, as far as the server knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyKeystore {
    /// Whether it has the keys that were destroyed.
    pub state: CopyKeystoreState,
    /// Its generation; none as long as the copy has none.
    pub generation: Option<u64>,
    /// When the copy took it; RFC 3339, UTC.
    pub taken_at: Option<String>,
    /// For whom it is sealed: recipients of age; for none where the root key opens it.
    pub recipients: Vec<String>,
}

/// How the keystore in a copy stands to an erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyKeystoreState {
    /// The copy took the keystore without the keys, and those before were removed from it.
    Taken,
    /// The copy has not taken it yet: what it has may be one with the keys.
    Pending,
    /// The copy was given up before, and what it had is there unless it was removed by hand.
    Left,
}
