//! The local authority: what it may sign, and signing.
//!
//! It is constrained to the DNS names of this server, so that a stolen `ca.key` is of no use
//! against other sites of a client that trusts it. Addresses are not constrained: BoringSSL, and
//! what descends from it, refuses every certificate with an address below an authority that does
//! (`docs/decisions/0025-the-authority-constrains-names-only.md`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData,
    SanType,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use zeroize::Zeroizing;

use crate::limits::{AUTHORITY_DAYS, CERTIFICATE_DAYS};
use crate::tls::folder::{CertificateError, Files, missing, read, remove, write};

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// Clocks of clients may be behind ours by this much.
const CLOCK_SKEW: Duration = DAY;

/// A strict client that trusts this authority and no other.
pub fn verifier(ca: CertificateDer<'static>) -> Option<Arc<WebPkiServerVerifier>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(ca).ok()?;
    WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
        .build()
        .ok()
}

/// Whether the authority is one of those that were made to constrain addresses, too, which
/// BoringSSL refuses. Asks rustls, which does not, whether it would accept another address below
/// it; where `ca.key` is not there to be asked with, nothing is known.
///
/// # Errors
/// When a file cannot be read.
pub fn constrains_addresses(files: &Files, now: SystemTime) -> Result<bool, CertificateError> {
    let (Some(ca), Some(authority)) = (read(&files.ca_cert())?, load_authority(files, &[])?) else {
        return Ok(false);
    };
    let foreign = ServerName::IpAddress(IpAddr::from([192, 0, 2, 1]).into());
    let (certificate, _) = certify(&authority, std::slice::from_ref(&foreign), &[], now)?;
    let accepted = || -> Option<()> {
        let ca = CertificateDer::from_pem_slice(&ca).ok()?;
        let since = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let now = UnixTime::since_unix_epoch(since);
        verifier(ca)?
            .verify_server_cert(certificate.der(), &[], &foreign, &[], now)
            .ok()?;
        Some(())
    };
    Ok(accepted().is_none())
}

/// Gives the authority up: the next start founds another, and clients need its `ca.pem`. The key
/// goes first: without it a server goes on serving under the old one until then.
///
/// # Errors
/// When there is none, or the file system refuses.
pub fn give_up_authority(files: &Files) -> Result<(), CertificateError> {
    let _ = read(&files.ca_cert())?.ok_or_else(|| missing(&files.ca_cert()))?;
    if read(&files.ca_key())?.is_some() {
        remove(&files.ca_key())?;
    }
    remove(&files.ca_cert())
}

/// The authority, able to sign.
pub type Authority = Issuer<'static, KeyPair>;

/// The authority that is there, if its key is.
///
/// # Errors
/// When a file cannot be read.
pub fn load_authority(
    files: &Files,
    names: &[ServerName<'static>],
) -> Result<Option<Authority>, CertificateError> {
    let Some(pem) = read(&files.ca_key())? else {
        return Ok(None);
    };
    let key = std::str::from_utf8(&pem)
        .ok()
        .and_then(|pem| KeyPair::from_pem(pem).ok());
    // What an authority signs depends on its key and its name, and its name on its key only.
    Ok(key.map(|key| Issuer::new(authority_params(&key, names, SystemTime::now()), key)))
}

/// Makes a new authority.
///
/// # Errors
/// When a file cannot be written.
pub fn found_authority(
    files: &Files,
    names: &[ServerName<'static>],
    now: SystemTime,
) -> Result<Authority, CertificateError> {
    let key = KeyPair::generate()?;
    let params = authority_params(&key, names, now);
    let certificate = params.self_signed(&key)?;
    write(&files.ca_key(), &Zeroizing::new(key.serialize_pem()))?;
    write(&files.ca_cert(), &certificate.pem())?;
    Ok(Issuer::new(params, key))
}

fn authority_params(
    key: &KeyPair,
    names: &[ServerName<'static>],
    now: SystemTime,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    // Two authorities must not share a name, or clients that have both try the wrong one.
    let fingerprint = hex::encode(&digest(&SHA256, key.der_bytes()).as_ref()[..8]);
    params
        .distinguished_name
        .push(DnType::OrganizationName, "coffer");
    params
        .distinguished_name
        .push(DnType::CommonName, format!("coffer local CA {fingerprint}"));
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + DAY * AUTHORITY_DAYS as u32).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let permitted_subtrees = names
        .iter()
        .filter(|name| !matches!(name, ServerName::IpAddress(_)))
        .map(|name| GeneralSubtree::DnsName(name.to_str().into_owned()))
        .collect();
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees,
        excluded_subtrees: Vec::new(),
    });
    params
}

/// Makes a new key and certificate for the server. The key goes first: should we be stopped in
/// between, they don't match and the next start makes both anew.
///
/// # Errors
/// When a file cannot be written.
pub fn issue(
    files: &Files,
    authority: &Authority,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> Result<(), CertificateError> {
    let (certificate, key) = certify(authority, names, domains, now)?;
    write(&files.server_key(), &Zeroizing::new(key.serialize_pem()))?;
    write(&files.server_cert(), &certificate.pem())
}

/// A new key, and a certificate for it.
fn certify(
    authority: &Authority,
    names: &[ServerName<'static>],
    domains: &[String],
    now: SystemTime,
) -> Result<(Certificate, KeyPair), CertificateError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "coffer");
    params
        .distinguished_name
        .push(DnType::CommonName, "coffer server");
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + DAY * CERTIFICATE_DAYS as u32).into();
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    for name in names {
        params.subject_alt_names.push(match name {
            ServerName::IpAddress(ip) => SanType::IpAddress(IpAddr::from(*ip)),
            other => SanType::DnsName(other.to_str().as_ref().try_into()?),
        });
    }
    for domain in domains {
        params
            .subject_alt_names
            .push(SanType::DnsName(format!("*.{domain}").try_into()?));
    }
    Ok((params.signed_by(&key, authority)?, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_not_constrained_and_an_authority_that_does_so_is_told_and_given_up() {
        let data = tempfile::tempdir().unwrap();
        let files = Files::of(data.path());
        let names = crate::tls::server_names::names("some-host", &[], &[]);
        let now = SystemTime::now();
        assert!(!constrains_addresses(&files, now).unwrap(), "there is none");
        assert!(give_up_authority(&files).is_err(), "nor to be given up");
        files.make_folder().unwrap();
        let authority = found_authority(&files, &names, now).unwrap();
        issue(&files, &authority, &names, &[], now).unwrap();
        assert!(!constrains_addresses(&files, now).unwrap());
        // As they were made before.
        let key = KeyPair::from_pem(&std::fs::read_to_string(files.ca_key()).unwrap()).unwrap();
        let mut params = authority_params(&key, &names, now);
        let address = |ip: &str| {
            let ip: IpAddr = ip.parse().unwrap();
            let whole = if ip.is_ipv4() { 32 } else { 128 };
            GeneralSubtree::IpAddress(rcgen::CidrSubnet::from_addr_prefix(ip, whole))
        };
        let constraints = params.name_constraints.as_mut().unwrap();
        let addresses = ["127.0.0.1", "::1"].map(address);
        constraints.permitted_subtrees.extend(addresses);
        write(&files.ca_cert(), &params.self_signed(&key).unwrap().pem()).unwrap();
        assert!(constrains_addresses(&files, now).unwrap());
        give_up_authority(&files).unwrap();
        assert!(load_authority(&files, &names).unwrap().is_none());
        assert!(!constrains_addresses(&files, now).unwrap());
    }
}
