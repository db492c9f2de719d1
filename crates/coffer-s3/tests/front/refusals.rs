//! What is refused, by name and before harm is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use coffer_vault::{Actor, AuditItem, AuditQuery};
use futures::{StreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;

use crate::front::Front;

#[tokio::test]
async fn only_what_is_signed_whole_gets_in() {
    let front = Front::with_bucket().await;
    front.put("secret", "the secret").await;
    front
        .ask("GET", "/buc/secret")
        .send_anonymous()
        .await
        .refused(403, "AccessDenied");
    let forged = front
        .ask("GET", "/buc/secret")
        .unsigned("x-amz-meta-a", "b")
        .send()
        .await;
    forged.refused(403, "AccessDenied");
    // A URL to put one object must not copy others.
    front
        .ask("PUT", "/buc/open")
        .body("x")
        .send_presigned()
        .await
        .expect(200);
    let abuse = front
        .ask("PUT", "/buc/open")
        .unsigned("x-amz-copy-source", "/buc/secret");
    abuse.send_presigned().await.refused(403, "AccessDenied");
    assert_eq!(front.read("open").await.body, "x");
    let v2 = front
        .ask("GET", "/buc/open")
        .unsigned("authorization", "AWS AKID:c2ln");
    v2.send_anonymous().await.refused(400, "InvalidRequest");
    let mut stranger = Front::new().await;
    stranger.service = front.service.clone();
    stranger
        .ask("GET", "/buc/open")
        .send()
        .await
        .refused(403, "InvalidAccessKeyId");
    stranger.key.id = front.key.id.clone();
    stranger
        .ask("GET", "/buc/open")
        .send()
        .await
        .refused(403, "SignatureDoesNotMatch");
    front.close().await;
}

#[tokio::test]
async fn signatures_that_are_refused_stand_in_the_audit_log() {
    let mut front = Front::with_bucket().await;
    front.service = front.service.for_peer("192.0.2.7".parse().unwrap());
    front.put("k", "x").await;
    front.read("no such").await.refused(404, "NoSuchKey");
    front
        .ask("GET", "/buc/k")
        .send_anonymous()
        .await
        .expect(403);
    let uncovered = front.ask("GET", "/buc/k").unsigned("x-amz-meta-a", "b");
    uncovered.send().await.expect(403);
    let mut stranger = Front::new().await;
    stranger.service = front.service.clone();
    stranger.ask("GET", "/buc/k").send().await.expect(403);
    let invented = stranger.key.id.clone();
    stranger.key.id = front.key.id.clone();
    stranger.ask("GET", "/buc/k").send().await.expect(403);
    stranger.ask("HEAD", "/buc/k").send().await.expect(403);
    stranger
        .ask("GET", "/buc/k")
        .send_presigned()
        .await
        .expect(403);

    // They are noted within a second.
    tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
    let auditor = Actor::Local { uid: 0 };
    let items = front.vault.audit_records(&auditor, AuditQuery::default());
    let records = items.await.unwrap().filter_map(|item| async move {
        match item {
            AuditItem::Record(record) => Some(record.event),
            _ => None,
        }
    });
    let failed = records.filter_map(|event| async move {
        let detail = |name: &str| event.details.get(name).cloned().unwrap_or_default();
        let told = (event.actor.to_string(), detail("reason"), detail("claimed"));
        (event.act == "server.sign-in" && event.outcome.as_str() == "denied").then(|| {
            assert_eq!(detail("from"), "192.0.2.7");
            told
        })
    });
    let failed: Vec<_> = failed.collect().await;
    let told = |actor: &str, reason: &str, claimed: &str| {
        [actor, reason, claimed].map(str::to_owned).into()
    };
    let signer = front.vault.subject(&front.key.id).unwrap();
    let signer = signer.id().to_string();
    let expected: [(String, String, String); 4] = [
        told("unknown", "unsigned", ""),
        told(&signer, "expired or incomplete signature", ""),
        told("unknown", "no such access key", &invented),
        // Again and again, so it is told once, and the rest within a minute as a count.
        told(&signer, "wrong signature", ""),
    ];
    assert_eq!(failed, expected);
    front.close().await;
}

#[tokio::test]
async fn headers_in_a_presigned_query_count() {
    let front = Front::with_bucket().await;
    let put = |name: &str, value: &str| {
        front
            .ask("PUT", "/buc/k")
            .query(name, value)
            .body("x")
            .send_presigned()
    };
    put("x-amz-meta-a", "1").await.expect(200);
    assert_eq!(front.read("k").await.header("x-amz-meta-a"), "1");
    put("x-amz-acl", "public-read")
        .await
        .refused(400, "AccessControlListNotSupported");
    // Tools that presign form it over an empty body: it counts as a header only.
    put("x-amz-checksum-crc32", "AAAAAA==").await.expect(200);
    front.close().await;
}

#[tokio::test]
async fn what_is_missing_is_said_and_nothing_done_instead() {
    let front = Front::with_bucket().await;
    for (query, code) in [
        ("policy", "NoSuchBucketPolicy"),
        ("lifecycle", "NoSuchLifecycleConfiguration"),
        ("object-lock", "ObjectLockConfigurationNotFoundError"),
    ] {
        let answer = front.ask("GET", "/buc").query(query, "").send().await;
        answer.refused(404, code);
    }
    for (method, path, query) in [
        ("DELETE", "/buc", "acl"),
        ("DELETE", "/buc", "location"),
        ("DELETE", "/buc", "unheard-of"),
    ] {
        let answer = front.ask(method, path).query(query, "").send().await;
        answer.refused(501, "NotImplemented");
    }
    for (name, value, code) in [
        ("x-amz-acl", "public-read", "AccessControlListNotSupported"),
        ("x-amz-object-lock-mode", "GOVERNANCE", "InvalidArgument"),
        ("x-amz-grant-read", "id=1", "AccessControlListNotSupported"),
        ("x-amz-storage-class", "GLACIER", "InvalidStorageClass"),
        ("x-amz-security-token", "t", "InvalidToken"),
        (
            "x-amz-expected-bucket-owner",
            "123456789012",
            "AccessDenied",
        ),
    ] {
        let answer = front
            .ask("PUT", "/buc/k")
            .header(name, value)
            .body("x")
            .send()
            .await;
        let status = answer.status;
        answer.refused(status, code);
    }
    front.read("k").await.refused(404, "NoSuchKey");
    front.ask("HEAD", "/buc").send().await.expect(200);
    let versioning = front
        .ask("GET", "/buc")
        .query("versioning", "")
        .send()
        .await
        .expect(200);
    assert!(
        !versioning.text().contains("Status"),
        "{}",
        versioning.text()
    );
    front.close().await;
}

#[tokio::test]
async fn buckets_have_levels_where_s3_has_regions() {
    let front = Front::with_bucket().await;
    let make = |name: &str, constraint: &str| {
        let body = format!(
            "<CreateBucketConfiguration><LocationConstraint>{constraint}</LocationConstraint>\
             </CreateBucketConfiguration>"
        );
        front.ask("PUT", &format!("/{name}")).body(body).send()
    };
    make("region", "eu-west-1").await.expect(200);
    make("level", "default").await.expect(200);
    // A level that is erased, or that one may not see, is not the default for looking a little
    // like a region.
    for unknown in ["unknown", "eu-secret-1"] {
        make("other", unknown)
            .await
            .refused(400, "InvalidLocationConstraint");
    }
    make("buc", "default")
        .await
        .refused(409, "BucketAlreadyOwnedByYou");
    let location = front
        .ask("GET", "/region")
        .query("location", "")
        .send()
        .await
        .expect(200);
    assert_eq!(
        location.text().matches("default").count(),
        0,
        "{}",
        location.text()
    );
    let encryption = front
        .ask("GET", "/buc")
        .query("encryption", "")
        .send()
        .await
        .expect(200);
    assert_eq!(encryption.element("SSEAlgorithm"), "aws:kms");
    assert_eq!(encryption.element("KMSMasterKeyID"), "default");
    let names = front
        .ask("GET", "/")
        .send()
        .await
        .expect(200)
        .elements("Name");
    assert_eq!(names, ["buc", "level", "region"]);
    front
        .ask("PUT", "/No_Name")
        .send()
        .await
        .refused(400, "InvalidBucketName");
    front.put("k", "").await;
    front
        .ask("DELETE", "/buc")
        .send()
        .await
        .refused(409, "BucketNotEmpty");
    front.close().await;
}

#[tokio::test]
async fn a_host_may_name_the_bucket() {
    let front = Front::with_bucket().await;
    front.put("k", "x").await;
    for (host, path) in [
        ("buc.s3.test", "/k"),
        ("BUC.s3.test:9000", "/k"),
        ("s3.test", "/buc/k"),
        ("elsewhere.test", "/buc/k"),
    ] {
        let answer = front
            .ask("GET", path)
            .header("host", host)
            .send()
            .await
            .expect(200);
        assert_eq!(answer.body, "x", "{host}");
    }
    front.close().await;
}

#[tokio::test]
async fn a_client_that_waits_with_its_body_is_answered_without_it() {
    let front = Front::with_bucket().await;
    let polled = Arc::new(AtomicBool::new(false));
    let noted = polled.clone();
    let body = stream::poll_fn(move |_| {
        noted.store(true, Ordering::Relaxed);
        std::task::Poll::Ready(None::<Result<Frame<Bytes>, std::convert::Infallible>>)
    });
    let ask = front
        .ask("PUT", "/none/k")
        .unsigned("expect", "100-continue")
        .body("large");
    let answer = ask
        .payload("UNSIGNED-PAYLOAD")
        .send_body(StreamBody::new(body))
        .await;
    let answer = answer.refused(404, "NoSuchBucket");
    assert_eq!(answer.header("connection"), "close");
    assert!(!polled.load(Ordering::Relaxed), "the body was asked for");
    front.close().await;
}
