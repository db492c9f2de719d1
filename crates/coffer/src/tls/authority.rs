//! The local authority: what it is good for, and signing.
//!
//! It is good for servers of any name, so that a name which comes later needs no other authority:
//! clients take `ca.pem` once (`docs/decisions/0032-the-authority-constrains-nothing.md`). It signs
//! certificates of servers alone, and no authorities.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use zeroize::Zeroizing;

use crate::limits::{AUTHORITY_DAYS, CERTIFICATE_DAYS, CERTIFICATE_DAYS_BEFORE, CLOCK_FLOOR};
use crate::tls::folder::{CertificateError, Files, missing, read, remove, write};

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// The first moment that a clock which is right can show.
pub fn clock_floor() -> SystemTime {
    SystemTime::UNIX_EPOCH + CLOCK_FLOOR
}

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
/// it; where `ca.key` is not there to be asked with, or one of them is damaged, nothing is known.
///
/// # Errors
/// When a file cannot be read.
pub fn constrains_addresses(files: &Files, now: SystemTime) -> Result<bool, CertificateError> {
    let (Some(ca), Some(authority)) = (read(&files.ca_cert())?, load_authority(files)?) else {
        return Ok(false);
    };
    let Ok(ca) = CertificateDer::from_pem_slice(&ca) else {
        return Ok(false);
    };
    let accepts = |name: ServerName<'static>| -> Result<bool, CertificateError> {
        let now = now.max(clock_floor());
        let (certificate, _) = issue(&authority, std::slice::from_ref(&name), &[], now)?;
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let now = UnixTime::since_unix_epoch(since.unwrap_or_default());
        Ok(verifier(ca.clone()).is_some_and(|verifier| {
            let verified = verifier.verify_server_cert(certificate.der(), &[], &name, &[], now);
            verified.is_ok()
        }))
    };
    // One that is damaged, or of another key, accepts nothing.
    let name = ServerName::try_from("localhost").expect("localhost is a name");
    let foreign = ServerName::IpAddress(IpAddr::from([192, 0, 2, 1]).into());
    Ok(accepts(name)? && !accepts(foreign)?)
}

/// Gives the authority up: the next start founds another, and clients need its `ca.pem`. The key
/// goes first: without it a server goes on serving under the old one until then.
///
/// # Errors
/// When there is none, or the file system refuses.
pub fn give_up_authority(files: &Files) -> Result<(), CertificateError> {
    let (key, cert) = (files.ca_key(), files.ca_cert());
    let parts: Vec<_> = [&key, &cert]
        .into_iter()
        .filter(|path| path.exists())
        .collect();
    if parts.is_empty() {
        return Err(missing(&cert));
    }
    parts.into_iter().try_for_each(|path| remove(path))
}

/// The authority, able to sign. Its certificate is made anew from the key and trusted in the place
/// of `ca.pem` and beside it, for clients go by key and name, and its name follows from its key.
pub type Authority = CertifiedIssuer<'static, KeyPair>;

/// The authority that is there, if its key is.
///
/// # Errors
/// When the key's file cannot be read, or is damaged.
pub fn load_authority(files: &Files) -> Result<Option<Authority>, CertificateError> {
    let Some(pem) = read(&files.ca_key())? else {
        return Ok(None);
    };
    let key = str::from_utf8(&pem).ok();
    let key = key.and_then(|pem| KeyPair::from_pem(pem).ok());
    let key = key.ok_or_else(|| CertificateError::Authority {
        path: files.ca_key(),
        problem: "it is damaged",
    })?;
    Ok(Some(with_key(key, SystemTime::now())?))
}

fn with_key(key: KeyPair, now: SystemTime) -> Result<Authority, CertificateError> {
    let params = authority_params(&key, now);
    Ok(CertifiedIssuer::self_signed(params, key)?)
}

/// Makes a new authority. One that is there goes first, the certificate before the key: so no stop
/// in between leaves two files that don't belong together.
///
/// # Errors
/// When a file cannot be written.
pub fn found_authority(files: &Files, now: SystemTime) -> Result<Authority, CertificateError> {
    put_authority(files, KeyPair::generate()?, now)
}

/// Makes the authority of this key that of the folder, in the place of another. Whether it was not
/// before.
///
/// # Errors
/// When a file cannot be read or written.
pub fn adopt_authority(
    files: &Files,
    key: KeyPair,
    now: SystemTime,
) -> Result<bool, CertificateError> {
    let found = read(&files.ca_key())?;
    let found = found.and_then(|pem| KeyPair::from_pem(str::from_utf8(&pem).ok()?).ok());
    let is_it = |found: KeyPair| found.public_key_raw() == key.public_key_raw();
    if found.is_some_and(is_it) && files.ca_cert().exists() {
        return Ok(false);
    }
    files.make_folder()?;
    put_authority(files, key, now).map(|_| true)
}

fn put_authority(
    files: &Files,
    key: KeyPair,
    now: SystemTime,
) -> Result<Authority, CertificateError> {
    let authority = with_key(key, now)?;
    if files.ca_cert().exists() {
        remove(&files.ca_cert())?;
    }
    let key = Zeroizing::new(authority.key().serialize_pem());
    write(&files.ca_key(), &key)?;
    write(&files.ca_cert(), &authority.pem())?;
    Ok(authority)
}

/// Whether the authority's key signed this certificate, so that both are what they were.
pub fn is_signed_by(certificate: &CertificateDer<'_>, authority: &Authority) -> bool {
    // Certificate (RFC 5280, section 4.1): what is signed, the algorithm, the signature, whose
    // first byte counts unused bits.
    let checked = || -> Option<()> {
        let (_, parts, after) = der_element(SEQUENCE, certificate)?;
        let (signed, _, rest) = der_element(SEQUENCE, parts)?;
        let rest = rest.strip_prefix(ECDSA_WITH_SHA256)?;
        let (_, signature, more) = der_element(BIT_STRING, rest)?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, authority.key().public_key_raw());
        key.verify(signed, signature.strip_prefix(&[0])?).ok()?;
        (after.is_empty() && more.is_empty()).then_some(())
    };
    checked().is_some()
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// `ecdsa-with-SHA256` (RFC 5758, section 3.2), as it stands in a certificate.
const ECDSA_WITH_SHA256: &[u8] = b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02";

/// The first element of DER, whole, then its contents, and what follows it (X.690, section 8.1).
fn der_element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (start, length) = match *bytes.strip_prefix(&[tag])? {
        [length @ 0..=0x7f, ..] => (2, usize::from(length)),
        [0x81, length, ..] => (3, usize::from(length)),
        [0x82, high, low, ..] => (4, usize::from(u16::from_be_bytes([high, low]))),
        _ => return None,
    };
    let (whole, rest) = bytes.split_at_checked(start + length)?;
    Some((whole, &whole[start..], rest))
}

fn authority_params(key: &KeyPair, now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    // Two authorities must not share a name, or clients that have both try the wrong one.
    let fingerprint = hex::encode(&digest(&SHA256, key.der_bytes()).as_ref()[..8]);
    params
        .distinguished_name
        .push(DnType::OrganizationName, "coffer");
    params
        .distinguished_name
        .push(DnType::CommonName, format!("coffer local CA {fingerprint}"));
    // Whatever the clock shows, it is there from the first: it may be wrong.
    params.not_before = clock_floor().into();
    params.not_after = (now.max(clock_floor()) + DAY * AUTHORITY_DAYS as u32).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

/// Keeps a new key and certificate for the server. The key goes first: should we be stopped in
/// between, they don't match and the next start makes both anew.
///
/// # Errors
/// When a file cannot be written.
pub fn keep(
    files: &Files,
    (certificate, key): &(Certificate, KeyPair),
) -> Result<(), CertificateError> {
    write(&files.server_key(), &Zeroizing::new(key.serialize_pem()))?;
    write(&files.server_cert(), &certificate.pem())
}

/// A new key for the server, and a certificate for it.
///
/// # Errors
/// When a name is none that a certificate can hold.
pub fn issue(
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
    params.not_before = (now - DAY * CERTIFICATE_DAYS_BEFORE as u32).into();
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
pub(crate) mod tests {
    use super::*;
    use rcgen::{GeneralSubtree, NameConstraints};

    /// Puts an authority there as they were made before: constrained to these names, and perhaps
    /// to the addresses of loopback.
    pub(crate) fn found_constrained(files: &Files, names: &[&str], addresses: bool) {
        found_authority(files, SystemTime::now()).unwrap();
        let key = KeyPair::from_pem(&std::fs::read_to_string(files.ca_key()).unwrap()).unwrap();
        let mut params = authority_params(&key, SystemTime::now());
        let address = |ip: &str| {
            let ip: IpAddr = ip.parse().unwrap();
            let whole = if ip.is_ipv4() { 32 } else { 128 };
            GeneralSubtree::IpAddress(rcgen::CidrSubnet::from_addr_prefix(ip, whole))
        };
        let name = |name: &&str| GeneralSubtree::DnsName((*name).to_owned());
        let addresses = ["127.0.0.1", "::1"].iter().filter(|_| addresses);
        params.extended_key_usages.clear();
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: names
                .iter()
                .map(name)
                .chain(addresses.map(|ip| address(ip)))
                .collect(),
            excluded_subtrees: Vec::new(),
        });
        write(&files.ca_cert(), &params.self_signed(&key).unwrap().pem()).unwrap();
    }

    #[test]
    fn an_authority_that_constrains_addresses_is_told_and_given_up() {
        let data = tempfile::tempdir().unwrap();
        let files = Files::of(data.path());
        let now = SystemTime::now();
        assert!(!constrains_addresses(&files, now).unwrap(), "there is none");
        assert!(give_up_authority(&files).is_err(), "nor to be given up");
        files.make_folder().unwrap();
        let authority = found_authority(&files, now).unwrap();
        assert!(!constrains_addresses(&files, now).unwrap());
        assert!(is_signed_by(authority.der(), &authority));
        let mut flipped = authority.der().to_vec();
        for at in 0..flipped.len() {
            flipped[at] ^= 4;
            assert!(!is_signed_by(&flipped.clone().into(), &authority), "{at}");
            flipped[at] ^= 4;
        }
        found_constrained(&files, &["localhost"], true);
        assert!(constrains_addresses(&files, now).unwrap());
        assert!(constrains_addresses(&files, SystemTime::UNIX_EPOCH).unwrap());
        found_constrained(&files, &["localhost"], false);
        assert!(!constrains_addresses(&files, now).unwrap());
        found_authority(&files, now).unwrap();
        assert!(!constrains_addresses(&files, SystemTime::UNIX_EPOCH).unwrap());
        write(&files.ca_cert(), &authority.pem()).unwrap();
        let of_another_key = constrains_addresses(&files, now).unwrap();
        assert!(!of_another_key, "that is damage, and told as such");
        give_up_authority(&files).unwrap();
        assert!(load_authority(&files).unwrap().is_none());
        assert!(!constrains_addresses(&files, now).unwrap());
        // Also one that has lost its certificate, or its key.
        for lost in [files.ca_cert(), files.ca_key()] {
            found_authority(&files, now).unwrap();
            std::fs::remove_file(lost).unwrap();
            give_up_authority(&files).unwrap();
            assert!(!files.ca_cert().exists() && !files.ca_key().exists());
        }
    }
}
