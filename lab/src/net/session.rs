//! What is spoken over a connection: nothing, or TLS by one of three.

use std::io::{Read, Write};
use std::net::TcpStream;

use openssl::pkey::PKey;
use openssl::ssl::{SslAcceptor, SslConnector, SslMethod, SslStream, SslVersion};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::error::{LabError, Result};
use coffer_measure::tls::Tls;

/// Who encrypts within the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// Neither end, or the link below.
    Plain,
    Rustls,
    OpenSsl,
    KernelTls,
}

/// One end of a connection.
pub(super) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A connection that does not come about is a failure, and not something wrong.
fn failed(what: impl ToString) -> LabError {
    LabError::Io {
        action: "greeting by TLS".into(),
        source: std::io::Error::other(what.to_string()),
    }
}

impl Session {
    /// The side that listened. Kernel TLS has no handshake of its own here: its keys are set by the
    /// one who has both ends.
    pub(super) fn accept(self, stream: TcpStream, tls: &Tls) -> Result<Box<dyn Stream>> {
        match self {
            Self::Plain | Self::KernelTls => Ok(Box::new(stream)),
            Self::Rustls => {
                let connection = ServerConnection::new(tls.server.clone()).map_err(failed)?;
                Ok(Box::new(StreamOwned::new(connection, stream)))
            }
            Self::OpenSsl => Ok(Box::new(accept_by_openssl(stream, tls)?)),
        }
    }

    /// The side that connected; greets the other.
    pub(super) fn connect(self, mut stream: TcpStream, tls: &Tls) -> Result<Box<dyn Stream>> {
        match self {
            Self::Plain | Self::KernelTls => Ok(Box::new(stream)),
            Self::Rustls => {
                let connection = ClientConnection::new(tls.client.clone(), tls.name.clone());
                let mut connection = connection.map_err(failed)?;
                while connection.is_handshaking() {
                    connection.complete_io(&mut stream).map_err(failed)?;
                }
                Ok(Box::new(StreamOwned::new(connection, stream)))
            }
            Self::OpenSsl => Ok(Box::new(connect_by_openssl(stream, tls)?)),
        }
    }
}

const CIPHER_SUITE: &str = "TLS_AES_256_GCM_SHA384";

fn accept_by_openssl(stream: TcpStream, tls: &Tls) -> Result<SslStream<TcpStream>> {
    let acceptor = || -> std::result::Result<SslAcceptor, openssl::error::ErrorStack> {
        let mut builder = SslAcceptor::mozilla_modern_v5(SslMethod::tls_server())?;
        builder.set_certificate(X509::from_der(&tls.certificate)?.as_ref())?;
        builder.set_private_key(PKey::private_key_from_der(&tls.private_key)?.as_ref())?;
        builder.set_min_proto_version(Some(SslVersion::TLS1_3))?;
        builder.set_ciphersuites(CIPHER_SUITE)?;
        Ok(builder.build())
    };
    acceptor().map_err(failed)?.accept(stream).map_err(failed)
}

fn connect_by_openssl(stream: TcpStream, tls: &Tls) -> Result<SslStream<TcpStream>> {
    let connector = || -> std::result::Result<SslConnector, openssl::error::ErrorStack> {
        let mut builder = SslConnector::builder(SslMethod::tls_client())?;
        let mut trusted = X509StoreBuilder::new()?;
        trusted.add_cert(X509::from_der(&tls.certificate)?)?;
        builder.set_cert_store(trusted.build());
        builder.set_min_proto_version(Some(SslVersion::TLS1_3))?;
        builder.set_ciphersuites(CIPHER_SUITE)?;
        Ok(builder.build())
    };
    connector()
        .map_err(failed)?
        .connect("localhost", stream)
        .map_err(failed)
}
