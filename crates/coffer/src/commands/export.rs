//! Where an export of a level's key goes.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::error::Error;
use crate::output::table::{check_output, done, print};

/// An export that is asked for.
pub struct Export<'a> {
    /// Of which level; none: a backup of the root key, which opens all of them.
    level: Option<&'a str>,
    recipients: &'a [String],
    /// Without one, it goes to standard output.
    file: Option<NewFile>,
}

impl<'a> Export<'a> {
    /// Makes its file, before it is asked for: exports are counted and use approvals up, so one
    /// must not be made that can't be kept.
    pub fn new(
        level: Option<&'a str>,
        recipients: &'a [String],
        out: Option<&Path>,
        json: bool,
    ) -> Result<Self, Error> {
        if json && out.is_none() {
            return Err(Error::Option {
                option: "--json",
                problem: "this is an export: give the file that it goes to as well (--out)"
                    .to_owned(),
            });
        }
        if out.is_none() {
            check_output()?;
        }
        Ok(Self {
            level,
            recipients,
            file: out.map(NewFile::make).transpose()?,
        })
    }

    /// Writes it where it was asked for, and tells of it if that is wanted.
    pub fn save(self, text: &str, json: bool) -> Result<(), Error> {
        let Some(file) = self.file else {
            return print(text).map_err(failed);
        };
        let told = json!({
            "level": self.level,
            "recipients": self.recipients,
            "file": file.path.display().to_string(),
            "bytes": text.len(),
        });
        let said = format!("written to {}", file.path.display());
        file.fill(text).map_err(failed)?;
        done(json, &told, &said)
    }
}

fn failed(source: io::Error) -> Error {
    Error::System {
        doing: "writing the export, which was made and is counted,",
        source,
    }
}

/// A file that was not there before, readable for its owner. It goes again unless it is filled.
struct NewFile {
    path: PathBuf,
    file: File,
    is_filled: bool,
}

impl NewFile {
    fn make(path: &Path) -> Result<Self, Error> {
        let made = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(path);
        let file = made.map_err(|error| {
            let path = path.display();
            Error::Option {
                option: "output file",
                problem: if error.kind() == io::ErrorKind::AlreadyExists {
                    format!("{path} is there already: choose another name; nothing was asked for")
                } else {
                    format!("{path} can't be made: {error}; nothing was asked for")
                },
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            is_filled: false,
        })
    }

    fn fill(mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        self.is_filled = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_filled {
            let _ = remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_there_from_the_start_and_goes_when_no_export_comes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.age");
        let export = || Export::new(Some("secret"), &[], Some(&path), false);
        let asked = export().unwrap();
        let there = export().map(|_| ()).unwrap_err().to_string();
        assert!(there.contains("choose another name"), "{there}");
        assert!(path.exists(), "the second took it away");
        drop(asked);
        assert!(!path.exists());
        export().unwrap().save("sealed", false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "sealed");
        assert!(export().is_err(), "it would be overwritten");
        assert_eq!(fs::read_to_string(&path).unwrap(), "sealed");
    }
}
