//! What can stop the lab. A contender that can't run is not among them: that is a finding.

use coffer_measure::error::MeasureError;

/// Why an experiment could not run, or why its figures must not be believed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file, a folder, a socket or a process did not do what was asked.
    #[error("{action}: {source}")]
    Io {
        /// What was being done, for the reader of the message.
        action: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A library refused a key, an IV or a length that the algorithm allows.
    #[error("{contender}: {what}")]
    Cipher {
        /// Who refused.
        contender: String,
        /// What it was asked for.
        what: String,
    },
    /// Authenticated data did not open.
    #[error("the tag is wrong")]
    Tag,
    /// A contender's result is not what the others, or the published vectors, say.
    #[error(
        "{contender} is wrong on {case}: no speed is printed. Expected {expected}, found {found}"
    )]
    Disagree {
        /// Who is wrong.
        contender: String,
        /// The vector or the random data, and the direction.
        case: String,
        /// The beginning of what was expected, in hexadecimal.
        expected: String,
        /// The beginning of what was found, in hexadecimal.
        found: String,
    },
    /// A data file of the lab, or one that was given to it, can't be understood.
    #[error("{file}: {what}")]
    Data {
        /// The file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// A program that an experiment runs failed.
    #[error("`{command}` failed: {what}")]
    Program {
        /// The command line.
        command: String,
        /// Its status, or what it said.
        what: String,
    },
}

impl From<MeasureError> for LabError {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Io { action, source } => Self::Io { action, source },
            MeasureError::Unreadable { path, what } => Self::Data {
                file: path.display().to_string(),
                what: what.to_owned(),
            },
            other => Self::Cipher {
                contender: "TLS".into(),
                what: other.to_string(),
            },
        }
    }
}

/// The result of anything in the lab.
pub type Result<T> = std::result::Result<T, LabError>;

/// Says what was being done when the system refused.
pub trait Doing<T> {
    /// `action` continues as in "reading /proc/stat: no such file".
    fn doing(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<std::io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| LabError::Io {
            action: action(),
            source: error.into(),
        })
    }
}
