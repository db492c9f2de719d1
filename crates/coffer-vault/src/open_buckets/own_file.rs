//! Files that states of a standby share until one of them is opened.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::blocking::blocking;
use crate::data_folder::failed;
use crate::error::Result;

/// Makes a file that has other names as well one of its own: who opens it may write there. One that
/// is missing is left to be met.
pub(super) async fn own_file(path: PathBuf) -> Result<()> {
    blocking(move || {
        let is_shared = fs::metadata(&path).is_ok_and(|found| found.nlink() > 1);
        if !is_shared {
            return Ok(());
        }
        let own = path.with_extension("own");
        // Shares blocks where the file system can.
        let copied = fs::copy(&path, &own).map_err(failed("copy", &path));
        if copied.is_err() {
            // What was copied of it takes room on a disk that may have none.
            let _ = fs::remove_file(&own);
        }
        copied?;
        fs::rename(&own, &path).map_err(failed("rename", &own))
    })
    .await
}
