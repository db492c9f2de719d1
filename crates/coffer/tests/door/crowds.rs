//! More requests and connections than allowed.

use std::time::Duration;

use coffer::limits::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::server::{PIECE_BYTES, rest, send, short, start};

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_then_are_told_to_slow_down() {
    let server = start(Limits {
        requests: 1,
        ..short()
    });
    let mut first = server.connect().await;
    send(
        &mut first,
        "GET /wait HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    sleep(Duration::from_millis(200)).await;
    let refused = server.ask("/count").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.ends_with("busy"), "{refused}");
    assert_eq!(server.traffic.snapshot().turned_away_count, 1);

    let (second, ()) = tokio::join!(server.ask("/count"), async {
        sleep(Duration::from_millis(200)).await;
        server.go.notify_one();
    });
    assert!(second.starts_with("HTTP/1.1 200 "), "{second}");
    assert!(rest(&mut first).await.ends_with("waited"));
}

#[tokio::test]
async fn a_turn_lasts_until_the_last_byte_of_the_answer() {
    let server = start(Limits {
        requests: 1,
        progress_timeout_seconds: 60,
        ..short()
    });
    let mut first = server.connect().await;
    send(
        &mut first,
        "GET /send/400 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    first.read_exact(&mut [0; 100]).await.unwrap();
    assert!(server.ask("/count").await.starts_with("HTTP/1.1 503 "));
    rest(&mut first).await;
    assert!(server.ask("/count").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = start(Limits {
        connections: 1,
        ..Limits::default()
    });
    let first = server.connect().await;
    let mut later = Box::pin(server.ask("/count"));
    assert!(
        timeout(Duration::from_millis(300), &mut later)
            .await
            .is_err()
    );
    drop(first);
    let answer = timeout(Duration::from_secs(10), later).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn who_is_turned_away_while_it_sends_gets_to_see_why() {
    let server = start(Limits {
        requests: 1,
        ..short()
    });
    let mut first = server.connect().await;
    send(&mut first, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(200)).await;

    let mut sending = server.connect().await;
    let length = 20 * PIECE_BYTES;
    for _ in 0..2 {
        let head = format!("PUT /count HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        send(&mut sending, &head).await;
        for _ in 0..20 {
            sending.write_all(&[1; PIECE_BYTES]).await.unwrap();
        }
        sending.flush().await.unwrap();
        let mut answer = vec![0; 4096];
        let count = sending.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }

    // One that asks before it sends is told that it can't go on to the next request here.
    let mut asking = server.connect().await;
    let head =
        "PUT /count HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    send(&mut asking, head).await;
    let answer = timeout(Duration::from_secs(10), rest(&mut asking))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_fault_of_ours_ends_one_connection_and_frees_its_place() {
    let server = start(Limits {
        connections: 1,
        ..Limits::default()
    });
    for _ in 0..3 {
        assert_eq!(server.ask("/panic").await, "");
    }
    assert!(server.ask("/count").await.starts_with("HTTP/1.1 200 "));
    sleep(Duration::from_millis(200)).await;
    assert_eq!(server.traffic.snapshot().open_count, 0);
}
