//! TLS as all contenders speak it here: version 1.3, AES-256-GCM, a certificate made for the run.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::error::{LabError, Result};

/// What the settings of contenders say.
pub const SETTINGS: &str = "TLS 1.3, AES-256-GCM, connected before the measurement";

/// Both sides of a connection.
#[derive(Clone)]
pub struct Tls {
    /// For the server.
    pub server: Arc<ServerConfig>,
    /// For the client, which trusts that server alone.
    pub client: Arc<ClientConfig>,
    /// The server's certificate, DER.
    pub certificate: Vec<u8>,
    /// Its private key, PKCS #8, DER: made for this run, and worth nothing after it.
    pub private_key: Vec<u8>,
    /// The server's name.
    pub name: ServerName<'static>,
}

fn failed(what: impl ToString) -> LabError {
    LabError::Cipher {
        contender: "TLS".into(),
        what: what.to_string(),
    }
}

impl Tls {
    /// Makes a key and a certificate.
    pub fn new() -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(failed)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).map_err(failed)?;
        let server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key));
        Ok(Self {
            server: Arc::new(server.map_err(failed)?),
            client: Arc::new(client(roots)?),
            certificate: made.cert.der().to_vec(),
            private_key: made.signing_key.serialize_der(),
            name: ServerName::try_from("localhost").map_err(failed)?,
        })
    }
}

/// For a client that trusts what one PEM file holds.
pub fn client_trusting(authority: &Path) -> Result<Arc<ClientConfig>> {
    let unreadable = |what: String| LabError::Data {
        file: authority.display().to_string(),
        what,
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(authority);
    for certificate in found.map_err(|error| unreadable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(failed)?;
    }
    Ok(Arc::new(client(roots)?))
}

fn client(roots: RootCertStore) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384];
    Arc::new(CryptoProvider {
        cipher_suites,
        ..aws_lc_rs::default_provider()
    })
}
