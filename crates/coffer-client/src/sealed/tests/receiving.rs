//! Offers, and what comes of them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::port::{Blob, CHUNK, TICKET, answer, offer, port_that_says, port_that_says_by_tls};
use crate::sealed::{Asked, Lane, Offer, SealedError, Stop};

fn read(said: &Value, range: Range<u64>, object_bytes: u64) -> Result<Offer, SealedError> {
    let asked = Asked {
        range,
        object_bytes,
        host: "127.0.0.1",
    };
    Offer::read(said.to_string().as_bytes(), &asked)
}

/// What a client gets that asks for all of an object when this comes from the data port.
fn fetched(blob: &Blob, sealed: Vec<u8>) -> (Result<(), SealedError>, Vec<u8>) {
    let all = blob.plain.len() as u64;
    let (port, _) = port_that_says(vec![sealed]);
    let said = offer(port, [0, all], &[blob.segment(0, all)]);
    let mut got = Vec::new();
    let done = Lane::new().receive(&read(&said, 0..all, all).unwrap(), |at, piece| {
        assert_eq!(at, got.len() as u64);
        got.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!(got, blob.plain[..got.len()], "other bytes were given out");
    (done, got)
}

#[test]
fn any_range_of_a_blob_comes_as_it_was() {
    let size = 70 * CHUNK + 5;
    let blob = Blob::of(size, 1);
    let borders = [
        0,
        1,
        CHUNK - 1,
        CHUNK,
        CHUNK + 1,
        40 * CHUNK,
        size - 1,
        size,
    ];
    let mut lane = Lane::new();
    for (from, to) in borders
        .iter()
        .flat_map(|from| borders.map(|to| (*from, to)))
    {
        if from >= to {
            continue;
        }
        let segment = blob.segment(from, to);
        let (port, answering) = port_that_says(vec![answer("200 OK", &segment.1)]);
        let offer = read(&offer(port, [from, to], &[segment]), from..to, size).unwrap();
        assert_eq!(offer.range(), from..to);
        let mut got = vec![0; size as usize];
        lane.receive(&offer, |at, piece| {
            got[at as usize..][..piece.len()].copy_from_slice(piece);
            Ok(())
        })
        .unwrap();
        let (from, to) = (from as usize, to as usize);
        assert_eq!(got[from..to], blob.plain[from..to], "{from}..{to}");
        assert!(got[..from].iter().chain(&got[to..]).all(|byte| *byte == 0));
        let (asked, _) = answering.join().unwrap();
        assert_eq!(asked[0].line, format!("GET /transfer/{TICKET} HTTP/1.1"));
    }
}

#[test]
fn blobs_follow_each_other_and_connections_stay() {
    let blobs = [
        Blob::of(3 * CHUNK, 1),
        Blob::of(CHUNK / 2, 2),
        Blob::of(2 * CHUNK + 1, 3),
    ];
    let plain: Vec<u8> = blobs.iter().flat_map(|blob| blob.plain.clone()).collect();
    let all = plain.len() as u64;
    let mut segments: Vec<_> = blobs
        .iter()
        .map(|blob| blob.segment(0, blob.plain.len() as u64))
        .collect();
    segments[0] = blobs[0].segment(100, 3 * CHUNK);
    let sealed: Vec<u8> = segments
        .iter()
        .flat_map(|(_, sealed)| sealed.clone())
        .collect();
    let (port, answering) = port_that_says(vec![answer("200 OK", &sealed); 3]);
    let mut lane = Lane::new();
    for _ in 0..3 {
        let said = offer(port, [100, all], &segments);
        let mut got = Vec::new();
        lane.receive(&read(&said, 100..all, all).unwrap(), |_, piece| {
            got.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
        assert_eq!(got, plain[100..]);
    }
    assert_eq!(answering.join().unwrap().1, 1, "one connection for all");
}

/// The keys of a connection are never renewed: others take its place in time, and every transfer is
/// whole.
#[test]
fn a_connection_by_tls_is_left_when_its_keys_have_served() {
    let blob = Blob::of(3 * CHUNK, 7);
    let all = blob.plain.len() as u64;
    let segments = [blob.segment(0, all)];
    for (bytes_max, connections) in [(u64::MAX, 1), (5 * CHUNK, 3), (0, 5)] {
        let answers = vec![answer("200 OK", &segments[0].1); 5];
        let (port, answering, trusting) = port_that_says_by_tls(answers);
        let mut lane = Lane::trusting(Some(trusting)).renewing_after(bytes_max);
        let mut said = offer(port, [0, all], &segments);
        said["tls"] = json!(true);
        for _ in 0..5 {
            let mut got = Vec::new();
            let received = lane.receive(&read(&said, 0..all, all).unwrap(), |_, piece| {
                got.extend_from_slice(piece);
                Ok(())
            });
            received.unwrap();
            assert!(got == blob.plain, "other bytes");
        }
        drop(lane);
        assert_eq!(answering.join().unwrap().1, connections);
    }
}

#[test]
fn altered_streams_give_out_nothing_that_is_not_so() {
    let size = 33 * CHUNK + 9;
    let (blob, other) = (Blob::of(size, 1), Blob::of(size, 1));
    let (_, sealed) = blob.segment(0, size);
    let flipped = |at: usize| {
        let mut sealed = sealed.clone();
        sealed[at] ^= 1;
        sealed
    };
    let mut swapped = sealed.clone();
    swapped[..2 * 16_400].rotate_left(16_400);
    let replayed = other.segment(0, size).1;
    for altered in [
        flipped(0),
        flipped(sealed.len() - 1),
        flipped(32 * 16_400),
        swapped,
        replayed,
    ] {
        let (done, _) = fetched(&blob, answer("200 OK", &altered));
        assert!(matches!(done, Err(SealedError::Altered { .. })), "{done:?}");
    }
    for (text, body) in [
        ("200 OK", &sealed[..sealed.len() - 16]),
        ("200 OK", &[sealed.as_slice(), b"more"].concat()),
    ] {
        let (done, got) = fetched(&blob, answer(text, body));
        assert!(matches!(done, Err(SealedError::Altered { .. })), "{done:?}");
        assert_eq!(got, b"");
    }
    for text in ["SSH-2.0-other\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
        let (done, _) = fetched(&blob, text.as_bytes().to_vec());
        assert!(matches!(done, Err(SealedError::Altered { .. })), "{done:?}");
    }
}

#[test]
fn cut_streams_say_how_far_they_came() {
    let size = 40 * CHUNK;
    let blob = Blob::of(size, 1);
    let whole = answer("200 OK", &blob.segment(0, size).1);
    for length in [0, 20, whole.len() / 2, whole.len() - 1] {
        let (done, _) = fetched(&blob, whole[..length].to_vec());
        let Err(error @ SealedError::Cut { .. }) = done else {
            panic!("{length}: {done:?}");
        };
        assert!(error.is_passing());
    }
    let (done, _) = fetched(&blob, answer("404 Not Found", b""));
    assert!(matches!(
        done,
        Err(SealedError::Refused { status: 404, .. })
    ));
}

#[test]
fn a_port_that_is_closed_is_unreachable() {
    let blob = Blob::of(CHUNK, 1);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let said = offer(port, [0, CHUNK], &[blob.segment(0, CHUNK)]);
    let done = Lane::new().receive(&read(&said, 0..CHUNK, CHUNK).unwrap(), |_, _| Ok(()));
    let error = done.unwrap_err();
    assert!(matches!(error, SealedError::Unreachable { .. }));
    assert!(!error.to_string().contains(TICKET), "{error}");
}

/// A client that trusts no one.
fn suspicious() -> Lane {
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Lane::trusting(Some(Arc::new(config)))
}

#[test]
fn a_ticket_for_a_port_with_tls_never_goes_without() {
    let blob = Blob::of(CHUNK, 1);
    for (mut lane, is_by_url) in [
        (Lane::new(), false),
        (suspicious(), false),
        (suspicious(), true),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let listening = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut heard, mut piece) = (Vec::new(), [0; 1024]);
            // Answers as a port without TLS would, once something has come.
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                heard.extend_from_slice(&piece[..count]);
                let _ = stream.write_all(&answer("200 OK", b"plain"));
                let _ = stream.shutdown(std::net::Shutdown::Write);
            }
            heard
        });
        let mut said = offer(port, [0, CHUNK], &[blob.segment(0, CHUNK)]);
        if is_by_url {
            said["url"] = json!(format!("https://127.0.0.1:{port}/transfer/{TICKET}"));
        } else {
            said["tls"] = json!(true);
        }
        let offered = read(&said, 0..CHUNK, CHUNK).unwrap();
        let error = lane.receive(&offered, |_, _| Ok(())).unwrap_err();
        assert!(matches!(error, SealedError::Unreachable { .. }), "{error}");
        drop(lane);
        let heard = listening.join().unwrap();
        let ticket = TICKET.as_bytes();
        assert!(!heard.windows(ticket.len()).any(|piece| piece == ticket));
        assert!(!heard.starts_with(b"GET"));
    }
}

#[test]
fn a_sink_that_fails_ends_it() {
    let blob = Blob::of(CHUNK, 1);
    let segment = blob.segment(0, CHUNK);
    let (port, _) = port_that_says(vec![answer("200 OK", &segment.1)]);
    let said = offer(port, [0, CHUNK], &[segment]);
    let full = |_: u64, _: &[u8]| Err(std::io::ErrorKind::StorageFull.into());
    let done = Lane::new().receive(&read(&said, 0..CHUNK, CHUNK).unwrap(), full);
    assert!(matches!(done, Err(SealedError::Local(_))), "{done:?}");
}

#[test]
fn offers_that_are_none_are_refused() {
    let (one, two) = (Blob::of(2 * CHUNK, 1), Blob::of(CHUNK + 3, 2));
    let all = 3 * CHUNK + 3;
    let good = offer(
        1,
        [0, all],
        &[one.segment(0, 2 * CHUNK), two.segment(0, CHUNK + 3)],
    );
    read(&good, 0..all, all).unwrap();
    let wrong = [
        ("/version", json!(2)),
        ("/ticket", json!("short")),
        ("/ticket", json!("/".repeat(43))),
        ("/port", json!(null)),
        ("/url", json!("ftp://example.org/t")),
        ("/range", json!([1, all])),
        ("/range", json!([0, all + 1])),
        ("/range", json!([0, 0])),
        ("/range", json!([0, all - 1])),
        ("/bytes", json!(5)),
        ("/segments", json!([])),
        ("/segments/0/key", json!("AAAA")),
        ("/segments/0/key", good["segments"][1]["key"].clone()),
        ("/segments/0/context", json!("")),
        (
            "/segments/0/context",
            good["segments"][1]["context"].clone(),
        ),
        ("/segments/0/header", good["segments"][1]["header"].clone()),
        ("/segments/0/is_last", json!(false)),
        ("/segments/1/is_last", json!(false)),
        ("/segments/1/first_chunk", json!(1)),
        ("/segments/0/first_chunk", json!(u64::MAX)),
        ("/segments/0/sealed_bytes", json!(u64::MAX)),
        ("/segments/0/sealed_bytes", json!(15)),
        ("/segments/0/skip", json!(16_384)),
        ("/segments/0/bytes", json!(u64::MAX)),
        ("/segments/0/bytes", json!(2 * CHUNK - 1)),
    ];
    for (place, value) in wrong {
        let mut said = good.clone();
        if let Some(field) = said.pointer_mut(place) {
            *field = value.clone();
        } else {
            said[&place[1..]] = value.clone();
        }
        let error = read(&said, 0..all, all).map(|_| ());
        let is_told = matches!(error, Err(SealedError::Answer { .. }));
        assert!(is_told, "{place} = {value}: {error:?}");
    }
    let many = vec![good["segments"][0].clone(); 257];
    let mut said = good;
    said["segments"] = many.into();
    assert!(read(&said, 0..all, all).is_err());
}

#[test]
fn what_is_stopped_ends_at_once() {
    let blob = Blob::of(40 * CHUNK, 3);
    let all = blob.plain.len() as u64;
    let segment = blob.segment(0, all);
    // Half of it comes, and then nothing more.
    let half = answer("200 OK", &segment.1);
    let half = half[..half.len() - segment.1.len() / 2].to_vec();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let said = offer(port, [0, all], &[segment]);
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        assert!(stream.read(&mut asked).unwrap() > 0);
        stream.write_all(&half).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    });
    let stop = Arc::new(Stop::default());
    let stopping = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            thread::sleep(Duration::from_millis(200));
            stop.stop();
        }
    });
    let began = Instant::now();
    let offered = read(&said, 0..all, all).unwrap();
    let done = Lane::new().receive_until(&offered, &stop, |_, _| Ok(()));
    assert!(matches!(done, Err(SealedError::Cut { .. })), "{done:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    answering.join().unwrap();
    stopping.join().unwrap();
}

#[test]
fn what_was_stopped_before_does_not_begin() {
    let blob = Blob::of(CHUNK, 4);
    let segment = blob.segment(0, CHUNK);
    let (port, _) = port_that_says(vec![answer("200 OK", &segment.1)]);
    let said = offer(port, [0, CHUNK], &[segment]);
    let stop = Stop::default();
    stop.stop();
    let offered = read(&said, 0..CHUNK, CHUNK).unwrap();
    let done = Lane::new().receive_until(&offered, &stop, |_, _| panic!("bytes came"));
    assert!(matches!(done, Err(SealedError::Cut { .. })), "{done:?}");
}
