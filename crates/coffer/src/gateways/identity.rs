//! How gateways of one engine know each other: by a certificate that each makes for itself, of a
//! key that follows from the engine's system key. Made of the same, it is the same to the last
//! byte, so nothing has to be handed out, and no other certificate is taken.

use std::sync::Arc;

use aws_lc_rs::signature::Ed25519KeyPair;
use coffer_seal::SecretKey;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber, date_time_ymd};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error as TlsError,
    ServerConfig, SignatureScheme, version,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use zeroize::Zeroizing;

use crate::error::Error;

/// The name in the certificate. It is compared with nothing: the whole certificate is.
pub const GATEWAY_NAME: &str = "gateway.coffer.internal";

/// What a gateway proves itself by.
pub struct GatewayIdentity {
    certificate: CertificateDer<'static>,
    key: Zeroizing<Vec<u8>>,
}

impl GatewayIdentity {
    /// That of the engine with this key.
    ///
    /// # Errors
    /// Of the library that makes certificates.
    pub fn of(key: &SecretKey) -> Result<Self, Error> {
        let pair = Ed25519KeyPair::from_seed_unchecked(key.expose()).map_err(failed)?;
        let pkcs8 = pair.to_pkcs8v1().map_err(failed)?;
        let key = Zeroizing::new(pkcs8.as_ref().to_vec());
        let der = PrivatePkcs8KeyDer::from(key.as_slice());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519).map_err(failed)?;
        let names = vec![GATEWAY_NAME.to_owned()];
        let mut params = CertificateParams::new(names).map_err(failed)?;
        // All that differs between two that are made is fixed; an end is not looked at.
        params.serial_number = Some(SerialNumber::from(vec![1]));
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(4096, 1, 1);
        let certificate = params.self_signed(&pair).map_err(failed)?.der().clone();
        Ok(Self { certificate, key })
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.to_vec()))
    }

    fn only_ours(&self) -> Arc<OnlyOurs> {
        Arc::new(OnlyOurs {
            certificate: self.certificate.clone(),
            provider: provider::default_provider(),
        })
    }

    /// TLS of who takes what gateways forward.
    ///
    /// # Errors
    /// Of the TLS library.
    pub fn server(&self) -> Result<Arc<ServerConfig>, Error> {
        let builder = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .with_client_cert_verifier(self.only_ours());
        let config = builder.with_single_cert(vec![self.certificate.clone()], self.key());
        Ok(Arc::new(config.map_err(failed)?))
    }

    /// TLS of who forwards.
    ///
    /// # Errors
    /// Of the TLS library.
    pub fn client(&self) -> Result<Arc<ClientConfig>, Error> {
        let builder = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(self.only_ours());
        let config = builder.with_client_auth_cert(vec![self.certificate.clone()], self.key());
        Ok(Arc::new(config.map_err(failed)?))
    }
}

fn failed(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::System {
        doing: "making what gateways know each other by",
        source: std::io::Error::other(source),
    }
}

/// Takes the certificate of this engine, and no other.
#[derive(Debug)]
struct OnlyOurs {
    certificate: CertificateDer<'static>,
    provider: CryptoProvider,
}

impl OnlyOurs {
    fn check(&self, found: &CertificateDer<'_>) -> Result<(), TlsError> {
        if *found == self.certificate {
            Ok(())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    fn signed(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }
}

fn no_tls12() -> TlsError {
    TlsError::General("gateways speak TLS 1.3".to_owned())
}

impl ServerCertVerifier for OnlyOurs {
    fn verify_server_cert(
        &self,
        found: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        self.check(found).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.signed(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

impl ClientCertVerifier for OnlyOurs {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        found: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        self.check(found).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.signed(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    fn of(byte: u8) -> GatewayIdentity {
        GatewayIdentity::of(&SecretKey::from_bytes([byte; 32])).unwrap()
    }

    /// Whether a byte comes through.
    async fn talk(here: &GatewayIdentity, there: Arc<ClientConfig>) -> bool {
        let (near, far) = duplex(64 * 1024);
        let acceptor = TlsAcceptor::from(here.server().unwrap());
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let serve = async {
            let mut taken = acceptor.accept(near).await.ok()?;
            taken.write_all(b"x").await.ok()?;
            taken.shutdown().await.ok()
        };
        let ask = async {
            let mut made = TlsConnector::from(there).connect(name, far).await.ok()?;
            let mut byte = [0];
            made.read_exact(&mut byte).await.ok()
        };
        let (served, asked) = tokio::join!(serve, ask);
        served.is_some() && asked.is_some()
    }

    #[tokio::test]
    async fn gateways_of_one_engine_take_each_other_and_none_besides() {
        assert_eq!(of(1).certificate, of(1).certificate);
        assert!(talk(&of(1), of(1).client().unwrap()).await);
        assert!(!talk(&of(1), of(2).client().unwrap()).await);
        let without = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(of(1).only_ours())
            .with_no_client_auth();
        assert!(!talk(&of(1), Arc::new(without)).await, "no certificate");
    }
}
