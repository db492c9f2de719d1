//! Bodies both ways, and clients that are slow, silent or wordy.

use std::time::{Duration, Instant};

use coffer::limits::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::server::{PIECE_BYTES, about_a_second, end, rest, send, short, start};

#[tokio::test]
async fn large_bodies_go_both_ways_on_one_connection() {
    let server = start(Limits::default());
    let mut stream = server.connect().await;
    for _ in 0..2 {
        let piece = vec![1; PIECE_BYTES];
        let length = 40 * PIECE_BYTES;
        send(
            &mut stream,
            &format!("PUT /count HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n"),
        )
        .await;
        for _ in 0..40 {
            stream.write_all(&piece).await.unwrap();
        }
        stream.flush().await.unwrap();
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
        assert!(answer.ends_with(&format!("\r\n\r\n{length}")), "{answer}");
    }
    send(
        &mut stream,
        "GET /send/40 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    let answer = rest(&mut stream).await;
    assert!(answer.len() > 40 * PIECE_BYTES);
    assert_eq!(
        answer.bytes().filter(|byte| *byte == 7).count(),
        40 * PIECE_BYTES
    );
    assert!(server.traffic.snapshot().received_bytes > 80 * PIECE_BYTES as u64);
    assert!(server.traffic.snapshot().sent_bytes > 40 * PIECE_BYTES as u64);
}

#[tokio::test]
async fn who_does_not_shake_hands_is_cut_off() {
    let server = start(short());
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    let start = Instant::now();
    let ended = timeout(Duration::from_secs(20), tcp.read(&mut [0; 8]))
        .await
        .unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)));
    assert!(about_a_second(start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(server.traffic.snapshot().handshake_failed_count, 1);
}

#[tokio::test]
async fn idle_connections_and_endless_headers_are_cut_off() {
    let server = start(short());
    let mut idle = server.connect().await;
    let (elapsed, text) = end(&mut idle).await;
    assert!(about_a_second(elapsed), "{elapsed:?}");
    assert!(!text.contains("200"), "{text}");

    let stream = server.connect().await;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let dripping = tokio::spawn(async move {
        let _ = writer
            .write_all(b"GET /count HTTP/1.1\r\nhost: a\r\nx-slow: ")
            .await;
        while writer.write_all(b"z").await.is_ok() {
            let _ = writer.flush().await;
            sleep(Duration::from_millis(100)).await;
        }
    });
    let start = Instant::now();
    let mut text = Vec::new();
    let _ = timeout(Duration::from_secs(20), reader.read_to_end(&mut text))
        .await
        .unwrap();
    assert!(about_a_second(start.elapsed()), "{:?}", start.elapsed());
    dripping.abort();
}

#[tokio::test]
async fn oversized_headers_are_refused() {
    let server = start(Limits::default());
    let mut stream = server.connect().await;
    // Below 64 KiB it is for S3 to refuse them.
    let long = "z".repeat(70 * 1024);
    send(
        &mut stream,
        &format!("GET /count HTTP/1.1\r\nhost: a\r\nx-long: {long}\r\n\r\n"),
    )
    .await;
    let (_, text) = end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
}

#[tokio::test]
async fn a_body_that_stalls_ends() {
    let server = start(short());
    let mut stream = server.connect().await;
    send(
        &mut stream,
        "PUT /count HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nabc",
    )
    .await;
    let (elapsed, text) = end(&mut stream).await;
    assert!(about_a_second(elapsed), "{elapsed:?}");
    assert!(
        text.contains("error: the client moved too few bytes"),
        "{text}"
    );
    assert_eq!(server.traffic.snapshot().cut_off_count, 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let server = start(short());
    let mut stream = server.connect().await;
    send(&mut stream, "GET /send/400 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let start = Instant::now();
    while server.traffic.snapshot().open_count > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "still open");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(about_a_second(start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(server.traffic.snapshot().cut_off_count, 1);
    assert!(rest(&mut stream).await.len() < 400 * PIECE_BYTES);
}
