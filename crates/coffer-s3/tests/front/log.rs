//! What stands in the log and the counters, and what does not.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;

use crate::front::Front;

/// Where the log goes: that of all tests here, for a log is one to a process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn names_and_contents_do_not_reach_the_log() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(EnvFilter::new("trace,s3s=off"))
        .with_writer(move || writer.clone())
        .init();
    let front = Front::new().await;
    front.ask("PUT", "/marker-bucket").send().await.expect(200);
    let put = front
        .ask("PUT", "/marker-bucket/marker-name")
        .header("x-amz-meta-a", "marker-value");
    let put = put
        .header("x-amz-tagging", "marker=tag")
        .body("marker-body");
    put.send().await.expect(200);
    front
        .ask("GET", "/marker-bucket/marker-name")
        .send()
        .await
        .expect(200);
    front
        .ask("GET", "/marker-bucket/marker-missing")
        .send()
        .await
        .expect(404);
    front
        .ask("GET", "/marker-bucket")
        .query("prefix", "marker")
        .send()
        .await
        .expect(200);
    let copy = front
        .ask("PUT", "/marker-bucket/k")
        .header("x-amz-copy-source", "/marker-bucket/marker-name");
    copy.send().await.expect(200);
    let odd = front
        .ask("GET", "/marker-bucket/marker-name")
        .header("range", "marker");
    odd.send().await.expect(200);

    let logged = String::from_utf8(log.0.lock().clone()).unwrap();
    let has = |pieces: [&str; 2]| {
        logged
            .lines()
            .any(|line| pieces.iter().all(|p| line.contains(p)))
    };
    assert!(
        has(["GetObject", "status=200"]) && has(["GetObject", "NoSuchKey"]),
        "{logged}"
    );
    assert!(!logged.contains("marker"), "{logged}");
    assert!(!logged.contains(&front.key.secret));
    front.close().await;
}

#[tokio::test]
async fn requests_are_counted_by_operation_and_status() {
    let front = Front::with_bucket().await;
    front.put("k", "x").await;
    front.read("k").await.expect(200);
    front.read("missing").await.expect(404);
    front
        .ask("GET", "/buc/k")
        .send_anonymous()
        .await
        .expect(403);
    let counters = front.service.counters();
    let counts = |operation: &str| {
        let rows = counters
            .requests
            .iter()
            .filter(|row| row.operation == operation);
        rows.map(|row| (row.status, row.count)).collect::<Vec<_>>()
    };
    assert_eq!(counts("GetObject"), [(200, 1), (403, 1), (404, 1)]);
    assert_eq!(counts("PutObject"), [(200, 1)]);
    assert_eq!((counters.in_flight, counters.received_bytes), (0, 1));
    assert!(counters.sent_bytes > 1);
    front.close().await;
}
