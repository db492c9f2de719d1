//! What can be wrong with a token before it is asked for anything.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a token can't be used as it is set up here.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenSetupError {
    /// Others than the owner may read the file that the PIN is in.
    #[error(
        "the file with the PIN, {path}, has mode {mode:04o}, so others than its owner can read \
         it: run chmod 600 on it, and change the PIN"
    )]
    PinExposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file that the PIN is to be in.
    #[error("the file with the PIN that pin-source names, {path}, can't be read: {source}")]
    PinFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The module that has the token does not begin.
    #[error(
        "could not begin with the module {path}: {source}; may this user read it, and where it \
         keeps its tokens (SoftHSM: softhsm2.conf, which SOFTHSM2_CONF may name, and the folder \
         in it)?"
    )]
    Module {
        /// The module.
        path: PathBuf,
        /// The module's answer.
        source: cryptoki::error::Error,
    },
    /// No token has this label.
    #[error(
        "there is no token {label}: name the module that has it (module-path), as a user who may \
         read where that keeps its tokens (SoftHSM: the folder that its softhsm2.conf names)"
    )]
    NoSuchToken {
        /// The token's label.
        label: String,
    },
}
