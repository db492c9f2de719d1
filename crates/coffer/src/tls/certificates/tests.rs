use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::KeyPair;

use crate::limits::CERTIFICATE_DAYS;
use crate::tls::authority::tests::found_constrained;
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
fn a_new_name_or_address_comes_under_the_authority_that_clients_trust() {
    let (_data, files, names) = setting();
    let now = SystemTime::now();
    ensure(&files, &names, &[], now).unwrap();
    let known = authority_certificate(&files).unwrap().unwrap();
    let domains = ["s3.example.org".to_owned()];
    let listen = ["10.9.8.7".parse().unwrap()];
    let more = crate::tls::server_names::names("another-host", &listen, &domains);
    let renewed = ensure(&files, &more, &domains, now).unwrap();
    assert_eq!(renewed, Ensured::Renewed);
    let server = server_certificate(&files).unwrap().unwrap();
    let all = wanted(&more, &domains);
    assert_eq!(standing(&known, &server, &all, now), Standing::Good);
    assert_eq!(ensure(&files, &more, &domains, now).unwrap(), Ensured::Kept);
    assert!(refused(&files, &more, &domains, now).unwrap().is_empty());
}

#[test]
fn an_authority_of_before_stays_and_names_that_it_refuses_are_left_out_and_told() {
    let (_data, files, names) = setting();
    let now = SystemTime::now();
    for addresses in [false, true] {
        files.make_folder().unwrap();
        found_constrained(&files, &["localhost", "some-host"], addresses);
        let ca = bytes(files.ca_cert());
        let known = authority_certificate(&files).unwrap().unwrap();
        let domains = ["s3.example.org".to_owned()];
        let listen = ["10.9.8.7".parse().unwrap()];
        let more = crate::tls::server_names::names("some-host", &listen, &domains);
        for expected in [Ensured::Renewed, Ensured::Kept] {
            assert_eq!(ensure(&files, &more, &domains, now).unwrap(), expected);
            assert_eq!(bytes(files.ca_cert()), ca);
            let server = server_certificate(&files).unwrap().unwrap();
            assert_eq!(standing(&known, &server, &names, now), Standing::Good);
        }
        let told = refused(&files, &more, &domains, now).unwrap();
        let all = ["10.9.8.7", "s3.example.org"];
        assert_eq!(told, all[usize::from(!addresses)..]);
        // A name below one that is permitted is permitted.
        let inner = ["eu.some-host".to_owned()];
        let inside = crate::tls::server_names::names("some-host", &[], &inner);
        let renewed = ensure(&files, &inside, &inner, now).unwrap();
        assert_eq!(renewed, Ensured::Renewed);
        assert!(refused(&files, &inside, &inner, now).unwrap().is_empty());
    }
}

#[test]
fn an_authority_for_other_names_alone_is_not_replaced_either() {
    let (_data, files, names) = setting();
    let now = SystemTime::now();
    files.make_folder().unwrap();
    found_constrained(&files, &["elsewhere.example.org"], true);
    let ca = bytes(files.ca_cert());
    let only_host = &names[3..];
    assert_eq!(only_host.len(), 1);
    let error = ensure(&files, only_host, &[], now).unwrap_err().to_string();
    assert!(error.contains("accept nothing that it signs"), "{error}");
    assert_eq!(bytes(files.ca_cert()), ca);
}

#[test]
fn what_the_authority_can_make_again_is_made_again() {
    let now = SystemTime::now();
    for (spoil, texts, expected) in [
        (
            Files::server_cert as fn(&Files) -> PathBuf,
            &[None, Some("nothing of the kind")][..],
            Ensured::Renewed,
        ),
        (
            Files::server_key,
            &[None, Some("nothing of the kind")],
            Ensured::Renewed,
        ),
        (Files::ca_cert, &[None], Ensured::Completed),
    ] {
        for text in texts {
            let (_data, files, names) = setting();
            ensure(&files, &names, &[], now).unwrap();
            let known = authority_certificate(&files).unwrap().unwrap();
            match text {
                Some(text) => fs::write(spoil(&files), text).unwrap(),
                None => fs::remove_file(spoil(&files)).unwrap(),
            }
            assert_eq!(ensure(&files, &names, &[], now).unwrap(), expected);
            assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Kept);
            let server = server_certificate(&files).unwrap().unwrap();
            assert_eq!(standing(&known, &server, &names, now), Standing::Good);
        }
    }
    // A key of another certificate.
    let (_data, files, names) = setting();
    ensure(&files, &names, &[], now).unwrap();
    let other = KeyPair::generate().unwrap();
    fs::write(files.server_key(), other.serialize_pem()).unwrap();
    assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Renewed);
}

/// Everything in the folder, byte for byte.
fn all(files: &Files) -> Vec<Option<Vec<u8>>> {
    [
        files.ca_cert(),
        files.ca_key(),
        files.server_cert(),
        files.server_key(),
    ]
    .map(|path| fs::read(path).ok())
    .into()
}

/// Ways to damage a file of the authority.
fn damages(sound: &[u8]) -> Vec<Vec<u8>> {
    let flipped = |at: usize| {
        let mut bytes = sound.to_vec();
        bytes[at] ^= 1;
        bytes
    };
    let mut ways: Vec<_> = (0..sound.len()).step_by(7).map(flipped).collect();
    ways.extend([
        sound[..sound.len() / 2].to_vec(),
        Vec::new(),
        b"xx".to_vec(),
    ]);
    ways
}

#[test]
fn a_damaged_authority_is_neither_replaced_nor_keeps_a_valid_certificate_from_being_served() {
    let (_data, files, names) = setting();
    let now = SystemTime::now();
    ensure(&files, &names, &[], now).unwrap();
    let known = authority_certificate(&files).unwrap().unwrap();
    let (mut told, mut refused) = (0, 0);
    let renewal = now + DAY * (CERTIFICATE_DAYS - 10) as u32;
    for path in [files.ca_cert(), files.ca_key()] {
        let sound = bytes(path.clone());
        for damaged in damages(&sound) {
            fs::write(&path, &damaged).unwrap();
            let before = all(&files);
            // Well before the end, near it, and behind it.
            for (moment, is_valid) in [(now, true), (renewal, true), (renewal + DAY * 20, false)] {
                match (ensure(&files, &names, &[], moment), is_valid) {
                    (Ok(Ensured::Kept), true) if moment == now => {}
                    (Ok(Ensured::KeptDespite { problem }), true) => {
                        assert!(problem.contains("put back a copy"), "{problem}");
                        told += 1;
                    }
                    (Err(error), false) => {
                        assert!(error.to_string().contains("put back a copy"), "{error}");
                        refused += 1;
                    }
                    // What the damage left whole, such as the line breaks of PEM.
                    (Ok(Ensured::Renewed), _) if moment != now => {
                        let server = server_certificate(&files).unwrap().unwrap();
                        let standing = standing(&known, &server, &names, moment);
                        assert_eq!(standing, Standing::Good);
                        fs::write(files.server_cert(), before[2].as_ref().unwrap()).unwrap();
                        fs::write(files.server_key(), before[3].as_ref().unwrap()).unwrap();
                    }
                    other => panic!("{} {moment:?}: {other:?}", path.display()),
                }
                assert_eq!(all(&files), before, "{}", path.display());
            }
        }
        fs::write(&path, &sound).unwrap();
    }
    assert!(told > 100 && refused > 50, "{told} {refused}");
    assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Kept);
}

#[test]
fn a_running_server_founds_no_authority() {
    let (_data, files, names) = setting();
    let now = SystemTime::now();
    ensure(&files, &names, &[], now).unwrap();
    crate::tls::authority::give_up_authority(&files).unwrap();
    let error = renew(&files, &names, &[], now).unwrap_err().to_string();
    assert!(error.contains("the next start makes another"), "{error}");
    assert!(!files.ca_cert().exists());
    assert_eq!(
        ensure(&files, &names, &[], now).unwrap(),
        Ensured::FoundedInstead
    );
}

#[test]
fn a_lost_authority_key_matters_only_at_renewal() {
    let (_data, files, names) = setting();
    let now = SystemTime::now();
    ensure(&files, &names, &[], now).unwrap();
    fs::remove_file(files.ca_key()).unwrap();
    assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Kept);
    let late = now + DAY * (CERTIFICATE_DAYS - 1) as u32;
    let kept = ensure(&files, &names, &[], late).unwrap();
    assert!(matches!(kept, Ensured::KeptDespite { .. }), "{kept:?}");
    let ca = bytes(files.ca_cert());
    let error = ensure(&files, &names, &[], late + DAY * 2).unwrap_err();
    assert!(
        error.to_string().contains("ca.key: it is missing"),
        "{error}"
    );
    assert_eq!(ca, bytes(files.ca_cert()));
}

#[test]
fn a_clock_that_was_wrong_locks_nobody_out() {
    let now = SystemTime::now();
    let wrong = [
        SystemTime::UNIX_EPOCH + DAY,
        now + DAY * 800,
        now - DAY * 60,
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        // A certificate that was there, made by the right clock.
        let (_data, files, names) = setting();
        ensure(&files, &names, &[], now).unwrap();
        let known = authority_certificate(&files).unwrap().unwrap();
        let before = all(&files);
        let under_wrong = ensure(&files, &names, &[], wrong).unwrap();
        let expected = [
            Ensured::KeptUnderWrongClock,
            Ensured::Renewed,
            Ensured::Kept,
        ];
        assert_eq!(under_wrong, expected[number]);
        assert_eq!(all(&files) == before, number != 1);
        renew(&files, &names, &[], now).unwrap();
        let server = server_certificate(&files).unwrap().unwrap();
        assert_eq!(standing(&known, &server, &names, now), Standing::Good);
        // And one that was first made by the wrong one, with its authority.
        let (_data, files, names) = setting();
        ensure(&files, &names, &[], wrong).unwrap();
        let known = authority_certificate(&files).unwrap().unwrap();
        renew(&files, &names, &[], now).unwrap();
        let server = server_certificate(&files).unwrap().unwrap();
        assert_eq!(standing(&known, &server, &names, now), Standing::Good);
        assert_eq!(ensure(&files, &names, &[], now).unwrap(), Ensured::Kept);
    }
}
