//! What it takes to open a data folder's root key, as far as it takes anything.

use std::path::Path;

use coffer_keys::{KeyFolder, SourceSecrets, SourceSpec};
use coffer_vault::VaultError;

use crate::error::Error;
use crate::secrets::passphrase::{PassphraseArgs, Purpose, pin};

/// Asks for what opens the root key of this folder: of the source that it records, or, where there
/// is no keystore yet, of the one that is asked for.
///
/// # Errors
/// When the record can't be read, or what it takes is not given.
pub fn secrets_of(
    data: &Path,
    asked: Option<&SourceSpec>,
    args: &PassphraseArgs,
) -> Result<SourceSecrets, Error> {
    let folder = KeyFolder::new(data);
    let is_new = !folder.keystore().exists();
    let record = folder.record().map_err(VaultError::from)?;
    let purpose = if is_new {
        Purpose::Choose
    } else {
        Purpose::Open
    };
    let asks = |of: fn(&SourceSpec) -> bool| asked.is_some_and(of);
    let mut secrets = SourceSecrets::default();
    if record.needs_passphrase() || asks(SourceSpec::needs_passphrase) {
        secrets.passphrase = Some(args.passphrase(purpose)?);
    }
    if record.needs_pin() || asks(SourceSpec::needs_pin) {
        secrets.pin = Some(pin()?);
    }
    Ok(secrets)
}

/// What opens a source that the root key is to be moved to, which the running server will use.
///
/// # Errors
/// When what it takes is not given.
pub fn secrets_for(to: &SourceSpec, args: &PassphraseArgs) -> Result<SourceSecrets, Error> {
    let mut secrets = SourceSecrets::default();
    if to.needs_passphrase() {
        secrets.passphrase = Some(args.passphrase(Purpose::Choose)?);
    }
    if to.needs_pin() {
        secrets.pin = Some(pin()?);
    }
    Ok(secrets)
}
