//! A walk over a data folder: every file of a known kind, private, and sealed where it must be.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use coffer_keys::SourceSpec;

use crate::error::Error;
use crate::limits::{KEYSTORE_LOOKS, KEYSTORE_PAUSE, UNFINISHED_UPLOAD};
use crate::prove::kind::{self, Kind};
use crate::prove::report::Proof;
use crate::prove::sealed::{self, Look};

/// What the walk needs to know.
pub struct Walk<'a> {
    /// The data folder.
    pub data: &'a Path,
    /// Whether a server is writing there meanwhile.
    pub is_running: bool,
    /// The root-key source that is recorded.
    pub source: Option<&'a SourceSpec>,
    /// Told how many files were looked at.
    pub told: &'a (dyn Fn(u64) + Sync),
}

/// The number of a file, in digits, or nothing.
fn lock(path: &Path) -> io::Result<Look> {
    let text = fs::read(path)?;
    let is_number = text.len() <= 24 && text.trim_ascii_end().iter().all(u8::is_ascii_digit);
    Ok(Look {
        wrong: (!is_number).then(|| "it holds more than a number".to_owned()),
        ..Look::default()
    })
}

impl Walk<'_> {
    /// Looks at everything.
    ///
    /// # Errors
    /// When the data folder itself can't be read.
    pub fn run(&self, proof: &mut Proof) -> Result<(), Error> {
        let unreadable = |source| Error::System {
            doing: "reading the data folder",
            source,
        };
        let owner = fs::metadata(self.data).map_err(unreadable)?.uid();
        let mut looked_count = 0;
        let mut visit = |relative: &Path, metadata: &Metadata| {
            looked_count += 1;
            (self.told)(looked_count);
            self.look(relative, metadata, owner, proof)
        };
        each(self.data, &mut visit).map_err(unreadable)
    }

    /// Looks at one file or folder. `false`: what is below a folder is not to be looked at.
    fn look(&self, relative: &Path, metadata: &Metadata, owner: u32, proof: &mut Proof) -> bool {
        let file_type = metadata.file_type();
        if file_type.is_symlink() {
            // What is there is looked at in its place.
            if self.is_own_link(relative) {
                return false;
            }
            proof.find(
                relative,
                "it leads elsewhere: what is there was not looked at",
            );
            return false;
        }
        let Some(kind) = Kind::of(relative, file_type.is_dir()) else {
            proof.find(
                relative,
                "coffer makes no such file: what it holds is unknown",
            );
            return false;
        };
        if relative == Path::new("lost+found") {
            return false;
        }
        if kind != Kind::Folder {
            proof.count(kind);
        }
        check_permissions(relative, metadata, kind, owner, proof);
        self.check_place(relative, kind, proof);
        let is_odd = !file_type.is_dir() && !file_type.is_file() && !file_type.is_socket();
        if is_odd || file_type.is_socket() != (relative == Path::new("admin.sock")) {
            proof.find(relative, "it is not an ordinary file");
            return false;
        }
        match self.content(relative, metadata, kind) {
            Ok(look) => {
                proof.page_count += look.page_count;
                if let Some(wrong) = look.wrong {
                    self.wrong(relative, metadata, look.is_length, wrong, proof);
                }
            }
            // Removed since its name was read.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => proof.leave_out(format!("{}: {error}", relative.display())),
        }
        true
    }

    /// Whether it is the link of a standby's state to the blobs of a bucket.
    fn is_own_link(&self, relative: &Path) -> bool {
        let own = kind::blobs_of_state(relative);
        own.is_some_and(|own| fs::read_link(self.data.join(relative)).is_ok_and(|to| to == own))
    }

    fn content(&self, relative: &Path, metadata: &Metadata, kind: Kind) -> io::Result<Look> {
        let path = self.data.join(relative);
        // Under construction, none has its form yet.
        let is_new = |name| Path::new(name).extension().is_some_and(|end| end == "new");
        if relative.iter().any(is_new) {
            return Ok(Look::default());
        }
        match kind {
            Kind::Blob | Kind::Copies => sealed::blob(&path),
            Kind::Database => sealed::database(&path),
            Kind::DatabaseLog => sealed::database_log(&path),
            Kind::Keystore => self.keystore(&path),
            Kind::Anchor => sealed::anchor(&path),
            Kind::AuditSegment => sealed::audit_segment(&path),
            Kind::Lock => lock(&path),
            Kind::Empty if metadata.len() > 0 && metadata.is_file() => Ok(Look {
                wrong: Some("it is not empty".to_owned()),
                ..Look::default()
            }),
            _ => Ok(Look::default()),
        }
    }

    /// A copy that is just being written looks damaged, but not for long.
    fn keystore(&self, path: &Path) -> io::Result<Look> {
        let attempts = if self.is_running { KEYSTORE_LOOKS } else { 1 };
        let mut look = sealed::keystore(path)?;
        for _ in 1..attempts {
            if look.wrong.is_none() {
                break;
            }
            std::thread::sleep(KEYSTORE_PAUSE);
            look = sealed::keystore(path)?;
        }
        Ok(look)
    }

    /// A blob that is being uploaded has no message's length yet.
    fn wrong(
        &self,
        relative: &Path,
        metadata: &Metadata,
        is_length: bool,
        wrong: String,
        proof: &mut Proof,
    ) {
        let age = metadata
            .modified()
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        let is_young = age.is_none_or(|age| age < UNFINISHED_UPLOAD);
        if is_length && self.is_running && is_young {
            proof.leave_out(format!(
                "{}: it may be uploaded right now",
                relative.display()
            ));
        } else {
            proof.find(relative, wrong);
        }
    }

    /// Whether something that is readable by design is there for a reason.
    fn check_place(&self, relative: &Path, kind: Kind, proof: &mut Proof) {
        if !kind.is_readable_secret() {
            return;
        }
        let is_wanted = kind != Kind::PlainRootKey
            || self
                .source
                .is_none_or(|source| *source == SourceSpec::File(None));
        if is_wanted {
            proof
                .readable_by_design
                .push(relative.display().to_string());
        } else {
            proof.find(
                relative,
                "a readable root key, though the keystore's is elsewhere (keystore.source)",
            );
        }
    }
}

/// For the owner alone, who is the folder's; certificates are public.
fn check_permissions(
    relative: &Path,
    metadata: &Metadata,
    kind: Kind,
    owner: u32,
    proof: &mut Proof,
) {
    let mode = metadata.mode() & 0o7777;
    let forbidden = if kind == Kind::Certificate {
        0o022
    } else {
        0o077
    };
    if mode & forbidden != 0 {
        let right = if metadata.is_dir() { "0700" } else { "0600" };
        proof.find(
            relative,
            format!("others than its owner may use it: its mode is {mode:04o}, not {right}"),
        );
    }
    if metadata.uid() != owner {
        proof.find(
            relative,
            format!(
                "it belongs to user {}, the data folder to user {owner}",
                metadata.uid()
            ),
        );
    }
}

/// Visits everything below a folder, the folder itself first, with paths relative to it. What
/// vanishes meanwhile is left out.
pub fn each(root: &Path, visit: &mut dyn FnMut(&Path, &Metadata) -> bool) -> io::Result<()> {
    visit(Path::new(""), &fs::metadata(root)?);
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let relative = folder.join(entry.file_name());
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            if visit(&relative, &metadata) && metadata.is_dir() {
                folders.push(relative);
            }
        }
    }
    Ok(())
}
