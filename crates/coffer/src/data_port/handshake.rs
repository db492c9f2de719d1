//! The handshake of the data port's TLS, and who makes the records afterwards.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;

use coffer_client::KEY_EXCHANGES;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection, SupportedCipherSuite, version};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::data_port::kernel_tls::{self, NotOffered};
use crate::data_port::records::{Bare, Records, TlsSession};
use crate::error::Error;
use crate::tls::server_config::Certificate;

/// The suites where this program makes the records.
const SUITES: [SupportedCipherSuite; 3] = [
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
];

/// Kind and version of a record, and how long it is.
const RECORD_HEAD_BYTES: usize = 5;

/// How the data port speaks TLS.
pub struct DataTls {
    config: Arc<ServerConfig>,
    by_kernel: bool,
}

impl DataTls {
    /// TLS 1.3 with this certificate: the kernel's records where it offers that, else this
    /// program's. The log says which.
    pub fn new(certificate: Arc<Certificate>) -> Result<Self, Error> {
        let offered = kernel_tls::offered();
        match &offered {
            Ok(_) => tracing::info!("the data port speaks TLS 1.3, which the kernel encrypts"),
            Err(error) => {
                let advice = match error {
                    NotOffered::Missing => "; load it before the start: modprobe tls",
                    NotOffered::Refused(_) | NotOffered::Untried(_) => "",
                };
                tracing::warn!(
                    "the data port speaks TLS 1.3, but this program encrypts and not the kernel, \
                     which takes more CPU time: of TLS in the kernel, {error}{advice}"
                );
            }
        }
        let (suites, by_kernel) = match offered {
            Ok(suites) => (suites, true),
            Err(_) => (SUITES.to_vec(), false),
        };
        let config = config(certificate, suites, by_kernel)?;
        Ok(Self { config, by_kernel })
    }

    /// Shakes hands.
    pub async fn accept(&self, tcp: &TcpStream) -> io::Result<Records> {
        let connection = shake_hands(&self.config, tcp).await?;
        if !self.by_kernel {
            return Ok(Records::Program(Box::new(TlsSession::new(connection))));
        }
        let secrets = connection.dangerous_extract_secrets();
        kernel_tls::hand_over(tcp, &secrets.map_err(io::Error::other)?)?;
        Ok(Records::Kernel)
    }
}

/// No session is taken up again: a client that moves much keeps its connection.
fn config(
    certificate: Arc<Certificate>,
    cipher_suites: Vec<SupportedCipherSuite>,
    gives_secrets: bool,
) -> Result<Arc<ServerConfig>, Error> {
    let provider = CryptoProvider {
        cipher_suites,
        kx_groups: KEY_EXCHANGES.to_vec(),
        ..aws_lc_rs::default_provider()
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|source| Error::System {
            doing: "setting up TLS of the data port",
            source: io::Error::other(source),
        })?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.ignore_client_order = true;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.enable_secret_extraction = gives_secrets;
    Ok(Arc::new(config))
}

/// Shakes hands, and reads nothing that comes behind the handshake: who opens the records of data
/// has to find them all.
async fn shake_hands(config: &Arc<ServerConfig>, tcp: &TcpStream) -> io::Result<ServerConnection> {
    let mut connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
    let mut place = RecordPlace::default();
    loop {
        while connection.wants_write() {
            tcp.writable().await?;
            let sent = tcp.try_io(Interest::WRITABLE, || connection.write_tls(&mut Bare(tcp)));
            passing(sent)?;
        }
        if !connection.is_handshaking() {
            return Ok(connection);
        }
        tcp.readable().await?;
        let read = tcp.try_io(Interest::READABLE, || {
            connection.read_tls(&mut WithinRecord {
                socket: tcp,
                place: &mut place,
            })
        });
        if passing(read)? == Some(0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Err(error) = connection.process_new_packets() {
            // So that the client learns why; what is not sent at once is not sent.
            let _ = connection.write_tls(&mut Bare(tcp));
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
    }
}

/// What was moved; none, if the socket was not ready after all.
fn passing(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        moved => moved.map(Some),
    }
}

/// How far a record was read.
#[derive(Default)]
struct RecordPlace {
    head: [u8; RECORD_HEAD_BYTES],
    head_bytes: usize,
    missing_bytes: usize,
}

impl RecordPlace {
    /// How much may be read without coming to the next record.
    fn room(&self) -> usize {
        if self.missing_bytes > 0 {
            self.missing_bytes
        } else {
            RECORD_HEAD_BYTES - self.head_bytes
        }
    }

    fn advance(&mut self, bytes: &[u8]) {
        if self.missing_bytes > 0 {
            self.missing_bytes -= bytes.len();
            return;
        }
        let filled = self.head_bytes + bytes.len();
        self.head[self.head_bytes..filled].copy_from_slice(bytes);
        self.head_bytes = filled;
        if filled == RECORD_HEAD_BYTES {
            self.missing_bytes = usize::from(u16::from_be_bytes([self.head[3], self.head[4]]));
            self.head_bytes = 0;
        }
    }
}

/// A socket that gives no byte of a record before those of the last one were looked at.
struct WithinRecord<'a, S> {
    socket: &'a S,
    place: &'a mut RecordPlace,
}

impl<S: AsFd> Read for WithinRecord<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let room = self.place.room().min(out.len());
        let count = Bare(self.socket).read(&mut out[..room])?;
        self.place.advance(&out[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Write;

    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, ServerName};
    use tokio::net::TcpListener;

    use crate::tls::folder::Files;
    use crate::tls::server_config::Source;
    use crate::tls::server_names::names;

    fn client_config(data: &std::path::Path) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(data.join("tls/ca.pem")).unwrap();
        roots.add(authority).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    }

    /// The last record of a client's handshake and its first data come in one packet.
    #[tokio::test]
    async fn the_handshake_leaves_what_comes_behind_it() {
        let data = tempfile::tempdir().unwrap();
        let (certificate, _) = Certificate::load(Source::Local {
            files: Files::of(data.path()),
            names: names("some-host", &[], &[]),
            domains: Vec::new(),
        })
        .unwrap();
        let server = config(certificate, SUITES[..2].to_vec(), true).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = client_config(data.path());
        let client = tokio::task::spawn_blocking(move || {
            let mut tcp = std::net::TcpStream::connect(address).unwrap();
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let mut client = ClientConnection::new(config, name).unwrap();
            client.writer().write_all(b"what comes behind").unwrap();
            while client.is_handshaking() {
                let mut wire = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut wire).unwrap();
                }
                tcp.write_all(&wire).unwrap();
                client.read_tls(&mut tcp).unwrap();
                client.process_new_packets().unwrap();
            }
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            tcp.write_all(&wire).unwrap();
            (tcp, client)
        });
        let (tcp, _) = listener.accept().await.unwrap();
        let mut connection = shake_hands(&server, &tcp).await.unwrap();
        let _client = client.await.unwrap();
        let mut next = [0; RECORD_HEAD_BYTES];
        while tcp.peek(&mut next).await.unwrap() < next.len() {}
        assert_eq!(next[0], 23, "the next record is one of data");
        tcp.readable().await.unwrap();
        connection.read_tls(&mut Bare(&tcp)).unwrap();
        connection.process_new_packets().unwrap();
        let mut read = [0; 64];
        let count = connection.reader().read(&mut read).unwrap();
        assert_eq!(&read[..count], b"what comes behind");
        let secrets = connection.dangerous_extract_secrets().unwrap();
        assert_eq!(
            (secrets.tx.0, secrets.rx.0),
            (0, 1),
            "records of data so far"
        );
    }
}
