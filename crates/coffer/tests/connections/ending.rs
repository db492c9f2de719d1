//! What is under way when the end comes.

use std::time::Duration;

use coffer::limits::Limits;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::server::{end, rest, send, start};

#[tokio::test]
async fn the_end_lets_requests_end_but_not_idle_connections() {
    let server = start(Limits::default());
    let mut idle = server.connect().await;
    let mut busy = server.connect().await;
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(200)).await;
    server.shutdown.drain.cancel();
    let (elapsed, _) = end(&mut idle).await;
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "nothing new"
    );
    assert!(!server.task.is_finished());
    server.go.notify_one();
    assert!(rest(&mut busy).await.ends_with("waited"));
    timeout(Duration::from_secs(10), server.task)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let server = start(Limits::default());
    let mut busy = server.connect().await;
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(200)).await;
    server.shutdown.abort.cancel();
    timeout(Duration::from_secs(10), server.task)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(rest(&mut busy).await, "");
    assert_eq!(server.traffic.snapshot().open_count, 0);
}
