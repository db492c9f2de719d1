//! What is answered where, on a real vault and over the local socket.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use coffer_admin::{Admin, LocalSocket, Report, Requests, Status, connect};
use coffer_vault::record::{Details, ObjectName, Precondition, Tags};
use coffer_vault::{BucketName, DigestPlan, EtagStyle, Incoming, PutObject, Vault, VaultOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A vault with one object of ten bytes, and its administration.
struct Site {
    data: tempfile::TempDir,
    status: Status,
    admin: Admin,
}

async fn site() -> Site {
    let data = tempfile::tempdir().unwrap();
    let options = VaultOptions {
        data: data.path().to_owned(),
        etag: EtagStyle::Random,
    };
    let vault = Vault::open(options).await.unwrap();
    store(&vault, data.path()).await;
    let status = Status::default();
    let requests = || Requests {
        answered: vec![("PutObject", 200, 7)],
        ..Requests::default()
    };
    let admin = Admin::new(vault, status.clone(), Default::default(), requests);
    Site {
        data,
        status,
        admin,
    }
}

async fn store(vault: &Vault, data: &Path) {
    let credentials = std::fs::read_to_string(data.join("credentials")).unwrap();
    let id = credentials
        .lines()
        .find_map(|line| line.strip_prefix("aws_access_key_id = "));
    let subject = vault.subject(id.unwrap()).unwrap();
    let bucket = BucketName::new("bucket").unwrap();
    vault.create_bucket(&subject, &bucket, None).await.unwrap();
    let object = PutObject {
        name: ObjectName::new("object").unwrap(),
        details: Details::default(),
        tags: Tags::new(),
        precondition: Precondition::None,
        incoming: Incoming {
            declared_bytes: Some(10),
            digests: DigestPlan::default(),
            body: Box::pin(futures::stream::iter([Ok(Bytes::from_static(
                b"ten bytes!",
            ))])),
            check: Box::new(|_| Ok(())),
        },
    };
    vault.put_object(&subject, &bucket, object).await.unwrap();
}

async fn send(data: &Path, request: &str) -> tokio::net::UnixStream {
    let mut stream = connect(data).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The whole answer, heads in lower case.
async fn ask(data: &Path, request: &str) -> String {
    let mut answer = String::new();
    send(data, request)
        .await
        .read_to_string(&mut answer)
        .await
        .unwrap();
    answer
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
}

fn verify(body: &str) -> String {
    format!(
        "POST /v1/verify HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn health_follows_the_status() {
    let Site {
        data,
        status,
        admin,
    } = site().await;
    tokio::spawn(
        LocalSocket::bind(data.path())
            .unwrap()
            .serve(admin.local_routes()),
    );
    let ready = get("/health/ready");
    let answer = ask(data.path(), &ready).await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("starting\n"),
        "{answer}"
    );
    status.serves();
    let answer = ask(data.path(), &ready).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ready\n"),
        "{answer}"
    );
    status.stops();
    let answer = ask(data.path(), &ready).await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("stopping\n"),
        "{answer}"
    );
    let answer = ask(data.path(), &get("/health/live")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = ask(data.path(), &verify("{}")).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "no new work: {answer}");
}

#[tokio::test]
async fn metrics_count_and_name_nothing() {
    let Site { data, admin, .. } = site().await;
    tokio::spawn(
        LocalSocket::bind(data.path())
            .unwrap()
            .serve(admin.local_routes()),
    );
    let answer = ask(data.path(), &get("/metrics")).await;
    assert!(
        answer.contains("content-type: text/plain; version=0.0.4"),
        "{answer}"
    );
    for line in [
        "coffer_stored_bytes_total 10",
        "coffer_s3_requests_total{operation=\"PutObject\",status=\"200\"} 7",
        "coffer_damage_total 0",
    ] {
        assert!(
            answer.lines().any(|other| other == line),
            "{line} is not in\n{answer}"
        );
    }
    assert!(
        !answer.contains("bucket") && !answer.contains("object\""),
        "{answer}"
    );
}

#[tokio::test]
async fn only_the_owner_verifies() {
    let Site {
        data,
        status,
        admin,
    } = site().await;
    status.serves();
    tokio::spawn(
        LocalSocket::bind(data.path())
            .unwrap()
            .serve(admin.public_routes()),
    );
    let answer = ask(data.path(), &verify("{}")).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.contains("/health/live"), "{answer}");
}

#[tokio::test]
async fn verification_reports_and_one_runs_at_a_time() {
    let Site {
        data,
        status,
        admin,
    } = site().await;
    status.serves();
    tokio::spawn(
        LocalSocket::bind(data.path())
            .unwrap()
            .serve(admin.local_routes()),
    );
    let answer = ask(data.path(), &verify("{}")).await;
    assert!(
        answer.contains("content-type: application/x-ndjson"),
        "{answer}"
    );
    let line = answer.lines().rfind(|line| line.starts_with('{')).unwrap();
    let done = Report::Done {
        checked_count: 1,
        checked_bytes: 10,
        damage_count: 0,
    };
    assert_eq!(serde_json::from_str::<Report>(line).unwrap(), done);

    for wrong in ["{\"speed\":1}", "{\"rate\":\"fast\"}", "nonsense"] {
        let answer = ask(data.path(), &verify(wrong)).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{wrong}: {answer}");
    }

    // A byte a second: this one takes ten.
    let slow = send(data.path(), &verify("{\"rate\":1}")).await;
    slow.readable().await.unwrap();
    let answer = ask(data.path(), &verify("{}")).await;
    assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
    assert!(answer.contains("another verification"), "{answer}");
    drop(slow);
    for _ in 0..100 {
        if ask(data.path(), &verify("{}"))
            .await
            .starts_with("HTTP/1.1 200 ")
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a verification goes on although nobody listens");
}
