//! The server on a data folder of this machine.

use std::path::Path;

use coffer_client::{AdminClient, ClientError};

use crate::commands::objects::Typed;
use crate::config;
use crate::error::Error;
use crate::prove::s3_of;

/// The server on a data folder.
pub(super) struct OwnServer {
    /// Where it serves S3, or would.
    pub(super) address: String,
    /// Why it does not serve, where that is known: another server may be at that address.
    pub(super) away: Option<ClientError>,
}

impl OwnServer {
    /// The one on this folder, as it says itself to those who may ask it. It is not asked where
    /// another address was typed.
    ///
    /// # Errors
    /// When the configuration file can't be read.
    pub(super) async fn find(data: &Path, typed: &Typed<'_>) -> Result<Self, Error> {
        let server = AdminClient::Local {
            data: data.to_owned(),
        };
        let mut away = None;
        if typed.remote.endpoint.is_none() {
            match server.text("/health/ready").await {
                Ok(health) => {
                    if let Some(address) = s3_of(&health) {
                        return Ok(Self {
                            address: address.to_owned(),
                            away,
                        });
                    }
                    away = yet_to_serve(data, &health);
                }
                Err(error @ ClientError::NoServer { .. }) => away = Some(error),
                // Who may not ask it may know its address by the configuration file.
                Err(_) => {}
            }
        }
        let address = format!("https://{}", config::local_service(typed.data)?);
        Ok(Self { address, away })
    }
}

/// That a server does not serve S3 yet, if it says so.
fn yet_to_serve(data: &Path, health: &str) -> Option<ClientError> {
    let standing = { health.lines().next() }.filter(|standing| *standing != "ready")?;
    Some(ClientError::Unreachable {
        endpoint: format!("the server on {}", data.display()),
        problem: format!("it serves no S3 yet ({standing}); run this again when it is ready"),
        may_pass: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_starts_is_told_as_such() {
        let told = yet_to_serve(Path::new("/d"), "starting\ncertificate expires soon\n");
        let told = told.unwrap().to_string();
        let said = "the server on /d cannot be reached: it serves no S3 yet (starting)";
        assert!(told.starts_with(said), "{told}");
        // One of another version may be ready and not say where.
        assert!(yet_to_serve(Path::new("/d"), "ready\n").is_none());
    }
}
