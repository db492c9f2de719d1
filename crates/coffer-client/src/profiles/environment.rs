//! The environment, and files that AWS's clients read.

use std::io;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::error::ClientError;
use crate::profiles::ini::Ini;

/// Variables of the environment; a seam, for tests.
pub(super) struct Environment<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// A variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// The file that a variable names, else the one of that name in `~/.aws`.
    pub(super) fn aws_file(&self, variable: &str, name: &str) -> Option<PathBuf> {
        if let Some(file) = self.variable(variable) {
            return Some(PathBuf::from(file));
        }
        let home = self.variable("HOME")?;
        Some(Path::new(&home).join(".aws").join(name))
    }
}

/// A variable of this process.
pub(super) fn of_process(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// How a file with an access key is told. What is no file's name may be the secret itself.
pub(super) fn place_of(file: &Path) -> String {
    match file.symlink_metadata() {
        Ok(_) => file.display().to_string(),
        Err(_) => "the file with the access key, whose name is not repeated, for it may be the \
                   secret itself"
            .to_owned(),
    }
}

/// Reads a file; none where it is not there.
pub(super) fn ini_file(file: &Path) -> Result<Option<Ini>, ClientError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(Ini::parse(&Zeroizing::new(text)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ClientError::Credentials {
            place: place_of(file),
            problem: error.to_string(),
        }),
    }
}
