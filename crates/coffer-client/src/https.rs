//! A server that is reached over HTTPS, and whom to trust that it is the right one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use http::Uri;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::ClientError;
use crate::limits::CONNECT_TIMEOUT;

/// Where Debian keeps the authorities that the system trusts.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What names the authority of a server, unless a command has another option for it.
pub(crate) const AUTHORITY_BY: &str = "--ca or AWS_CA_BUNDLE";

/// A server's address.
#[derive(Debug, Clone)]
pub struct HttpsServer {
    text: String,
    /// As in a `Host` header: an address of IPv6 in brackets.
    host: String,
    port: u16,
    name: ServerName<'static>,
    /// What names its authority, for who is told that it is not trusted.
    authority_by: &'static str,
}

impl HttpsServer {
    /// The server at an address such as `https://127.0.0.1:9000`.
    ///
    /// # Errors
    /// [`ClientError::NoAddress`], also for one with more than a host and a port.
    pub fn parse(text: &str) -> Result<Self, ClientError> {
        let uri: Uri = text.parse().map_err(|_| ClientError::NoAddress)?;
        // A name and a secret before the host would be told in errors, and so would a query.
        let has_user = { uri.authority() }.is_some_and(|it| it.as_str().contains('@'));
        let has_more = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        if uri.scheme_str() != Some("https") || has_more || has_user || has_odd_port(&uri) {
            return Err(ClientError::NoAddress);
        }
        let host = uri.host().ok_or(ClientError::NoAddress)?.to_owned();
        let name = ServerName::try_from(bare(&host).to_owned());
        Ok(Self {
            text: text.to_owned(),
            name: name.map_err(|_| ClientError::NoAddress)?,
            port: uri.port_u16().unwrap_or(443),
            host,
            authority_by: AUTHORITY_BY,
        })
    }

    /// The same, whose authority this option names.
    #[must_use]
    pub(crate) fn with_authority_by(self, authority_by: &'static str) -> Self {
        Self {
            authority_by,
            ..self
        }
    }

    /// What [`connector`] makes; an error names the option of this server.
    ///
    /// # Errors
    /// Those of [`connector`].
    pub(crate) fn connector(&self, ca: Option<&Path>) -> Result<TlsConnector, ClientError> {
        connector(ca).map_err(|error| match error {
            ClientError::Authority { path, problem, .. } => ClientError::Authority {
                path,
                problem,
                option: self.authority_by,
            },
            error => error,
        })
    }

    /// The address as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value of a `Host` header.
    pub fn host(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Connects and shakes hands.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub async fn connect(&self, tls: &TlsConnector) -> Result<TlsStream<TcpStream>, ClientError> {
        let unreachable = |problem: String, may_pass| ClientError::Unreachable {
            endpoint: self.text.clone(),
            problem,
            may_pass,
        };
        let connecting = async {
            let tcp = TcpStream::connect((bare(&self.host), self.port)).await?;
            tcp.set_nodelay(true)?;
            tls.connect(self.name.clone(), tcp).await
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                let problem = told(&error, self.authority_by);
                Err(unreachable(problem, may_pass(&error)))
            }
            Err(_) => Err(unreachable("it does not answer".to_owned(), false)),
        }
    }
}

/// Whether another connection, made soon, may go well where this one failed.
pub(crate) fn may_pass(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            // Of a handshake, as where the network ends connections.
            | io::ErrorKind::UnexpectedEof
    )
}

/// Why a connection failed, and what to do where that is known.
pub(crate) fn told(error: &io::Error, authority_by: &str) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match tls {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            format!(
                "its certificate is of an authority that is not trusted here: give that with \
                 {authority_by} (the one that is named is trusted alone), such as DATA/tls/ca.pem \
                 of the server"
            )
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
            if format!("{other:?}").contains(OF_AUTHORITY) =>
        {
            "its certificate is marked as an authority's (CA:TRUE), and those are no server's: \
             have one made for the server that says CA:FALSE, or none of it"
                .to_owned()
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "it does not speak TLS: check the port, or write http:// for an S3 service that goes \
             without"
                .to_owned()
        }
        // A peer that understood nothing, or did not want to.
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it ended the connection instead of speaking TLS: check the port, or write http:// \
             for an S3 service that goes without"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// What rustls calls a certificate of an authority that a server shows as its own.
const OF_AUTHORITY: &str = "CaUsedAsEndEntity";

fn bare(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

/// How keys are exchanged, as clients and servers of this house prefer it: in one order, so that a
/// server need not ask for another share.
pub static KEY_EXCHANGES: [&dyn SupportedKxGroup; 4] = [
    kx_group::X25519MLKEM768,
    kx_group::X25519,
    kx_group::SECP256R1,
    kx_group::SECP384R1,
];

/// Makes TLS connections to servers that an authority vouches for: the one in this file, or those
/// that the system trusts.
///
/// # Errors
/// [`ClientError::Authority`] when the file holds no certificate.
pub fn connector(ca: Option<&Path>) -> Result<TlsConnector, ClientError> {
    let path = ca.unwrap_or(Path::new(SYSTEM_AUTHORITIES)).to_owned();
    let unusable = |problem: String| ClientError::Authority {
        path: path.clone(),
        problem,
        option: AUTHORITY_BY,
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(&path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| {
            let is_made_again = !path.exists() && path.ends_with("tls/ca.pem");
            unusable(if is_made_again {
                format!("{error}: a restart of the server makes it anew")
            } else {
                error.to_string()
            })
        })?;
    let (usable, _) = roots.add_parsable_certificates(certificates);
    if usable == 0 {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    let provider = CryptoProvider {
        kx_groups: KEY_EXCHANGES.to_vec(),
        ..aws_lc_rs::default_provider()
    };
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Whether what stands behind the host is no port: it would count as not given.
pub(crate) fn has_odd_port(uri: &Uri) -> bool {
    uri.port_u16().is_none() && uri.authority().map(|it| it.as_str()) != uri.host()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_trusted_is_told_with_what_to_do() {
        let told = |error| {
            let tls = rustls::Error::InvalidCertificate(error);
            told(&io::Error::other(tls), "--source-ca")
        };
        let unknown = told(CertificateError::UnknownIssuer);
        assert!(
            unknown.contains("give that with --source-ca (the one"),
            "{unknown}"
        );
        let of_authority = rustls::OtherError(Arc::new(io::Error::other(OF_AUTHORITY)));
        let of_authority = told(CertificateError::Other(of_authority));
        assert!(of_authority.contains("CA:FALSE"), "{of_authority}");
    }

    #[test]
    fn servers_are_https_and_nothing_more() {
        for wrong in [
            "example.org",
            "http://h:1",
            "https://h/p",
            "https://",
            "https://a b",
        ] {
            let error = HttpsServer::parse(wrong).unwrap_err();
            assert!(error.to_string().starts_with("--endpoint: "), "{error}");
        }
        for (text, host) in [
            ("https://h", "h:443"),
            ("https://h:1/", "h:1"),
            ("https://[::1]:9001", "[::1]:9001"),
        ] {
            assert_eq!(HttpsServer::parse(text).unwrap().host(), host);
        }
    }
}
