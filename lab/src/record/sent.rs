//! Where the records lie that were sent from other machines.

use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};

/// Where a repository keeps the records that were sent.
const SENT: &str = "docs/lab/machines";

/// The records of the repository that this folder lies in, or else this program.
///
/// # Errors
///
/// When neither lies in one.
pub fn folder() -> Result<PathBuf> {
    let starts = [std::env::current_dir(), std::env::current_exe()];
    above(starts.iter().flatten().map(PathBuf::as_path))
}

fn above<'a>(mut starts: impl Iterator<Item = &'a Path>) -> Result<PathBuf> {
    let found = starts.find_map(|start| {
        let mut places = start.ancestors().map(|place| place.join(SENT));
        places.find(|place| place.is_dir())
    });
    found.ok_or_else(|| LabError::Data {
        file: SENT.to_owned(),
        what: "is neither in this folder nor above it: name a folder of records with --machines"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn records_are_found_from_within_a_repository_and_asked_for_elsewhere() {
        let folder = std::env::temp_dir().join(format!("lab-sent-{}", std::process::id()));
        let (sent, deep) = (folder.join("there").join(SENT), folder.join("there/a/b"));
        fs::create_dir_all(&sent).unwrap();
        fs::create_dir_all(&deep).unwrap();
        let starts = [folder.join("elsewhere"), deep];
        let found = above(starts.iter().map(PathBuf::as_path));
        let missed = above(starts[..1].iter().map(PathBuf::as_path));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.unwrap(), sent);
        let missed = missed.unwrap_err().to_string();
        assert!(missed.contains("--machines"), "{missed}");
    }
}
