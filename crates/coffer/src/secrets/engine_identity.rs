//! The identity of an engine, by the passphrase or the token that its gateways share.

use std::path::Path;

use coffer_keys::{ExportIdentity, SourceSecrets, SourceSpec};
use coffer_replica::Place;
use coffer_vault::EngineIdentity;

use crate::error::Error;
use crate::secrets::passphrase::{PassphraseArgs, Purpose, pin};

/// The identity of the engine in this store, for the gateway with this cache; where there is no
/// engine yet, it is made.
///
/// # Errors
/// When what opens it is not given, or does not open it; of the store.
pub async fn gateway_identity(
    from: &Place,
    source: &SourceSpec,
    args: &PassphraseArgs,
    cache: &Path,
) -> Result<ExportIdentity, Error> {
    let there = EngineIdentity::look(from).await?;
    let purpose = if there.is_there() {
        Purpose::Open
    } else {
        Purpose::Choose
    };
    let secrets = asked(source, args, purpose).await?;
    let (source, cache) = (source.clone(), cache.to_owned());
    Ok(there.open_or_make(source, secrets, cache).await?)
}

/// The identity of the engine in this store, if there is one.
///
/// # Errors
/// As [`gateway_identity`].
pub async fn identity_there(
    from: &Place,
    source: &SourceSpec,
    args: &PassphraseArgs,
) -> Result<Option<ExportIdentity>, Error> {
    let there = EngineIdentity::look(from).await?;
    if !there.is_there() {
        return Ok(None);
    }
    let secrets = asked(source, args, Purpose::Open).await?;
    Ok(Some(there.open(source.clone(), secrets).await?))
}

/// Asks where it holds up nothing else: a terminal takes its time.
async fn asked(
    source: &SourceSpec,
    args: &PassphraseArgs,
    purpose: Purpose,
) -> Result<SourceSecrets, Error> {
    let (source, args) = (source.clone(), args.clone());
    let ask = move || -> Result<SourceSecrets, Error> {
        let mut secrets = SourceSecrets::default();
        if source.needs_passphrase() {
            let passphrase = args.passphrase(purpose)?;
            if std::str::from_utf8(&passphrase).is_err() {
                return Err(Error::Option {
                    option: "passphrase",
                    problem: "that of an engine is text (UTF-8)".to_owned(),
                });
            }
            secrets.passphrase = Some(passphrase);
        }
        if source.needs_pin() {
            secrets.pin = Some(pin()?);
        }
        Ok(secrets)
    };
    let asked = tokio::task::spawn_blocking(ask).await;
    asked.map_err(|error| Error::System {
        doing: "asking for a passphrase",
        source: std::io::Error::other(error),
    })?
}
