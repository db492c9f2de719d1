//! `coffer tls renew-authority`.

use std::io::Write;
use std::path::Path;

use crate::authority::give_up_authority;
use crate::error::Error;
use crate::tls_folder::Files;

/// Takes the local authority of a data folder away, and says what to do then.
pub fn renew_authority(data: &Path) -> Result<(), Error> {
    let files = Files::of(data);
    give_up_authority(&files).map_err(|error| Error::Certificate {
        path: files.ca_cert(),
        problem: error.to_string(),
        advice: "give the data folder of a server with a local authority, as the user who owns it",
    })?;
    let text = format!(
        "The authority is gone. Restart the server, and give clients the new {}:\n\
         those that have only the old one can't connect from then on.\n",
        files.ca_cert().display()
    );
    // A standard output that is closed changes nothing of what was done.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    Ok(())
}
