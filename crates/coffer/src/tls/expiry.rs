//! When a certificate expires, and whether clients take it for a server's.

use std::time::{Duration, SystemTime};

use rustls::CertificateError::{ExpiredContext, Other};
use rustls::Error::InvalidCertificate;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::tls::authority::verifier;

/// Behind the last moment that a certificate can name, the end of the year 9999.
const BEHIND_ALL: Duration = Duration::from_secs(1 << 38);

/// When clients accept a certificate no more. Asks rustls, as a client does that comes too late:
/// it looks at the time before it looks at names or at who signed. `None`: it tells of something
/// else.
pub fn expiry(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let verifier = verifier(certificate.clone().into_owned())?;
    let name = ServerName::try_from("localhost").expect("localhost is a name");
    let late = UnixTime::since_unix_epoch(BEHIND_ALL);
    match verifier.verify_server_cert(certificate, &[], &name, &[], late) {
        Err(InvalidCertificate(ExpiredContext { not_after, .. })) => {
            Some(SystemTime::UNIX_EPOCH + Duration::from_secs(not_after.as_secs()))
        }
        _ => None,
    }
}

/// Whether it is marked as an authority's, which clients on rustls refuse as a server's. Asks
/// rustls, which looks at that before it looks at names.
pub fn is_authoritys(certificate: &CertificateDer<'_>) -> bool {
    let Some(verifier) = verifier(certificate.clone().into_owned()) else {
        return false;
    };
    let name = ServerName::try_from("localhost").expect("localhost is a name");
    let verified = verifier.verify_server_cert(certificate, &[], &name, &[], UnixTime::now());
    match verified {
        Err(InvalidCertificate(Other(other))) => format!("{other:?}").contains("CaUsedAsEndEntity"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    #[test]
    fn an_authoritys_certificate_is_known_from_a_servers() {
        let key = KeyPair::generate().unwrap();
        for (is_ca, expected) in [
            (IsCa::Ca(BasicConstraints::Unconstrained), true),
            (IsCa::ExplicitNoCa, false),
            (IsCa::NoCa, false),
        ] {
            let mut params = CertificateParams::new(vec!["other.example.org".to_owned()]).unwrap();
            params.is_ca = is_ca;
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(is_authoritys(certificate.der()), expected);
        }
    }

    #[test]
    fn the_end_is_told_to_the_second_whatever_the_certificate_is_for() {
        for (names, seconds) in [
            (vec!["other.example.org".to_owned()], 1_900_000_000),
            (vec![], 5),
        ] {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(names).unwrap();
            let end = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            params.not_before = SystemTime::UNIX_EPOCH.into();
            params.not_after = end.into();
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(expiry(certificate.der()), Some(end));
        }
        assert_eq!(expiry(&b"nothing of the kind".to_vec().into()), None);
    }
}
