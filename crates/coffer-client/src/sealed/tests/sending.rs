//! Announcements, and what goes out on them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_seal::{Context, SecretKey, open, sealed_bytes};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::port::{CHUNK, TICKET, answer, port_that_says};
use crate::sealed::{Announced, Announcement, Lane, SealedError};

fn announced(key: &SecretKey, context: &Context, port: u16, bytes: u64) -> Value {
    json!({
        "version": 1, "transfer": "sealed", "ticket": TICKET, "port": port, "expires_ms": 60000,
        "key": STANDARD.encode(key.expose()), "context": STANDARD.encode(context.as_bytes()),
        "bytes": sealed_bytes(bytes),
    })
}

fn read(said: &Value, bytes: u64) -> Result<Announced, SealedError> {
    Announced::read(said.to_string().as_bytes(), bytes, "127.0.0.1")
}

fn announcement(said: &Value, bytes: u64) -> Announcement {
    match read(said, bytes) {
        Ok(Announced::Sealed(announcement)) => announcement,
        _ => panic!("no announcement: {said}"),
    }
}

/// Sends this plaintext to a port that answers so.
fn sent(plain: &[u8], says: &str) -> (Result<Zeroizing<String>, SealedError>, Option<Vec<u8>>) {
    let (key, context) = (SecretKey::generate(), Context::raw(*b"a place"));
    let (port, answering) = port_that_says(vec![answer(says, b"")]);
    let bytes = plain.len() as u64;
    let announcement = announcement(&announced(&key, &context, port, bytes), bytes);
    let mut told = 0;
    let done = Lane::new().send(announcement, plain, |bytes| told += bytes);
    assert_eq!(told, bytes);
    let (asked, _) = answering.join().unwrap();
    assert_eq!(asked[0].line, format!("PUT /transfer/{TICKET} HTTP/1.1"));
    let arrived = open(&key, &context, &asked[0].body).ok();
    (done, arrived.map(|plain| plain.to_vec()))
}

#[test]
fn what_arrives_opens_to_what_was_there() {
    for bytes in [
        0,
        1,
        CHUNK - 1,
        CHUNK,
        CHUNK + 1,
        32 * CHUNK,
        65 * CHUNK + 7,
    ] {
        let plain: Vec<u8> = (0..bytes).map(|n| (n / 3) as u8).collect();
        let (done, arrived) = sent(&plain, "204 No Content");
        assert_eq!(done.unwrap().as_str(), TICKET);
        assert_eq!(arrived.unwrap(), plain, "{bytes} bytes");
    }
}

#[test]
fn what_the_server_did_not_take_is_an_error() {
    let (done, _) = sent(&[1; 100], "422 Unprocessable Content");
    assert!(matches!(done, Err(SealedError::Spoilt { .. })), "{done:?}");
    for (says, expected) in [("404 Not Found", 404), ("500 Internal Server Error", 500)] {
        let (done, _) = sent(&[1; 100], says);
        let Err(SealedError::Refused { status, .. }) = done else {
            panic!("{done:?}");
        };
        assert_eq!(status, expected);
    }
    let error = sent(&[1; 100], "507 Insufficient Storage").0.unwrap_err();
    assert!(matches!(error, SealedError::Full { .. }), "{error}");
    // The same would meet the same: it is no matter of a new ticket.
    assert!(!error.is_passing() && error.to_string().contains("no room"));
}

#[test]
fn what_is_no_data_port_is_found_out_first() {
    let (key, context) = (SecretKey::generate(), Context::raw(*b"a place"));
    let asked = |says: &str| {
        let answers = vec![answer(says, b""), answer(says, b"")];
        let (port, _answering) = port_that_says(answers);
        let said = announced(&key, &context, port, 1);
        let mut lane = Lane::new().checking();
        lane.send(announcement(&said, 1), &[1], |_| ())
    };
    let error = asked("403 Forbidden").unwrap_err();
    assert!(matches!(error, SealedError::NoDataPort { .. }), "{error}");
    assert!(!error.is_passing());
}

#[test]
fn what_is_not_as_long_as_announced_is_not_sent() {
    let (key, context) = (SecretKey::generate(), Context::raw(*b"a place"));
    let said = announced(&key, &context, 1, 100);
    let done = Lane::new().send(announcement(&said, 100), &[0; 99], |_| ());
    assert!(matches!(done, Err(SealedError::Local(_))), "{done:?}");
}

#[test]
fn answers_to_announcements() {
    let (key, context) = (SecretKey::generate(), Context::raw(*b"a place"));
    let by_tls = json!({"version": 1, "transfer": "tls"});
    assert!(matches!(read(&by_tls, 7), Ok(Announced::ByTls)));
    let good = announced(&key, &context, 1, 7);
    assert!(matches!(read(&good, 7), Ok(Announced::Sealed(_))));
    assert!(read(&good, 8).is_err());
    for (field, value) in [
        ("version", json!(2)),
        ("transfer", json!("pigeon")),
        ("ticket", json!("")),
        ("port", json!(70_000)),
        ("key", json!("AAAA")),
        ("context", json!("")),
        ("bytes", json!(7)),
    ] {
        let mut said = good.clone();
        said[field] = value;
        assert!(read(&said, 7).is_err(), "{field}");
    }
    assert!(Announced::read(b"<html>", 7, "h").is_err());
}
