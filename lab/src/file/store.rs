//! A place that holds one file, encrypted or not.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};

use crate::contender::{Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::measuring::content::{Content, Sink, marker};

/// Blocks that are written to try a store.
const TRIAL_BLOCKS: u64 = 3;

/// How much is read at a time where the size is ours to choose.
pub(super) const READ_BYTES: usize = 1_000_000;

/// A place that holds one file.
pub(super) trait Store {
    /// Writes the file anew; durable when it returns.
    fn write(&mut self, content: &mut Content) -> Result<()>;

    /// What need not be measured of a writing that follows.
    fn prepare(&mut self, _: &mut Content) -> Result<()> {
        Ok(())
    }

    /// Reads it.
    fn read(&mut self, sink: &mut Sink) -> Result<()>;

    /// Puts it out of memory.
    fn evict(&mut self) -> Result<()>;

    /// The files in which its bytes lie at rest.
    fn at_rest(&self) -> Vec<PathBuf>;

    /// Settings that were found out when it was made.
    fn settings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Tries a store: all comes back as it was, and what lies at rest is not readable.
pub(super) fn check(contender: &Contender, store: &mut dyn Store) -> Result<()> {
    let named = |error: LabError| match error {
        LabError::Data { what, .. } => LabError::Data {
            file: contender.name.clone(),
            what,
        },
        other => other,
    };
    store.write(&mut Content::new(TRIAL_BLOCKS))?;
    let mut sink = Sink::new(TRIAL_BLOCKS);
    store.read(&mut sink)?;
    sink.complete().map_err(named)?;
    store.evict()?;
    let files = store.at_rest();
    let mut readable = false;
    for file in &files {
        readable |= holds(file, marker())?;
    }
    let expected = contender.placement == Placement::None;
    if readable == expected {
        return Ok(());
    }
    Err(LabError::Data {
        file: contender.name.clone(),
        what: if readable {
            "plaintext lies on the disk".to_owned()
        } else {
            format!("the file was not found among {} at rest", files.len())
        },
    })
}

/// Whether a file holds these bytes.
fn holds(path: &Path, wanted: &[u8]) -> Result<bool> {
    let mut file = File::open(path).doing(|| format!("opening {}", path.display()))?;
    let mut buffer = vec![0; READ_BYTES];
    let mut kept = 0;
    loop {
        let read = file.read(&mut buffer[kept..]);
        let read = read.doing(|| format!("reading {}", path.display()))?;
        let filled = kept + read;
        if find(&buffer[..filled], wanted) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // What is wanted may lie across the border.
        kept = filled.min(wanted.len() - 1);
        buffer.copy_within(filled - kept..filled, 0);
    }
}

fn find(buffer: &[u8], wanted: &[u8]) -> bool {
    let first = wanted[0];
    let starts = |(at, byte): (usize, &u8)| *byte == first && buffer[at..].starts_with(wanted);
    buffer.iter().enumerate().any(starts)
}

/// Puts a file, or all files below a folder, out of memory.
pub(super) fn evict(path: &Path) -> Result<()> {
    for path in files_below(path)? {
        let file = File::open(&path).doing(|| format!("opening {}", path.display()))?;
        fadvise(&file, 0, None, Advice::DontNeed)
            .doing(|| format!("putting {} out of memory", path.display()))?;
    }
    Ok(())
}

/// All files below a folder; the file itself when it is one.
pub(super) fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let listing = || format!("listing {}", path.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(path).doing(listing)? {
        let entry = entry.doing(listing)?;
        let kind = entry.file_type().doing(listing)?;
        if kind.is_dir() {
            files.extend(files_below(&entry.path())?);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the file in a way of its own.
    struct Faulty {
        path: PathBuf,
        keeps_bytes: usize,
    }

    impl Store for Faulty {
        fn write(&mut self, content: &mut Content) -> Result<()> {
            let mut all = Vec::new();
            while let Some(block) = content.next() {
                all.extend_from_slice(block);
            }
            all.truncate(self.keeps_bytes);
            fs::write(&self.path, all).doing(|| "writing".into())
        }

        fn read(&mut self, sink: &mut Sink) -> Result<()> {
            sink.take(&fs::read(&self.path).doing(|| "reading".into())?);
            Ok(())
        }

        fn evict(&mut self) -> Result<()> {
            evict(&self.path)
        }

        fn at_rest(&self) -> Vec<PathBuf> {
            vec![self.path.clone()]
        }
    }

    #[test]
    fn planted_faults_are_caught() {
        let path = std::env::temp_dir().join(format!("coffer-lab-store-{}", std::process::id()));
        let store = |keeps_bytes| Faulty {
            path: path.clone(),
            keeps_bytes,
        };
        let contender = |placement| Contender::new("faulty", placement, "a planted fault");
        let plaintext = check(&contender(Placement::User), &mut store(usize::MAX));
        let truncated = check(&contender(Placement::None), &mut store(2_999_999));
        let honest = check(&contender(Placement::None), &mut store(usize::MAX));
        fs::remove_file(&path).unwrap();
        let text = plaintext.unwrap_err().to_string();
        assert!(
            text.contains("faulty") && text.contains("plaintext lies"),
            "{text}"
        );
        let text = truncated.unwrap_err().to_string();
        assert!(
            text.contains("faulty") && text.contains("2999999 bytes"),
            "{text}"
        );
        honest.unwrap();
    }

    #[test]
    fn bytes_are_found_across_borders() {
        let path = std::env::temp_dir().join(format!("coffer-lab-holds-{}", std::process::id()));
        let mut content = vec![0; READ_BYTES + 100];
        content[READ_BYTES - 3..READ_BYTES + 3].copy_from_slice(b"marker");
        fs::write(&path, content).unwrap();
        let found = (
            holds(&path, b"marker").unwrap(),
            holds(&path, b"market").unwrap(),
        );
        fs::remove_file(&path).unwrap();
        assert_eq!(found, (true, false));
    }
}
