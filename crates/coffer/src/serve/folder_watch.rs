//! Ending at once when another folder takes the data folder's name.
//!
//! The lock is the folder's, and moves with it. A server whose folder was moved away would go on by
//! path, and so write into the folder that is there now, perhaps beside a server of its own. So it
//! ends before it opens, writes or makes anything there; and, where it has nothing to do, within a
//! second.

use std::io::Write;

use coffer_vault::Vault;

use crate::limits::FOLDER_LOOK;

/// Ends the process as soon as another folder has the name: whatever comes upon that does, and this
/// looks again and again.
pub async fn watch(vault: Vault) {
    vault.when_folder_is_another(end);
    loop {
        tokio::time::sleep(FOLDER_LOOK).await;
        if vault.folder_is_another() {
            end();
        }
    }
}

/// Without closing anything: that would be done by path.
pub fn end() {
    let told = "error: the data folder was moved away, and another one has its name: this server \
                ends at once. What was acknowledged is in the folder that was moved";
    // Not by the log's queue, which would be lost.
    let _ = writeln!(std::io::stderr(), "{told}");
    std::process::exit(1);
}
