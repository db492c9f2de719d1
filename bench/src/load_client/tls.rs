//! TLS as all contenders speak it here: version 1.3, AES-256-GCM, no compromise on either side.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{BenchError, Doing, Result};

/// The name of the cipher suite, as OpenSSL wants it.
pub const CIPHER_SUITE: &str = "TLS_AES_256_GCM_SHA384";

/// A certificate for 127.0.0.1, for the contenders that have none of their own.
#[derive(Debug, Clone)]
pub struct Identity {
    /// PEM.
    pub certificate: PathBuf,
    /// PEM, PKCS #8.
    pub private_key: PathBuf,
}

impl Identity {
    /// Makes one, with an ECDSA P-256 key, in a folder.
    pub fn create(folder: &Path) -> Result<Self> {
        let names = ["localhost", "127.0.0.1"].map(String::from);
        let made = rcgen::generate_simple_self_signed(names)?;
        let identity = Self::in_folder(folder);
        for (path, text) in [
            (&identity.certificate, made.cert.pem()),
            (&identity.private_key, made.signing_key.serialize_pem()),
        ] {
            fs::write(path, text).doing(|| format!("writing {}", path.display()))?;
        }
        Ok(identity)
    }

    /// The one that was made in a folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            certificate: folder.join("server.pem"),
            private_key: folder.join("server.key"),
        }
    }
}

/// For a client that trusts what one PEM file holds. Secrets can be extracted from its
/// connections: the load client protects records on its own, see
/// [`crate::load_client::tls_records`].
pub fn client_config(trusted: &Path) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(trusted)? {
        roots.add(certificate)?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

/// For the server of the bench's own.
pub fn server_config(identity: &Identity) -> Result<Arc<ServerConfig>> {
    let path = &identity.private_key;
    let key = PrivateKeyDer::from_pem_file(path).map_err(|_| BenchError::Unreadable {
        path: path.clone(),
        what: "no private key in it",
    })?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates(&identity.certificate)?, key)?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = |what| BenchError::Unreadable {
        path: path.into(),
        what,
    };
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|_| unreadable("cannot be read"))?
        .collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(unreadable("no certificate in it")),
    }
}

fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384];
    Arc::new(CryptoProvider {
        cipher_suites,
        ..aws_lc_rs::default_provider()
    })
}
