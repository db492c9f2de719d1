//! The local certificate authority: for servers that were given no certificate.
//!
//! `DATA/tls` holds the authority (`ca.pem`, `ca.key`) and the server's certificate
//! (`server.pem`, `server.key`). Clients trust `ca.pem`, once; server certificates come and go
//! under it.

use std::path::Path;
use std::time::SystemTime;

use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::limits::CERTIFICATE_RENEW_DAYS;
use crate::tls::authority::{DAY, found_authority, issue, load_authority, verifier};
use crate::tls::folder::{CertificateError, Files, read};

/// What [`ensure`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ensured {
    /// All was well.
    Kept,
    /// A new server certificate, under the authority that clients know.
    Renewed,
    /// A new authority: clients need the new `ca.pem`.
    Founded,
}

/// Makes or renews what is missing, expires soon or lacks a name. `domains` are those of
/// virtual-host style: the certificate is for their subdomains as well.
///
/// # Errors
/// When a file cannot be read or written.
pub fn ensure(
    files: &Files,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> Result<Ensured, CertificateError> {
    let mut wanted = names.to_vec();
    wanted.extend(
        domains
            .iter()
            .filter_map(|name| format!("bucket.{name}").try_into().ok()),
    );
    if serves(files, &files.server_cert(), &wanted, now)? {
        return Ok(Ensured::Kept);
    }
    files.make_folder()?;
    if let Some(authority) = load_authority(files, names)? {
        issue(files, &authority, names, domains, now)?;
        // An authority of other names signs, but no client accepts what it signed.
        if serves(files, &files.server_cert(), &wanted, now)? {
            return Ok(Ensured::Renewed);
        }
    }
    let authority = found_authority(files, names, now)?;
    issue(files, &authority, names, domains, now)?;
    Ok(Ensured::Founded)
}

/// Whether a strict client that trusts the authority would accept the server's certificate under
/// every name, now and until it is time to renew. Asks rustls instead of reading fields: what
/// counts is what clients do with them.
fn serves(
    files: &Files,
    chain: &Path,
    names: &[ServerName<'static>],
    now: SystemTime,
) -> Result<bool, CertificateError> {
    let (Some(ca), Some(server), Some(key)) = (
        read(&files.ca_cert())?,
        read(chain)?,
        read(&files.server_key())?,
    ) else {
        return Ok(false);
    };
    let accepted = || -> Option<()> {
        let ca = CertificateDer::from_pem_slice(&ca).ok()?;
        let server = CertificateDer::from_pem_slice(&server).ok()?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(&key).ok()?;
        rustls::sign::CertifiedKey::from_der(vec![server.clone()], key, &provider).ok()?;
        let verifier = verifier(ca)?;
        for moment in [now, now + DAY * CERTIFICATE_RENEW_DAYS as u32] {
            let moment = UnixTime::since_unix_epoch(
                moment
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or_default(),
            );
            for name in names {
                verifier
                    .verify_server_cert(&server, &[], name, &[], moment)
                    .ok()?;
            }
        }
        Some(())
    };
    Ok(accepted().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use rcgen::KeyPair;

    use crate::limits::CERTIFICATE_DAYS;
    use crate::tls::server_names::names;

    fn setting() -> (tempfile::TempDir, Files, Vec<ServerName<'static>>) {
        let data = tempfile::tempdir().unwrap();
        let files = Files::of(data.path());
        let names = names("Some-Host", &["0.0.0.0".parse().unwrap()], &[]);
        (data, files, names)
    }

    fn bytes(path: PathBuf) -> Vec<u8> {
        fs::read(path).unwrap()
    }

    #[test]
    fn first_start_founds_and_the_next_keeps() {
        let (_data, files, names) = setting();
        let now = SystemTime::now();
        assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Founded);
        let (ca, server) = (bytes(files.ca_cert()), bytes(files.server_cert()));
        assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Kept);
        assert_eq!(
            (ca, server),
            (bytes(files.ca_cert()), bytes(files.server_cert()))
        );
        for key in [files.server_key(), files.ca_key()] {
            assert_eq!(
                fs::metadata(key).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    #[test]
    fn renewal_keeps_the_authority() {
        let (_data, files, names) = setting();
        let now = SystemTime::now();
        ensure(&files, &names, &[], now).unwrap();
        let (ca, server) = (bytes(files.ca_cert()), bytes(files.server_cert()));
        let early = now + DAY * (CERTIFICATE_DAYS - CERTIFICATE_RENEW_DAYS - 1) as u32;
        assert_eq!(ensure(&files, &names, &[], early).unwrap(), Ensured::Kept);
        let late = early + DAY * 2;
        assert_eq!(ensure(&files, &names, &[], late).unwrap(), Ensured::Renewed);
        assert_eq!(ca, bytes(files.ca_cert()));
        assert_ne!(server, bytes(files.server_cert()));
        assert_eq!(ensure(&files, &names, &[], late).unwrap(), Ensured::Kept);
    }

    #[test]
    fn names_outside_the_authority_need_a_new_one() {
        let (_data, files, names) = setting();
        let now = SystemTime::now();
        ensure(&files, &names, &[], now).unwrap();
        let domains = ["s3.example.org".to_owned()];
        let more = crate::tls::server_names::names("some-host", &[], &domains);
        assert_eq!(
            ensure(&files, &more, &domains, now).unwrap(),
            Ensured::Founded
        );
        assert_eq!(ensure(&files, &more, &domains, now).unwrap(), Ensured::Kept);
        // Subdomains of a permitted name are within the authority.
        let inner = ["eu.s3.example.org".to_owned()];
        let inside = crate::tls::server_names::names("some-host", &[], &inner);
        assert_eq!(
            ensure(&files, &inside, &inner, now).unwrap(),
            Ensured::Renewed
        );
    }

    #[test]
    fn a_new_address_needs_no_new_authority() {
        let (_data, files, names) = setting();
        let now = SystemTime::now();
        ensure(&files, &names, &[], now).unwrap();
        let other = ["10.9.8.7".parse().unwrap()];
        let more = crate::tls::server_names::names("some-host", &other, &[]);
        assert_eq!(ensure(&files, &more, &[], now).unwrap(), Ensured::Renewed);
    }

    #[test]
    fn anything_missing_or_mixed_up_is_made_anew() {
        let now = SystemTime::now();
        for (spoil, expected) in [
            (
                Files::server_cert as fn(&Files) -> PathBuf,
                Ensured::Renewed,
            ),
            (Files::server_key, Ensured::Renewed),
            (Files::ca_cert, Ensured::Founded),
        ] {
            for text in [None, Some("nothing of the kind")] {
                let (_data, files, names) = setting();
                ensure(&files, &names, &[], now).unwrap();
                match text {
                    Some(text) => fs::write(spoil(&files), text).unwrap(),
                    None => fs::remove_file(spoil(&files)).unwrap(),
                }
                assert_eq!(ensure(&files, &names, &[], now).unwrap(), expected);
                assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Kept);
            }
        }
        // A key of another certificate.
        let (_data, files, names) = setting();
        ensure(&files, &names, &[], now).unwrap();
        let other = KeyPair::generate().unwrap();
        fs::write(files.server_key(), other.serialize_pem()).unwrap();
        assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Renewed);
    }

    #[test]
    fn lost_authority_key_matters_only_at_renewal() {
        let (_data, files, names) = setting();
        let now = SystemTime::now();
        ensure(&files, &names, &[], now).unwrap();
        fs::remove_file(files.ca_key()).unwrap();
        assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Kept);
        let late = now + DAY * CERTIFICATE_DAYS as u32;
        assert_eq!(ensure(&files, &names, &[], late).unwrap(), Ensured::Founded);
    }
}
