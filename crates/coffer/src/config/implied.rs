//! The data folder that a command takes where none is named: `./coffer-data`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::DATA_DEFAULT;
use crate::error::Error;

/// The bits of a mode by which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// Why it is passed over.
pub const PASSED_OVER: &str = "./coffer-data is another user's, who could have put it here, so it \
                               is used only where it is named: --data ./coffer-data";

/// That folder. It need not be there.
///
/// # Errors
/// Where another user may have put it there: that user's server would be asked, and told secrets.
pub(super) fn implied() -> Result<PathBuf, Error> {
    let path = PathBuf::from(DATA_DEFAULT);
    if fs::symlink_metadata(&path).is_ok() && !is_trusted(&path) {
        return Err(Error::Option {
            option: "--data",
            problem: PASSED_OVER.to_owned(),
        });
    }
    Ok(path)
}

/// Whether a folder that was not named is what this user or root put there, or lies where no other
/// user puts files. Whose it is says with whose key and authority a server is reached, and so who
/// gets what is stored.
pub fn is_trusted(path: &Path) -> bool {
    let is_ours = |there: &fs::Metadata| there.uid() == geteuid().as_raw() || there.uid() == 0;
    // Of a link counts who put it there.
    if fs::symlink_metadata(path).is_ok_and(|there| is_ours(&there)) {
        return true;
    }
    let around = path
        .parent()
        .filter(|around| !around.as_os_str().is_empty());
    let around = fs::metadata(around.unwrap_or(Path::new(".")));
    around.is_ok_and(|around| is_ours(&around) && around.mode() & OTHERS_WRITE == 0)
}
