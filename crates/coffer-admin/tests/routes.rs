//! What is answered where, on a real vault and over the local socket.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use base64::Engine;
use bytes::Bytes;
use coffer_admin::{Admin, ErrorBody, LocalSocket, Peer, Report, Routes, S3Metrics, Status};
use coffer_client::local_socket;
use coffer_vault::record::{Details, ObjectName, Precondition, Tags};
use coffer_vault::{BucketName, DigestPlan, Incoming, PutObject, Vault, VaultOptions};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower_service::Service;

/// A vault with one object of ten bytes, and its administration.
struct Site {
    data: tempfile::TempDir,
    status: Status,
    admin: Admin,
}

async fn site() -> Site {
    let data = tempfile::tempdir().unwrap();
    let options = VaultOptions::new(data.path().to_owned());
    let vault = Vault::open(options).await.unwrap();
    store(&vault, data.path()).await;
    let status = Status::default();
    let requests = || S3Metrics {
        answered: vec![("PutObject", 200, 7)],
        ..S3Metrics::default()
    };
    let folder = data.path().to_owned();
    let admin = Admin::new(vault, folder, status.clone(), Default::default(), requests);
    Site {
        data,
        status,
        admin,
    }
}

fn serving(admin: Admin) -> impl Fn(Peer) -> axum::Router {
    let routes = Routes::new(admin);
    move |peer| routes.for_peer(peer)
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
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
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
            is_proven: true,
            arrived: None,
        },
    };
    vault.put_object(&subject, &bucket, object).await.unwrap();
}

async fn send(data: &Path, request: &str) -> tokio::net::UnixStream {
    let mut stream = local_socket::connect(data).await.unwrap();
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
            .serve(serving(admin)),
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
            .serve(serving(admin)),
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
    // Levels are told by id, the objects of "bucket" in their sums alone.
    assert!(
        !answer.contains("\"bucket\"") && !answer.contains("object\""),
        "{answer}"
    );
}

/// One request from elsewhere: status and body.
async fn ask_from_afar(
    routes: &Routes,
    authorization: Option<&str>,
    request: http::request::Builder,
    body: &str,
) -> (u16, String) {
    let address = "192.0.2.7".parse().unwrap();
    let mut request = request.header("content-type", "application/json");
    if let Some(pair) = authorization {
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        request = request.header("authorization", format!("Basic {encoded}"));
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let mut router = routes.for_peer(Peer::Remote { address });
    let answer = router.call(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
    (status, String::from_utf8(bytes.unwrap().to_vec()).unwrap())
}

fn credentials(data: &Path) -> String {
    let text = std::fs::read_to_string(data.join("credentials")).unwrap();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once(" = ").unwrap().1.to_owned()
    };
    format!(
        "{}:{}",
        value("aws_access_key_id"),
        value("aws_secret_access_key")
    )
}

#[tokio::test]
async fn from_afar_only_who_signs_in_is_heard() {
    let Site {
        data,
        status,
        admin,
    } = site().await;
    status.serves();
    let routes = Routes::new(admin);
    let levels = || Request::get("/v1/levels");
    let right = credentials(data.path());
    let (status, body) = ask_from_afar(&routes, Some(&right), levels(), "").await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"name\":\"default\""), "{body}");

    let (status, body) = ask_from_afar(&routes, None, levels(), "").await;
    assert_eq!(status, 401);
    assert!(body.contains("\"code\":\"sign_in_required\""), "{body}");
    let from_other_site = levels().header("sec-fetch-site", "cross-site");
    let (status, _) = ask_from_afar(&routes, Some(&right), from_other_site, "").await;
    assert_eq!(status, 403);
    let (status, _) = ask_from_afar(&routes, None, Request::get("/health/ready"), "").await;
    assert_eq!(status, 200, "health needs no sign-in");

    let wrong = format!("{right}x");
    for guess in [&wrong, ":", "nobody:nothing", "nobody:", &wrong] {
        for _ in 0..2 {
            let (status, body) = ask_from_afar(&routes, Some(guess), levels(), "").await;
            assert_eq!(status, 401, "{guess}: {body}");
            assert!(body.contains("sign_in_failed"), "{body}");
        }
    }
    let (status, _) = ask_from_afar(&routes, Some(&right), levels(), "").await;
    assert_eq!(status, 429, "ten failures from an address are enough");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_as_json() {
    let Site {
        data: _kept,
        status,
        admin,
    } = site().await;
    status.serves();
    let routes = Routes::new(admin);
    let mut local = routes.for_peer(Peer::Local { uid: 0 });
    let post = |body: &str| {
        Request::post("/v1/levels")
            .header("content-type", "application/json")
            .body(Body::from(body.to_owned()))
            .unwrap()
    };
    let long = format!("{{\"name\":\"{}\",\"rank\":1}}", "a".repeat(1 << 20));
    let bare = Request::post("/v1/levels").body(Body::from("{}")).unwrap();
    let elsewhere = Request::get("/v1/nowhere").body(Body::empty()).unwrap();
    let not_so = Request::patch("/v1/levels").body(Body::empty()).unwrap();
    for (request, expected_status, code) in [
        (post("nonsense"), 400, "invalid_request"),
        (post("{\"name\":\"a\"}"), 400, "invalid_request"),
        (post("{\"name\":\"a\",\"rank\":16}"), 400, "invalid_request"),
        (post("{\"name\":\"A\",\"rank\":1}"), 400, "invalid_request"),
        (
            post("{\"name\":\"a\",\"rank\":1,\"x\":1}"),
            400,
            "invalid_request",
        ),
        (
            post("{\"name\":\"default\",\"rank\":1}"),
            409,
            "level_exists",
        ),
        (post(&long), 413, "too_large"),
        (bare, 415, "not_json"),
        (elsewhere, 404, "nothing_here"),
        (not_so, 405, "method_not_allowed"),
    ] {
        let told = format!("{request:?}");
        let answer = local.call(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), expected_status, "{told}");
        let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
        let body: ErrorBody = serde_json::from_slice(&bytes.unwrap()).unwrap();
        assert_eq!(body.error.code, code, "{told}");
        assert!(!body.error.message.contains('\n'), "{told}");
    }
}

#[test]
fn the_committed_description_is_what_the_routes_tell() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(
        committed == coffer_admin::openapi_json(),
        "docs/openapi.json is not what the routes tell; rewrite it with\n\
         cargo run -q -p coffer-admin --example openapi > docs/openapi.json"
    );
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
            .serve(serving(admin)),
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
        rollback_count: 0,
        client_key_count: 0,
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
    panic!("a verification goes on after its client has left");
}
