//! The local certificate authority: for servers that were given no certificate.
//!
//! `DATA/tls` holds the authority (`ca.pem`, `ca.key`) and the server's certificate
//! (`server.pem`, `server.key`). Clients trust `ca.pem`, once; server certificates come and go
//! under it.

use std::time::SystemTime;

use rustls::CertificateError::NotValidYetContext;
use rustls::Error::InvalidCertificate;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::limits::CERTIFICATE_RENEW_DAYS;
use crate::tls::authority::{
    DAY, clock_floor, found_authority, is_signed_by, issue, keep, load_authority, verifier,
};
use crate::tls::folder::{CertificateError, Files, read, write};

/// What [`ensure`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ensured {
    /// All was well.
    Kept,
    /// The clock is wrong, and the certificate that is not valid yet by it is a good one.
    KeptUnderWrongClock,
    /// The certificate is still valid, but can't be renewed.
    KeptDespite {
        /// Why not, and what to do.
        problem: String,
    },
    /// `ca.pem` was missing, and was made again for the key that clients trust.
    Completed,
    /// A new server certificate, under the authority that clients know.
    Renewed,
    /// A new authority: clients need the new `ca.pem`.
    Founded,
}

/// What a start does: makes or renews what is missing, expires soon or lacks a name, and founds an
/// authority where nothing of one is there, or none for these names. `domains` are those of
/// virtual-host style: the certificate is for their subdomains as well.
///
/// # Errors
/// When a file cannot be read or written, or is damaged, and no valid certificate is at hand.
pub fn ensure(
    files: &Files,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> Result<Ensured, CertificateError> {
    match renew(files, names, domains, now) {
        Err(CertificateError::NoAuthority { .. }) => {
            files.make_folder()?;
            let now = now.max(clock_floor());
            let authority = found_authority(files, names, now)?;
            keep(files, &issue(&authority, names, domains, now)?)?;
            Ok(Ensured::Founded)
        }
        Err(error) if is_still_valid(files, names, domains, now) => Ok(Ensured::KeptDespite {
            problem: error.to_string(),
        }),
        renewed => renewed,
    }
}

/// What a running server does: it founds nothing, for its clients trust the authority that it has.
///
/// # Errors
/// When there is no authority to renew by, or a file cannot be read or written, or is damaged.
pub fn renew(
    files: &Files,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> Result<Ensured, CertificateError> {
    let (is_wrong, now) = (now < clock_floor(), now.max(clock_floor()));
    let no_authority = |problem| CertificateError::NoAuthority {
        path: files.ca_cert(),
        problem,
    };
    let damaged = |path, problem| CertificateError::Authority { path, problem };
    let (ca, kept) = match authority_certificate(files)? {
        Some(ca) => (ca, Ensured::Kept),
        None => {
            let authority = load_authority(files, names)?;
            let authority = authority.ok_or_else(|| no_authority("it is missing"))?;
            write(&files.ca_cert(), &authority.pem())?;
            (authority.der().clone(), Ensured::Completed)
        }
    };
    let wanted = wanted(names, domains);
    match server_certificate(files)?.map(|server| standing(&ca, &server, &wanted, now)) {
        Some(Standing::Good) => return Ok(kept),
        Some(Standing::NotBegun) if is_wrong => return Ok(Ensured::KeptUnderWrongClock),
        _ => {}
    }
    let authority = load_authority(files, names)?
        .ok_or_else(|| damaged(files.ca_key(), "it is missing, and the certificate expires"))?;
    if !is_signed_by(&ca, &authority) {
        let problem = "it and ca.key beside it do not belong together: one of them is damaged";
        return Err(damaged(files.ca_cert(), problem));
    }
    let fresh = issue(&authority, names, domains, now)?;
    // An authority of other names signs, but no client accepts what it signed.
    match standing(&ca, fresh.0.der(), &wanted, now) {
        Standing::Good => keep(files, &fresh).map(|()| Ensured::Renewed),
        _ => Err(no_authority("it is of an authority for other names")),
    }
}

/// Whether clients that trust the authority accept the certificate that is there, though it can't
/// be renewed. The authority is known by `ca.pem` or by its key: one of them may be damaged.
fn is_still_valid(
    files: &Files,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> bool {
    let (is_wrong, now) = (now < clock_floor(), now.max(clock_floor()));
    let Ok(Some(server)) = server_certificate(files) else {
        return false;
    };
    let wanted = wanted(names, domains);
    let by_key = || Some(load_authority(files, names).ok()??.der().clone());
    let by_certificate = || authority_certificate(files).ok()?;
    [by_certificate(), by_key()].iter().flatten().any(|ca| {
        match standing(ca, &server, &wanted, now) {
            Standing::Good | Standing::Ending => true,
            Standing::NotBegun => is_wrong,
            Standing::Unusable => false,
        }
    })
}

fn wanted(names: &[ServerName<'static>], domains: &[String]) -> Vec<ServerName<'static>> {
    let in_domain = |name: &String| format!("bucket.{name}").try_into().ok();
    let names = names.iter().cloned();
    names.chain(domains.iter().filter_map(in_domain)).collect()
}

/// `ca.pem`, if it is there.
fn authority_certificate(
    files: &Files,
) -> Result<Option<CertificateDer<'static>>, CertificateError> {
    let Some(pem) = read(&files.ca_cert())? else {
        return Ok(None);
    };
    let ca = CertificateDer::from_pem_slice(&pem).ok();
    let ca = ca.filter(|ca| verifier(ca.clone()).is_some());
    ca.map(Some).ok_or_else(|| CertificateError::Authority {
        path: files.ca_cert(),
        problem: "it is damaged",
    })
}

/// The server's certificate, if it is there with its key. One that is damaged is as good as none:
/// the authority makes another.
fn server_certificate(files: &Files) -> Result<Option<CertificateDer<'static>>, CertificateError> {
    let (Some(server), Some(key)) = (read(&files.server_cert())?, read(&files.server_key())?)
    else {
        return Ok(None);
    };
    let paired = || {
        let server = CertificateDer::from_pem_slice(&server).ok()?;
        let key = PrivateKeyDer::from_pem_slice(&key).ok()?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        rustls::sign::CertifiedKey::from_der(vec![server.clone()], key, &provider).ok()?;
        Some(server)
    };
    Ok(paired())
}

/// How clients see a server certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// They accept it, now and until it is time to renew.
    Good,
    /// They accept it now.
    Ending,
    /// They will accept it.
    NotBegun,
    /// They don't accept it.
    Unusable,
}

/// How a strict client that trusts the authority sees the server's certificate, under every name.
/// Asks rustls instead of reading fields: what counts is what clients do with them.
fn standing(
    ca: &CertificateDer<'static>,
    server: &CertificateDer<'_>,
    names: &[ServerName<'static>],
    now: SystemTime,
) -> Standing {
    let Some(verifier) = verifier(ca.clone()) else {
        return Standing::Unusable;
    };
    let unix = |moment: SystemTime| {
        let since = moment.duration_since(SystemTime::UNIX_EPOCH);
        UnixTime::since_unix_epoch(since.unwrap_or_default())
    };
    let accepted = |moment: UnixTime| {
        names.iter().try_for_each(|name| {
            let verified = verifier.verify_server_cert(server, &[], name, &[], moment);
            verified.map(|_| ())
        })
    };
    let at_renewal = unix(now + DAY * CERTIFICATE_RENEW_DAYS as u32);
    match accepted(unix(now)) {
        Ok(()) if accepted(at_renewal).is_ok() => Standing::Good,
        Ok(()) => Standing::Ending,
        Err(InvalidCertificate(NotValidYetContext { not_before, .. }))
            if accepted(not_before).is_ok() =>
        {
            Standing::NotBegun
        }
        Err(_) => Standing::Unusable,
    }
}

#[cfg(test)]
mod tests;
