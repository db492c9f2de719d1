//! What is damaged in `DATA/tls`, told before it is needed: the authority's key is used at the next
//! renewal alone, and the files of a copy when it is restored.

use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

use crate::tls::authority::{is_signed_by, load_authority};
use crate::tls::certificates::{authority_certificate, server_certificate};
use crate::tls::folder::{CertificateError, Files, read};

/// Whether the authority can sign when the certificate is renewed.
///
/// # Errors
/// Why not, and what to do. `Ok` where there is no authority.
pub fn check_authority(files: &Files) -> Result<(), CertificateError> {
    let damaged = |path, problem| Err(CertificateError::Authority { path, problem });
    let ca = authority_certificate(files)?;
    let authority = load_authority(files)?;
    match (ca, authority) {
        (Some(ca), Some(authority)) if !is_signed_by(&ca, &authority) => damaged(
            files.ca_key(),
            "it and ca.pem beside it do not belong together: one of them is damaged",
        ),
        (Some(_), None) => damaged(files.ca_key(), "it is missing"),
        // A certificate that is missing is made again from the key.
        _ => Ok(()),
    }
}

/// What does not open or does not fit together in the folder of a server that is not running. An
/// authority's key that is not there may be kept elsewhere; a server's certificate of an authority
/// that does not sign is of that alone.
///
/// # Errors
/// When a file cannot be read.
pub fn find_damage(files: &Files) -> Result<Vec<String>, CertificateError> {
    let mut found = Vec::new();
    let has_authority_key = read(&files.ca_key())?.is_some();
    match check_authority(files) {
        Err(CertificateError::Authority { .. }) if !has_authority_key => {
            // Only for want of the key; the certificate alone is looked at.
            found.extend(authority_certificate(files).err());
        }
        checked => found.extend(checked.err()),
    }
    let mut found: Vec<_> = found.iter().map(ToString::to_string).collect();
    let advice = "a start makes both anew from the authority";
    let mut damaged = |path: &std::path::Path, problem: &str| {
        found.push(format!("{}: {problem}; {advice}", path.display()));
    };
    match (read(&files.server_cert())?, read(&files.server_key())?) {
        (None, None) => {}
        (Some(_), None) => damaged(&files.server_key(), "it is missing"),
        (None, Some(_)) => damaged(&files.server_cert(), "it is missing"),
        (Some(_), Some(key)) => match server_certificate(files)? {
            None if PrivateKeyDer::from_pem_slice(&key).is_err() => {
                damaged(&files.server_key(), "it is damaged");
            }
            None => damaged(
                &files.server_cert(),
                "it is damaged, or server.key beside it is that of another certificate",
            ),
            Some(server) => {
                let authority = load_authority(files).ok().flatten();
                if authority.is_some_and(|authority| !is_signed_by(&server, &authority)) {
                    damaged(&files.server_cert(), "ca.key has not signed it as it is");
                }
            }
        },
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::time::SystemTime;

    use rcgen::KeyPair;

    use crate::tls::certificates::ensure;
    use crate::tls::server_names::names;

    fn setting() -> (tempfile::TempDir, Files) {
        let data = tempfile::tempdir().unwrap();
        let files = Files::of(data.path());
        assert!(find_damage(&files).unwrap().is_empty(), "there is nothing");
        check_authority(&files).unwrap();
        let names = names("some-host", &[], &[]);
        ensure(&files, &names, &[], SystemTime::now()).unwrap();
        assert!(find_damage(&files).unwrap().is_empty());
        check_authority(&files).unwrap();
        (data, files)
    }

    const ALL: [fn(&Files) -> PathBuf; 4] = [
        Files::ca_cert,
        Files::ca_key,
        Files::server_cert,
        Files::server_key,
    ];

    #[test]
    fn each_damaged_file_is_named() {
        for path in ALL {
            let (_data, files) = setting();
            let path = path(&files);
            let sound = fs::read(&path).unwrap();
            let mut flipped = sound.clone();
            // Within the last line of Base64: of the signature, or of the key itself.
            let end = sound.windows(5).rposition(|text| text == b"-----").unwrap();
            let end = sound[..end].windows(5).rposition(|text| text == b"-----");
            let at = end.unwrap() - 12;
            flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
            for damaged in [flipped, Vec::new(), b"xx".to_vec(), sound[..90].to_vec()] {
                fs::write(&path, damaged).unwrap();
                let found = find_damage(&files).unwrap();
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(found.concat().contains(name), "{name}: {found:?}");
                let is_authority = name.starts_with("ca.");
                assert_eq!(check_authority(&files).is_err(), is_authority, "{name}");
            }
        }
    }

    #[test]
    fn files_that_are_those_of_others_and_missing_ones_are_told() {
        for (replace, is_told) in [
            (Files::ca_key as fn(&Files) -> PathBuf, true),
            (Files::server_key, true),
        ] {
            let (_data, files) = setting();
            let other = KeyPair::generate().unwrap();
            fs::write(replace(&files), other.serialize_pem()).unwrap();
            assert_eq!(!find_damage(&files).unwrap().is_empty(), is_told);
        }
        for (lost, is_damage, is_told) in [
            (ALL[0], false, false),
            (ALL[1], false, true),
            (ALL[2], true, false),
            (ALL[3], true, false),
        ] {
            let (_data, files) = setting();
            fs::remove_file(lost(&files)).unwrap();
            let path = lost(&files);
            let found = find_damage(&files).unwrap();
            assert_eq!(!found.is_empty(), is_damage, "{path:?} {found:?}");
            assert_eq!(check_authority(&files).is_err(), is_told, "{path:?}");
        }
    }
}
