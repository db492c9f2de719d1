//! Answers that are lost: what is there is looked at, and counts where it is what was sent.

use http::HeaderName;

use super::*;
use crate::s3::checksum::{Algorithm, checksum};
use crate::s3::{Awaited, DonePart, Since, Stored, etag_of_parts};

const BODY: &[u8] = b"what is sent";
const NOW: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

/// The head of an object of these bytes that was stored in this second, with these lines changed,
/// and without those that are empty.
fn found(changed: &[(&str, &str)]) -> String {
    let sum = checksum(Algorithm::Crc64Nvme, BODY).text();
    let length = BODY.len().to_string();
    let mut lines = vec![
        ("content-length", length.as_str()),
        ("content-type", "text/plain"),
        ("date", NOW),
        ("last-modified", NOW),
        ("x-amz-checksum-crc64nvme", sum.as_str()),
        ("x-amz-meta-of", "now"),
        ("x-amz-meta-title", "=?UTF-8?B?ZsO8cg==?="),
        ("x-amz-version-id", "v"),
        ("etag", "\"e\""),
    ];
    for &(name, value) in changed {
        lines.retain(|(of, _)| *of != name);
        lines.push((name, value));
    }
    lines.retain(|(_, value)| !value.is_empty());
    let lines: String = { lines.iter() }
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n")
}

fn described() -> Vec<(String, String)> {
    let pairs = [
        ("content-type", "text/plain"),
        ("x-amz-meta-of", " now"),
        ("x-amz-meta-title", "für"),
    ];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Stores it with a server that answers so; what it says, what was asked, and the bytes told.
async fn put(answers: &[&str]) -> (Result<Stored, S3Error>, Vec<String>, i64) {
    let (client, serving) = server(answers);
    let (net, sent) = counting();
    let name = ObjectName::new("b", "k");
    let stored = client
        .put_object(&name, &described(), Bytes::from_static(BODY), Some(sent))
        .await;
    let asked = serving.join().unwrap().into_iter();
    let methods = asked.map(|(head, _)| head.split(' ').next().unwrap().to_owned());
    (stored, methods.collect(), net.load(Relaxed))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_is_not_stored_again() {
    let gone = answer("502 x", "");
    let md5 = format!("\"{}\"", hex::encode(checksum(Algorithm::Md5, BODY).value));
    // A server that tells no checksums has ETags that are MD5s.
    let unsummed = found(&[("x-amz-checksum-crc64nvme", ""), ("etag", md5.as_str())]);
    let head = found(&[]);
    let cases: [[&str; 2]; 3] = [["", &head], [&gone, &head], ["", &unsummed]];
    for answers in cases {
        let (stored, asked, told) = put(&answers).await;
        assert_eq!(stored.unwrap().version_id.as_deref(), Some("v"));
        assert_eq!(asked, ["PUT", "HEAD"]);
        assert_eq!(told, BODY.len() as i64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_before_does_not_count() {
    let other = checksum(Algorithm::Crc64Nvme, b"another").text();
    let changes: [&[(&str, &str)]; 10] = [
        &[("last-modified", "Tue, 14 Nov 2023 22:12:20 GMT")],
        &[("x-amz-meta-of", "before")],
        &[("x-amz-meta-more", "than was sent")],
        &[("content-type", "text/html")],
        &[("content-type", "")],
        &[("x-amz-checksum-crc64nvme", other.as_str())],
        &[("x-amz-checksum-crc64nvme", "")],
        &[("content-length", "11")],
        &[("date", "")],
        &[("x-coffer-stored", "damaged")],
    ];
    for change in changes {
        let anew = answer("200 OK", "");
        let (stored, asked, told) = put(&["", &found(change), &anew]).await;
        assert_eq!(stored.unwrap().etag, "\"e\"", "{change:?}");
        assert_eq!(asked, ["PUT", "HEAD", "PUT"], "{change:?}");
        assert_eq!(told, BODY.len() as i64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_stored_again() {
    let (denied, anew) = (answer("403 x", ""), answer("200 OK", ""));
    let (stored, asked, _) = put(&["", &denied, &anew]).await;
    assert_eq!(stored.unwrap().etag, "\"e\"");
    assert_eq!(asked, ["PUT", "HEAD", "PUT"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_says_itself_is_no_lost_answer() {
    let doubt = "<Error><Code>InternalError</Code><Message>it may have happened</Message></Error>";
    for status in ["500 x", "503 x"] {
        let (doubt, anew) = (answer(status, doubt), answer("200 OK", ""));
        // Nor is one that is lost after it, for what is there may be what was called doubtful.
        let cases: [&[&str]; 2] = [&[&doubt, &anew], &[&doubt, "", &anew]];
        for answers in cases {
            let (stored, asked, _) = put(answers).await;
            assert_eq!(stored.unwrap().etag, "\"e\"");
            assert_eq!(asked, vec!["PUT"; answers.len()]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_is_told_of_doubt() {
    let (doubt, slow, anew) = (
        answer("500 x", ""),
        answer("503 x", SLOW),
        answer("200 OK", ""),
    );
    let cases: [(&[&str], i64); 3] = [
        (&[&doubt, &doubt, &anew], 2),
        (&[&slow, &anew], 0),
        (&[&anew], 0),
    ];
    for (answers, count) in cases {
        let (client, serving) = server(answers);
        let told = AtomicI64::new(0);
        let doubted = || {
            told.fetch_add(1, Relaxed);
        };
        let name = ObjectName::new("b", "k");
        let body = Bytes::from_static(BODY);
        let put = client.put_object_told(&name, &[], body, (None, Some(&doubted)));
        assert_eq!(put.await.unwrap().etag, "\"e\"");
        assert_eq!(told.load(Relaxed), count);
        serving.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_date_of_a_clock_that_was_set_back_tells_nothing() {
    let later = found(&[("last-modified", "Tue, 14 Nov 2023 23:13:20 GMT")]);
    let anew = answer("200 OK", "");
    let (_, asked, _) = put(&["", &later, &anew]).await;
    assert_eq!(asked, ["PUT", "HEAD", "PUT"]);
}

/// Deletes it, or a version of it, with a server that answers so; what was asked.
async fn deleted(answers: &[&str], version_id: Option<&str>) -> (bool, Vec<String>) {
    let (client, serving) = server(answers);
    let name = ObjectName {
        version_id: version_id.map(str::to_owned),
        ..ObjectName::new("b", "k")
    };
    let is_done = client.delete_object(&name).await.is_ok();
    let asked = serving.join().unwrap().into_iter();
    let methods = asked.map(|(head, _)| head.split(' ').next().unwrap().to_owned());
    (is_done, methods.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_is_not_deleted_again() {
    let (gone, done, head) = (answer("404 x", ""), answer("204 x", ""), found(&[]));
    let unreached = answer("502 x", "");
    for lost in ["", unreached.as_str()] {
        let asked = deleted(&[lost, &gone], None).await;
        assert_eq!(asked, (true, vec!["DELETE".to_owned(), "HEAD".to_owned()]));
    }
    // It is still there, or may not be looked at.
    for looked in [head, answer("403 x", "")] {
        let (is_done, asked) = deleted(&["", &looked, &done], None).await;
        assert!(is_done);
        assert_eq!(asked, ["DELETE", "HEAD", "DELETE"]);
    }
    // A version is deleted once, however often that is asked for.
    let (is_done, asked) = deleted(&["", &done], Some("v")).await;
    assert!(is_done);
    assert_eq!(asked, ["DELETE", "DELETE"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_about_many_is_told() {
    let slow = answer("503 x", SLOW);
    let (client, serving) = server(&[&slow, ""]);
    let names = [ObjectName::new("b", "k")];
    let error = client.delete_objects("b", &names).await.unwrap_err();
    assert!(error.is_without_answer(), "{error}");
    assert_eq!(serving.join().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_many_is_about_those_that_were_named() {
    let of_version = ObjectName {
        version_id: Some("v".to_owned()),
        ..ObjectName::new("b", "two")
    };
    let names = [ObjectName::new("b", "one"), of_version];
    let failed = |what: &str| {
        let error = format!("<Error>{what}<Code>AccessDenied</Code></Error>");
        format!("<DeleteResult>{error}</DeleteResult>")
    };
    for (said, is_kept) in [
        ("<DeleteResult/>".to_owned(), [false, false]),
        (failed("<Key>one</Key>"), [true, false]),
        // The version of a delete marker that could not be put.
        (
            failed("<Key>one</Key><VersionId>w</VersionId>"),
            [true, false],
        ),
        (
            failed("<Key>two</Key><VersionId>v</VersionId>"),
            [false, true],
        ),
        (failed("<Key>two</Key>"), [false, true]),
    ] {
        let (client, serving) = server(&[&answer("200 OK", &said)]);
        let deleted = client.delete_objects("b", &names).await.unwrap();
        let kept: Vec<bool> = { deleted.iter() }
            .map(|deleted| deleted.failure.is_some())
            .collect();
        assert_eq!(kept, is_kept, "{said}");
        serving.join().unwrap();
    }
    for said in [
        "<Html/>".to_owned(),
        failed("<Key>three</Key>"),
        failed("<Key>two</Key><VersionId>w</VersionId>"),
        failed(""),
    ] {
        let (client, serving) = server(&[&answer("200 OK", &said)]);
        let error = client.delete_objects("b", &names).await.unwrap_err();
        assert!(matches!(error, S3Error::Unreadable { .. }), "{error}");
        serving.join().unwrap();
    }
}

fn parts() -> Vec<DonePart> {
    let part = |number, bytes: &[u8]| DonePart {
        number,
        etag: format!("\"{}\"", hex::encode(checksum(Algorithm::Md5, bytes).value)),
        checksum: None,
    };
    vec![part(1, b"what is "), part(2, b"sent")]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_was_completed_is_found() {
    let parts = parts();
    let etag = etag_of_parts(&parts).unwrap();
    assert!(etag.ends_with("-2"), "{etag}");
    let gone = answer("404 x", "<Error><Code>NoSuchUpload</Code></Error>");
    let unsummed = found(&[("x-amz-checksum-crc64nvme", ""), ("etag", etag.as_str())]);
    let nothing = answer("404 x", "");
    // Cut in the middle, as an answer that comes slowly is.
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n<CompleteMultipartUploadResult>";
    let sum = checksum(Algorithm::Crc64Nvme, BODY);
    let name = ObjectName::new("b", "k");
    let head = found(&[]);
    let cases: [(&[&str], bool); 4] = [
        (&["", &head], true),
        (&[cut, &unsummed], true),
        (&["", &nothing, &gone, &head], true),
        (&[&gone, &nothing], false),
    ];
    for (answers, is_found) in cases {
        let (client, serving) = server(answers);
        let awaited = Awaited {
            name: &name,
            headers: &described(),
            bytes: BODY.len() as u64,
            checksum: Some(&sum),
            etag: &|| etag_of_parts(&parts),
            began: Since::now(),
            sent: None,
            doubted: None,
        };
        let stored = client.complete_upload(&awaited, "u", &parts, None).await;
        assert_eq!(serving.join().unwrap().len(), answers.len());
        match stored {
            Ok(stored) => assert_eq!((stored.version_id.as_deref(), is_found), (Some("v"), true)),
            Err(error) => assert_eq!((error.code(), is_found), (Some("NoSuchUpload"), false)),
        }
    }
}

fn head_of(answer: &str) -> ObjectHead {
    let lines = { answer.lines() }.filter_map(|line| line.split_once(": "));
    let headers = lines.map(|(name, value)| {
        let name = HeaderName::try_from(name).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    ObjectHead::of_headers(HeaderMap::from_iter(headers)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_described_otherwise_is_not_the_copy() {
    let other = found(&[("content-type", "text/html")]);
    let done = answer(
        "200 OK",
        "<CopyObjectResult><ETag>c</ETag></CopyObjectResult>",
    );
    let (client, serving) = server(&["", &other, &done]);
    let (from, to) = (ObjectName::new("b", "from"), ObjectName::new("b", "to"));
    let head = head_of(&found(&[]));
    let stored = client.copy_object((&from, &head), &to, &[]).await.unwrap();
    assert_eq!(stored.etag, "c");
    assert_eq!(serving.join().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_made_is_found() {
    let redirect = ("x-amz-website-redirect-location", "/");
    let source = found(&[("cache-control", "no-cache"), redirect]);
    // Such a copy leaves the redirection behind.
    let copied = found(&[("cache-control", "no-cache")]);
    let (client, serving) = server(&["", &copied]);
    let head = head_of(&source);
    let (from, to) = (ObjectName::new("b", "from"), ObjectName::new("b", "to"));
    let stored = client.copy_object((&from, &head), &to, &[]).await.unwrap();
    assert_eq!(stored.version_id.as_deref(), Some("v"));
    let asked = serving.join().unwrap();
    assert!(
        asked[1].0.starts_with("HEAD /b/to HTTP/1.1\r\n"),
        "{}",
        asked[1].0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_behind_its_head_is_counted() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n<CompleteMultipartUploadResult>";
    let ended = "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>";
    let done = answer("200 OK", ended);
    let (client, serving) = server(&[cut, &done]);
    let failures = Arc::new(AtomicI64::new(0));
    let count = Arc::clone(&failures);
    // What goes out in vain is told as bytes that are taken back.
    let sent: Sent = Arc::new(move |bytes: i64| {
        if bytes < 0 {
            count.fetch_add(1, Relaxed);
        }
    });
    let name = ObjectName::new("b", "k");
    let named = parts();
    let completing = client.complete_upload_if(&name, "u", &named, None, (&[], Some(sent)));
    assert_eq!(completing.await.unwrap().etag, "e");
    assert_eq!(serving.join().unwrap().len(), 2);
    assert_eq!(failures.load(Relaxed), 1);
}
