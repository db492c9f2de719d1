//! TLS as all contenders speak it: version 1.3, AES-256-GCM, no compromise on either side.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};

use crate::error::{MeasureError, Result, doing};

/// The name of the cipher suite, as OpenSSL wants it.
pub const CIPHER_SUITE: &str = "TLS_AES_256_GCM_SHA384";

/// The name of the certificates that are made here.
const NAME: &str = "localhost";

/// Both sides of a connection, with a key and a certificate that were made for the run and are
/// worth nothing after it.
#[derive(Clone)]
pub struct Tls {
    /// For the server.
    pub server: Arc<ServerConfig>,
    /// For the client, which trusts that server alone.
    pub client: Arc<ClientConfig>,
    /// The server's certificate, DER.
    pub certificate: Vec<u8>,
    /// Its private key, PKCS #8, DER.
    pub private_key: Vec<u8>,
    /// The server's name.
    pub name: ServerName<'static>,
}

impl Tls {
    /// Makes a key and a certificate.
    pub fn new() -> Result<Self> {
        let made = self_signed()?;
        let (certificate, private_key) = (made.cert.der(), made.signing_key.serialize_der());
        let key = PrivatePkcs8KeyDer::from(private_key.clone());
        let server = server(vec![certificate.clone()], PrivateKeyDer::Pkcs8(key))?;
        Ok(Self {
            server: Arc::new(server),
            client: Arc::new(client([certificate.clone()])?),
            certificate: certificate.to_vec(),
            private_key,
            name: ServerName::try_from(NAME).expect("the constant is a name"),
        })
    }

    /// For a client that trusts this server, exchanges keys in one way only, and shakes hands in
    /// full each time.
    pub fn client_exchanging(
        &self,
        exchange: &'static dyn SupportedKxGroup,
    ) -> Result<ClientConfig> {
        exchanging([CertificateDer::from(self.certificate.clone())], exchange)
    }
}

/// A certificate for this machine and its key, in files, for servers in processes of their own.
#[derive(Debug, Clone)]
pub struct Identity {
    /// PEM.
    pub certificate: PathBuf,
    /// PEM, PKCS #8.
    pub private_key: PathBuf,
}

impl Identity {
    /// Makes one in a folder.
    pub fn create(folder: &Path) -> Result<Self> {
        let made = self_signed()?;
        let identity = Self::in_folder(folder);
        for (path, text) in [
            (&identity.certificate, made.cert.pem()),
            (&identity.private_key, made.signing_key.serialize_pem()),
        ] {
            doing(fs::write(path, text), || {
                format!("writing {}", path.display())
            })?;
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

    /// For a server of this identity.
    pub fn server(&self) -> Result<Arc<ServerConfig>> {
        let path = &self.private_key;
        let key = PrivateKeyDer::from_pem_file(path).map_err(|_| MeasureError::Unreadable {
            path: path.clone(),
            what: "no private key in it",
        })?;
        Ok(Arc::new(server(certificates(&self.certificate)?, key)?))
    }
}

/// For a client that trusts what one PEM file holds.
pub fn client_trusting(authority: &Path) -> Result<ClientConfig> {
    client(certificates(authority)?)
}

/// For a client that trusts what one PEM file holds, exchanges keys in one way only, and shakes
/// hands in full each time.
pub fn client_exchanging(
    authority: &Path,
    exchange: &'static dyn SupportedKxGroup,
) -> Result<ClientConfig> {
    exchanging(certificates(authority)?, exchange)
}

fn exchanging(
    trusted: impl IntoIterator<Item = CertificateDer<'static>>,
    exchange: &'static dyn SupportedKxGroup,
) -> Result<ClientConfig> {
    let only = CryptoProvider {
        kx_groups: vec![exchange],
        ..CryptoProvider::clone(&provider())
    };
    let mut config = client_of(Arc::new(only), trusted)?;
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// With an ECDSA P-256 key.
fn self_signed() -> Result<CertifiedKey<KeyPair>> {
    let names = [NAME, "127.0.0.1"].map(String::from);
    Ok(rcgen::generate_simple_self_signed(names)?)
}

fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig> {
    Ok(ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?)
}

fn client(trusted: impl IntoIterator<Item = CertificateDer<'static>>) -> Result<ClientConfig> {
    client_of(provider(), trusted)
}

fn client_of(
    provider: Arc<CryptoProvider>,
    trusted: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate)?;
    }
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = |what| MeasureError::Unreadable {
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
