//! TLS of both listeners: versions, suites, and a certificate that can change while they serve.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use coffer_client::KEY_EXCHANGES;
use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::config::TlsFiles;
use crate::error::Error;
use crate::tls::certificates::{self, Ensured};
use crate::tls::expiry::{expiry, is_authoritys};
use crate::tls::folder::{AUTHORITY_ADVICE, CertificateError, Files};

/// Where the certificate comes from.
#[derive(Debug)]
pub enum Source {
    /// The operator keeps it.
    Operator(TlsFiles),
    /// The local authority makes it, for these names and these domains of virtual-host style.
    Local {
        /// The authority's files.
        files: Files,
        /// The names.
        names: Vec<ServerName<'static>>,
        /// The domains.
        domains: Vec<String>,
    },
}

/// The certificate that connections get.
#[derive(Debug)]
pub struct Certificate {
    source: Source,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Loads the certificate, after making it where that is ours to do.
    pub fn load(source: Source) -> Result<(Arc<Self>, Ensured), Error> {
        let ensured = made_by(&source, certificates::ensure)?;
        let current = RwLock::new(Arc::new(read(&source)?));
        Ok((Arc::new(Self { source, current }), ensured))
    }

    /// Renews a certificate of the local authority that expires soon, and takes over one that the
    /// operator has replaced. Says whether new connections get another one from now on.
    pub fn refresh(&self) -> Result<bool, Error> {
        made_by(&self.source, certificates::renew)?;
        let fresh = read(&self.source)?;
        let ends = |key: &CertifiedKey| key.cert.first().and_then(expiry);
        let has_expired = |end: Option<SystemTime>| end.is_some_and(|end| end <= SystemTime::now());
        if has_expired(ends(&fresh)) && !has_expired(ends(&self.current.read())) {
            let problem = "it has expired, and the one in use has not";
            return Err(unusable(&self.source.certificate(), &problem, CERT_ADVICE));
        }
        let mut current = self.current.write();
        let changed = fresh.cert != current.cert;
        *current = Arc::new(fresh);
        Ok(changed)
    }

    /// When clients accept it no more, as far as that can be told.
    pub fn expiry(&self) -> Option<SystemTime> {
        let current = self.current.read();
        expiry(current.cert.first()?)
    }

    /// Whether it is marked as an authority's, so that clients may refuse it.
    pub fn is_authoritys(&self) -> bool {
        let current = self.current.read();
        current.cert.first().is_some_and(is_authoritys)
    }

    /// Names that it should be for, and that the local authority does not sign for.
    pub fn refused(&self) -> Result<Vec<String>, CertificateError> {
        match &self.source {
            Source::Operator(_) => Ok(Vec::new()),
            Source::Local {
                files,
                names,
                domains,
            } => certificates::refused(files, names, domains, SystemTime::now()),
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().clone())
    }
}

impl Source {
    /// The file of the certificate.
    fn certificate(&self) -> PathBuf {
        match self {
            Self::Operator(TlsFiles { cert, .. }) => cert.clone(),
            Self::Local { files, .. } => files.server_cert(),
        }
    }
}

/// The TLS settings of both listeners.
///
/// AES-256-GCM comes first, and our order counts: hosts that run coffer have AES instructions.
/// Keys are exchanged by X25519MLKEM768 with clients that offer it: what is recorded on the wire
/// today stays closed to a quantum computer of later (draft-ietf-tls-ecdhe-mlkem, section 4).
/// HTTP/1.1 is all that S3 clients speak; who offers 1.0 only is served by that, and who offers
/// HTTP/2 only is told so (alert 120, `no_application_protocol`). Sessions resume by tickets, so
/// that the server keeps nothing for clients that are gone.
pub fn server_config(certificate: Arc<Certificate>) -> Result<Arc<ServerConfig>, Error> {
    let refused = |source: rustls::Error| Error::System {
        doing: "setting up TLS",
        source: std::io::Error::other(source),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(refused)?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec(), b"http/1.0".to_vec()];
    config.ignore_client_order = true;
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(refused)?;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: KEY_EXCHANGES.to_vec(),
        ..aws_lc_rs::default_provider()
    }
}

/// What the local authority has to do for a certificate, if it is its own.
fn made_by(source: &Source, make: Make) -> Result<Ensured, Error> {
    let Source::Local {
        files,
        names,
        domains,
    } = source
    else {
        return Ok(Ensured::Kept);
    };
    make(files, names, domains, SystemTime::now()).map_err(|error| match error {
        CertificateError::Authority { path, problem } => Error::Certificate {
            path,
            problem: problem.to_owned(),
            advice: AUTHORITY_ADVICE,
        },
        error => Error::Certificate {
            path: files.server_cert(),
            problem: error.to_string(),
            advice: "see that the server may write there, or give --tls-cert and --tls-key",
        },
    })
}

/// [`certificates::ensure`] or [`certificates::renew`].
type Make =
    fn(&Files, &[ServerName<'static>], &[String], SystemTime) -> Result<Ensured, CertificateError>;

fn read(source: &Source) -> Result<CertifiedKey, Error> {
    let cert = source.certificate();
    let key = match source {
        Source::Operator(TlsFiles { key, .. }) => key.clone(),
        Source::Local { files, .. } => files.server_key(),
    };
    let chain = CertificateDer::pem_file_iter(&cert)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| unusable(&cert, &error, CERT_ADVICE))?;
    if chain.is_empty() {
        return Err(unusable(&cert, &"it holds no certificate", CERT_ADVICE));
    }
    let secret =
        PrivateKeyDer::from_pem_file(&key).map_err(|error| unusable(&key, &error, KEY_ADVICE))?;
    CertifiedKey::from_der(chain, secret, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => unusable(
            &key,
            &format!("it is not the key of {}", cert.display()),
            KEY_ADVICE,
        ),
        error => unusable(&key, &error, KEY_ADVICE),
    })
}

const CERT_ADVICE: &str = "give the certificate chain in PEM form, the server's own first";
const KEY_ADVICE: &str = "give the certificate's private key in PEM form, without a passphrase";

fn unusable(path: &Path, problem: &dyn std::fmt::Display, advice: &'static str) -> Error {
    Error::Certificate {
        path: path.to_owned(),
        problem: problem.to_string(),
        advice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    use rustls::{
        ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, ServerConnection,
    };

    fn local(data: &Path) -> Source {
        let names = crate::tls::server_names::names("some-host", &[], &[]);
        Source::Local {
            files: Files::of(data),
            names,
            domains: Vec::new(),
        }
    }

    struct Session {
        suite: String,
        version: ProtocolVersion,
        alpn: Option<Vec<u8>>,
        resumed: bool,
    }

    /// One handshake in memory, as a client that knows the authority does it.
    fn shake(server: &Arc<ServerConfig>, client: &Arc<ClientConfig>, name: &str) -> Session {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(client.clone(), name).unwrap();
        let mut server = ServerConnection::new(server.clone()).unwrap();
        for _ in 0..4 {
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            while !wire.is_empty() {
                let mut rest = &wire[..];
                server.read_tls(&mut rest).unwrap();
                server.process_new_packets().unwrap();
                wire = rest.to_vec();
            }
            let mut wire = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            while !wire.is_empty() {
                let mut rest = &wire[..];
                client.read_tls(&mut rest).unwrap();
                client.process_new_packets().unwrap();
                wire = rest.to_vec();
            }
        }
        assert!(!server.is_handshaking() && !client.is_handshaking());
        Session {
            suite: format!("{:?}", server.negotiated_cipher_suite().unwrap().suite()),
            version: server.protocol_version().unwrap(),
            alpn: server.alpn_protocol().map(<[u8]>::to_vec),
            resumed: server.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        }
    }

    fn client(data: &Path, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(data.join("tls/ca.pem")).unwrap())
            .unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    fn served() -> &'static (tempfile::TempDir, Arc<ServerConfig>) {
        static SERVED: OnceLock<(tempfile::TempDir, Arc<ServerConfig>)> = OnceLock::new();
        SERVED.get_or_init(|| {
            let data = tempfile::tempdir().unwrap();
            let (certificate, ensured) = Certificate::load(local(data.path())).unwrap();
            assert_eq!(ensured, Ensured::Founded);
            let config = server_config(certificate).unwrap();
            (data, config)
        })
    }

    #[test]
    fn clients_get_the_strongest_suite_under_every_name_and_resume() {
        let (data, server) = served();
        for (version, suite) in [
            (&version::TLS13, "TLS13_AES_256_GCM_SHA384"),
            (&version::TLS12, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
        ] {
            let client = Arc::new(client(data.path(), &[version]));
            for name in ["localhost", "127.0.0.1", "::1", "some-host"] {
                let session = shake(server, &client, name);
                assert_eq!(session.suite, suite);
                assert_eq!(session.version, version.version);
                assert_eq!(session.alpn.as_deref(), Some(&b"http/1.1"[..]));
                assert!(!session.resumed);
                assert!(shake(server, &client, name).resumed, "{name} {version:?}");
            }
        }
    }

    #[test]
    fn who_offers_another_protocol_is_served_or_told() {
        let (data, server) = served();
        let offers = |protocols: &[&str]| {
            let mut client = client(data.path(), &[&version::TLS13]);
            client.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
            Arc::new(client)
        };
        let session = |protocols: &[&str]| shake(server, &offers(protocols), "localhost").alpn;
        assert_eq!(session(&["http/1.0"]).unwrap(), b"http/1.0");
        assert_eq!(session(&["http/1.0", "http/1.1"]).unwrap(), b"http/1.1");
        assert_eq!(session(&[]), None);
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(offers(&["h2"]), name).unwrap();
        let mut server = ServerConnection::new(server.clone()).unwrap();
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &wire[..]).unwrap();
        let refused = server.process_new_packets().unwrap_err();
        assert_eq!(refused, rustls::Error::NoApplicationProtocol);
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut &wire[..]).unwrap();
        let told = client.process_new_packets().unwrap_err();
        let alert = rustls::AlertDescription::NoApplicationProtocol;
        assert_eq!(told, rustls::Error::AlertReceived(alert));
    }

    #[test]
    fn refresh_takes_over_a_replaced_certificate() {
        let data = tempfile::tempdir().unwrap();
        Certificate::load(local(data.path())).unwrap();
        let tls = data.path().join("tls");
        let source = Source::Operator(TlsFiles {
            cert: tls.join("server.pem"),
            key: tls.join("server.key"),
        });
        let (certificate, _) = Certificate::load(source).unwrap();
        assert!(!certificate.refresh().unwrap());
        std::fs::remove_file(tls.join("server.pem")).unwrap();
        assert!(certificate.refresh().is_err(), "the one in use stays");
        Certificate::load(local(data.path())).unwrap();
        assert!(certificate.refresh().unwrap());
    }

    #[test]
    fn unusable_files_are_named() {
        let data = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        for folder in [&data, &other] {
            Certificate::load(local(folder.path())).unwrap();
        }
        let tls = data.path().join("tls");
        let message = |cert: &Path, key: &Path| {
            let files = TlsFiles {
                cert: cert.to_owned(),
                key: key.to_owned(),
            };
            Certificate::load(Source::Operator(files))
                .unwrap_err()
                .to_string()
        };
        let (cert, key) = (tls.join("server.pem"), tls.join("server.key"));
        let missing = message(&tls.join("none.pem"), &key);
        assert!(
            missing.contains("none.pem") && missing.contains("give the certificate"),
            "{missing}"
        );
        let no_key = message(&cert, &cert);
        assert!(no_key.contains("private key in PEM"), "{no_key}");
        let no_cert = message(&key, &key);
        assert!(no_cert.contains("it holds no certificate"), "{no_cert}");
        let strange = message(&cert, &other.path().join("tls/server.key"));
        assert!(strange.contains("it is not the key of"), "{strange}");
    }
}
