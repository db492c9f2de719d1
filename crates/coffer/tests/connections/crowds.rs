//! More requests and connections than allowed.

use std::time::Duration;

use coffer::config::proxy_rules::{Listener, ProxyRules};
use coffer::limits::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::server::{PIECE_BYTES, about_a_second, end, rest, send, short, start, start_behind};

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
async fn connections_wait_while_all_others_are_at_work() {
    let server = start(Limits {
        connections: 1,
        ..Limits::default()
    });
    let mut first = server.connect().await;
    send(&mut first, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(200)).await;
    let mut later = Box::pin(server.ask("/count"));
    assert!(
        timeout(Duration::from_millis(300), &mut later)
            .await
            .is_err()
    );
    server.go.notify_one();
    let answer = timeout(Duration::from_secs(10), later).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn idle_connections_make_room_for_others_and_work_goes_on() {
    let server = start(Limits {
        connections: 8,
        ..Limits::default()
    });
    let mut busy = server.connect().await;
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    // One that waits for an answer whose end it does not read, and two that don't shake hands.
    let mut slow = server.connect().await;
    send(&mut slow, "GET /send/400 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let _silent = [
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    ];
    sleep(Duration::from_millis(200)).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(server.connect().await);
    }
    for _ in 0..20 {
        let answer = timeout(Duration::from_secs(5), server.ask("/count")).await;
        assert!(answer.unwrap().starts_with("HTTP/1.1 200 "));
    }
    server.go.notify_one();
    let mut answer = [0; 400];
    let count = timeout(Duration::from_secs(5), busy.read(&mut answer)).await;
    assert!(answer[..count.unwrap().unwrap()].ends_with(b"waited"));
    let mut left = 400 * PIECE_BYTES;
    let mut part = vec![0; PIECE_BYTES];
    while left > 0 {
        let read = timeout(Duration::from_secs(5), slow.read(&mut part)).await;
        let count = read.unwrap().unwrap();
        assert!(count > 0, "cut off with {left} bytes to come");
        left = left.saturating_sub(count);
    }
    assert!(server.traffic.snapshot().made_room_count >= 2);
}

#[tokio::test]
async fn who_does_not_sign_in_is_let_idle_for_a_short_while_only() {
    let server = start(Limits {
        sign_in_timeout_seconds: 1,
        ..Limits::default()
    });
    let mut idle = server.connect().await;
    let (elapsed, said) = end(&mut idle).await;
    assert!(
        about_a_second(elapsed) && said.is_empty(),
        "{elapsed:?} {said}"
    );
    // A request that takes longer is answered first.
    let mut busy = server.connect().await;
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(2500)).await;
    server.go.notify_one();
    assert!(end(&mut busy).await.1.ends_with("waited"));
}

#[tokio::test]
async fn a_proxy_tells_whose_a_connection_is() {
    let rules = ProxyRules {
        trusted: vec!["127.0.0.1/32".parse().unwrap()],
        protocol: vec![Listener::S3],
        ..ProxyRules::default()
    };
    let server = start_behind(short(), &rules);
    let line = b"PROXY TCP4 192.0.2.7 127.0.0.1 4000 443\r\n";
    let mut stream = server.connect_saying(line).await.unwrap();
    send(
        &mut stream,
        "GET /count HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 "));
    let client = server.client_address.lock().take();
    assert_eq!(client, Some("192.0.2.7".parse().unwrap()));
    // A proxy must say it, and in time.
    assert!(server.connect_saying(b"").await.is_err());
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    silent.write_all(&line[..9]).await.unwrap();
    let ended = timeout(Duration::from_secs(20), silent.read(&mut [0; 8])).await;
    assert!(matches!(ended.unwrap(), Ok(0) | Err(_)));
    // From others it is no PROXY header, but bad TLS.
    let rules = ProxyRules {
        trusted: vec!["192.0.2.0/24".parse().unwrap()],
        ..rules
    };
    let server = start_behind(short(), &rules);
    assert!(server.connect_saying(line).await.is_err());
    assert!(server.ask("/count").await.starts_with("HTTP/1.1 200 "));
    let client = server.client_address.lock().take();
    assert_eq!(client, Some("127.0.0.1".parse().unwrap()));
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
