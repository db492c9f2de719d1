//! The authority of an engine: its key follows from the engine's system key, so all gateways have
//! the same, and clients take `ca.pem` once, from any of them.

use std::time::SystemTime;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use coffer_seal::SecretKey;
use coffer_vault::Vault;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls_pki_types::PrivatePkcs8KeyDer;
use zeroize::Zeroizing;

use crate::config::Config;
use crate::error::Error;
use crate::tls::authority::adopt_authority;
use crate::tls::folder::Files;

/// Has the gateway sign by the authority of its engine, unless it was given certificates.
///
/// # Errors
/// Of the disk, and of the library that makes certificates.
pub fn share_authority(config: &Config, vault: &Vault) -> Result<(), Error> {
    if config.tls.is_some() {
        return Ok(());
    }
    let key = key_of(&vault.gateway_authority_key())?;
    let files = Files::of(&config.data);
    if adopt_authority(&files, key, SystemTime::now()).map_err(failed)? {
        tracing::info!(
            ca = %files.ca_cert().display(),
            "all gateways of this engine have one authority, which is this gateway's from now on"
        );
    }
    Ok(())
}

/// The key of the authority. A number that is none of the curve's, one in four billion, is
/// passed over.
fn key_of(key: &SecretKey) -> Result<KeyPair, Error> {
    let pairs = (0..=u8::MAX).map(|number| {
        let scalar = key.derive(&[b"coffer authority v1\0", &[number][..]].concat());
        EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, &as_der(&scalar))
    });
    let pair = { pairs }.find_map(Result::ok);
    let pair = pair.ok_or_else(|| failed("no key of the curve follows"))?;
    let pkcs8 = pair.to_pkcs8v1().map_err(failed)?;
    let der = PrivatePkcs8KeyDer::from(pkcs8.as_ref());
    KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ECDSA_P256_SHA256).map_err(failed)
}

/// A number as an `ECPrivateKey` of the curve P-256 (RFC 5915, section 3).
fn as_der(scalar: &SecretKey) -> Zeroizing<Vec<u8>> {
    // A sequence of the version 1, the number in 32 bytes, and the name of the curve.
    const BEFORE: &[u8] = b"\x30\x31\x02\x01\x01\x04\x20";
    const AFTER: &[u8] = b"\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
    let mut der = Zeroizing::new(Vec::with_capacity(BEFORE.len() + 32 + AFTER.len()));
    der.extend_from_slice(BEFORE);
    der.extend_from_slice(scalar.expose());
    der.extend_from_slice(AFTER);
    der
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::System {
        doing: "making the authority of the engine",
        source: std::io::Error::other(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_engine_has_one_authority_and_another_has_another() {
        let of = |byte| key_of(&SecretKey::from_bytes([byte; 32])).unwrap();
        assert_eq!(of(1).serialize_der(), of(1).serialize_der());
        assert_ne!(of(1).serialize_der(), of(2).serialize_der());
    }

    #[test]
    fn a_gateway_takes_it_over_once() {
        let data = tempfile::tempdir().unwrap();
        let files = Files::of(data.path());
        let now = SystemTime::now();
        let of = |byte| key_of(&SecretKey::from_bytes([byte; 32])).unwrap();
        assert!(adopt_authority(&files, of(1), now).unwrap());
        let ca = std::fs::read(files.ca_cert()).unwrap();
        assert!(!adopt_authority(&files, of(1), now).unwrap());
        assert_eq!(std::fs::read(files.ca_cert()).unwrap(), ca);
        assert!(adopt_authority(&files, of(2), now).unwrap());
        std::fs::write(files.ca_key(), "damaged").unwrap();
        assert!(adopt_authority(&files, of(2), now).unwrap());
        std::fs::remove_file(files.ca_cert()).unwrap();
        assert!(adopt_authority(&files, of(2), now).unwrap());
    }
}
