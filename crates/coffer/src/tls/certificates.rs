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
    Authority, DAY, clock_floor, found_authority, is_signed_by, issue, keep, load_authority,
    verifier,
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
    /// The same, though there is a server's certificate of another, which clients may trust.
    FoundedInstead,
}

/// What a start does: makes or renews what is missing, expires soon or lacks a name, and founds an
/// authority where nothing of one is there. `domains` are those of
/// virtual-host style: the certificate is for their subdomains as well. Names that the authority
/// may not sign are left out ([`refused`]): clients trust it, so it stays.
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
            let had_another = read(&files.server_cert())?.is_some();
            let now = now.max(clock_floor());
            let authority = found_authority(files, now)?;
            keep(files, &issue(&authority, names, domains, now)?)?;
            Ok(if had_another {
                Ensured::FoundedInstead
            } else {
                Ensured::Founded
            })
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
            let authority = load_authority(files)?;
            let authority = authority.ok_or_else(|| no_authority("it is missing"))?;
            write(&files.ca_cert(), &authority.pem())?;
            (authority.der().clone(), Ensured::Completed)
        }
    };
    let server = server_certificate(files)?;
    let keeps = |wanted: &[ServerName<'static>]| match standing(&ca, server.as_ref()?, wanted, now)
    {
        Standing::Good => Some(kept.clone()),
        Standing::NotBegun if is_wrong => Some(Ensured::KeptUnderWrongClock),
        _ => None,
    };
    if let Some(kept) = keeps(&wanted(names, domains)) {
        return Ok(kept);
    }
    let missing = "it is missing, and another certificate is needed";
    let authority = load_authority(files)?.ok_or_else(|| damaged(files.ca_key(), missing))?;
    if !is_signed_by(&ca, &authority) {
        let problem = "it and ca.key beside it do not belong together: one of them is damaged";
        return Err(damaged(files.ca_cert(), problem));
    }
    let (names, domains) = permitted(&ca, &authority, names, domains, now)?;
    if names.is_empty() {
        let problem = "clients accept nothing that it signs";
        return Err(damaged(files.ca_cert(), problem));
    }
    // Names that are refused are missing in each certificate.
    if let Some(kept) = keeps(&wanted(&names, &domains)) {
        return Ok(kept);
    }
    keep(files, &issue(&authority, &names, &domains, now)?).map(|()| Ensured::Renewed)
}

/// Those of the names and domains that the authority does not sign for, as clients see it: one that
/// was made by an earlier version is constrained to the names of then.
///
/// # Errors
/// When a file cannot be read, or is damaged.
pub fn refused(
    files: &Files,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> Result<Vec<String>, CertificateError> {
    let (Some(ca), Some(authority)) = (authority_certificate(files)?, load_authority(files)?)
    else {
        return Ok(Vec::new());
    };
    let now = now.max(clock_floor());
    let (permitted, _) = permitted(&ca, &authority, names, domains, now)?;
    let refused = names.iter().filter(|name| !permitted.contains(name));
    Ok(refused.map(|name| name.to_str().into_owned()).collect())
}

/// Those of the names and domains that the authority may sign. Asks rustls what clients accept.
fn permitted(
    ca: &CertificateDer<'static>,
    authority: &Authority,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> Result<(Vec<ServerName<'static>>, Vec<String>), CertificateError> {
    let accepted = |name: &ServerName<'static>| -> Result<bool, CertificateError> {
        let name = std::slice::from_ref(name);
        let (certificate, _) = issue(authority, name, &[], now)?;
        Ok(standing(ca, certificate.der(), name, now) == Standing::Good)
    };
    let mut permitted = Vec::new();
    for name in names {
        if accepted(name)? {
            permitted.push(name.clone());
        }
    }
    let is_named = |domain: &&String| permitted.iter().any(|name| name.to_str() == **domain);
    let domains = domains.iter().filter(is_named).cloned().collect();
    Ok((permitted, domains))
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
    let by_key = || Some(load_authority(files).ok()??.der().clone());
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
///
/// # Errors
/// When it cannot be read, or is damaged.
pub fn authority_certificate(
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
///
/// # Errors
/// When a file cannot be read.
pub fn server_certificate(
    files: &Files,
) -> Result<Option<CertificateDer<'static>>, CertificateError> {
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
