//! How many connections there may be.

use crate::hardening::open_files_max;
use crate::limits::{Limits, OTHER_FILES};

/// As many connections as configured, but no more than the system lets us open: requests under way
/// need files of blobs besides, and catalogs and listeners need some too.
pub fn connections(limits: &Limits) -> usize {
    let configured = limits.connections;
    let files = usize::try_from(open_files_max()).unwrap_or(usize::MAX);
    let needed = limits
        .requests
        .saturating_mul(2)
        .saturating_add(OTHER_FILES);
    let possible = files.saturating_sub(needed).max(files / 3).max(16);
    if possible < configured {
        tracing::warn!(
            configured,
            possible,
            "fewer connections: the limit of open files is low"
        );
    }
    configured.min(possible)
}
