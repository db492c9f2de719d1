//! Objects, as a client puts and gets them.

use crate::front::{Front, assert_no_md5};

/// Names that file systems, XML and addresses would stumble over.
const ODD_NAMES: [&str; 18] = [
    "/leading",
    "//",
    "a//b",
    "../up",
    "./here",
    "%2F",
    "%00%zz",
    "a+b c&d=e?f#g",
    "ä/日本/\u{1F600}",
    "\u{1}\u{1f}",
    "tab\t",
    "line\nfeed",
    "carriage\rreturn",
    "<&>\"'",
    " spaces ",
    "\u{7f}\u{2028}",
    "back\\slash",
    "trailing/",
];

#[tokio::test]
async fn objects_of_any_name_and_size_come_back() {
    let front = Front::with_bucket().await;
    for (number, name) in ODD_NAMES.into_iter().enumerate() {
        let body = vec![number as u8; number * 5_000];
        front.put(name, body.clone()).await;
        let answer = front.read(name).await.expect(200);
        assert_eq!(answer.body, body, "{name:?}");
        assert_eq!(answer.header("content-length"), body.len().to_string());
    }
    let long = "ä".repeat(512);
    front.put(&long, "x").await;
    front
        .read(&format!("{long}x"))
        .await
        .refused(400, "KeyTooLongError");
    front
        .ask("DELETE", &format!("/buc/{long}"))
        .send()
        .await
        .expect(204);
    front.read(&long).await.refused(404, "NoSuchKey");
    front.close().await;
}

#[tokio::test]
async fn answers_carry_ids_and_the_encryption_that_was_asked_for() {
    let front = Front::with_bucket().await;
    let asked = front
        .ask("PUT", "/buc/k")
        .header("x-amz-server-side-encryption", "AES256");
    let put = asked.body("x").send().await.expect(200);
    let head = front.ask("HEAD", "/buc/k").send().await.expect(200);
    let got = front.read("k").await;
    for answer in [&put, &head, &got] {
        assert_eq!(answer.header("x-amz-server-side-encryption"), "AES256");
        assert_eq!(answer.header("x-amz-request-id").len(), 16);
        assert!(!answer.header("x-amz-id-2").is_empty());
        assert_eq!(answer.header("server"), "coffer");
    }
    assert_no_md5(put.header("etag"));
    let other = [
        ("x-amz-server-side-encryption", "aws:kms"),
        ("x-amz-server-side-encryption-aws-kms-key-id", "other"),
    ];
    let ask = other
        .iter()
        .fold(front.ask("PUT", "/buc/k"), |ask, (name, value)| {
            ask.header(name, value)
        });
    ask.send().await.refused(400, "InvalidArgument");
    let customer = "x-amz-server-side-encryption-customer-algorithm";
    let refused = front
        .ask("GET", "/buc/k")
        .header(customer, "AES256")
        .send()
        .await;
    let refused = refused.refused(400, "InvalidArgument");
    assert!(refused.text().contains("secret key"), "{}", refused.text());
    front.close().await;
}

#[tokio::test]
async fn descriptions_come_back_and_can_be_overridden() {
    let front = Front::with_bucket().await;
    let sent = [
        ("cache-control", "no-cache"),
        ("content-disposition", "attachment"),
        ("content-language", "de"),
        ("content-type", "text/x"),
        ("expires", "-1"),
        ("x-amz-meta-plain", "text"),
        ("x-amz-meta-umlaut", "=?UTF-8?B?w6Q=?="),
        ("x-amz-tagging", "a=1&b=2"),
    ];
    let ask = sent
        .iter()
        .fold(front.ask("PUT", "/buc/k"), |ask, (name, value)| {
            ask.header(name, value)
        });
    ask.body("x").send().await.expect(200);
    for method in ["GET", "HEAD"] {
        let answer = front.ask(method, "/buc/k").send().await.expect(200);
        for (name, value) in &sent[..7] {
            assert_eq!(answer.header(name), *value, "{method}");
        }
        assert_eq!(answer.header("x-amz-tagging-count"), "2", "{method}");
        let other = front
            .ask(method, "/buc/k")
            .query("response-content-type", "a/b");
        assert_eq!(other.send().await.header("content-type"), "a/b", "{method}");
    }
    let large = "v".repeat(2_048);
    let ask = front.ask("PUT", "/buc/k").header("x-amz-meta-a", &large);
    ask.send().await.refused(400, "MetadataTooLarge");
    front.close().await;
}

/// Values as they are sent, and as they come back.
const ODD_METADATA: [(&str, &str); 7] = [
    ("=?=", "=?="),
    ("=?UTF-8?B?", "=?UTF-8?B?"),
    ("=?KOI8-R?B?w6Q=?=", "=?KOI8-R?B?w6Q=?="),
    ("plain =? text ?=", "plain =? text ?="),
    // "ä and ö", "für"
    (
        "=?UTF-8?B?w6Q=?= and =?UTF-8?B?w7Y=?=",
        "=?UTF-8?B?w6QgYW5kIMO2?=",
    ),
    ("=?ISO-8859-1?Q?f=FCr?=", "=?UTF-8?B?ZsO8cg==?="),
    ("gzip; =?=; =?UTF-8?Q?br?=", "gzip; =?=; br"),
];

#[tokio::test]
async fn user_metadata_of_any_words_comes_back() {
    let front = Front::with_bucket().await;
    for (sent, told) in ODD_METADATA {
        let put = front.ask("PUT", "/buc/header").header("x-amz-meta-a", sent);
        put.header("x-amz-meta-b", "plain")
            .body("x")
            .send()
            .await
            .expect(200);
        let put = front.ask("PUT", "/buc/query").query("x-amz-meta-a", sent);
        put.query("x-amz-meta-b", "plain")
            .body("x")
            .send_presigned()
            .await
            .expect(200);
        let copy = front
            .ask("PUT", "/buc/copy")
            .header("x-amz-copy-source", "/buc/query")
            .header("x-amz-metadata-directive", "REPLACE")
            .header("x-amz-meta-a", sent)
            .header("x-amz-meta-b", "plain");
        copy.send().await.expect(200);
        for name in ["header", "query", "copy"] {
            let got = front.read(name).await.expect(200);
            assert_eq!(got.header("x-amz-meta-a"), told, "{name}");
            assert_eq!(got.header("x-amz-meta-b"), "plain", "{name}");
        }
    }
    front.close().await;
}

#[tokio::test]
async fn ranges_are_those_of_http_and_odd_ones_give_all() {
    let front = Front::with_bucket().await;
    let body: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    front.put("k", body.clone()).await;
    let range = |text: &'static str| front.ask("GET", "/buc/k").header("range", text).send();
    let part = range("bytes=16380-16389").await.expect(206);
    assert_eq!(part.body, body[16_380..16_390]);
    assert_eq!(part.header("content-range"), "bytes 16380-16389/100000");
    assert_eq!(range("bytes=-7").await.expect(206).body, body[99_993..]);
    let beyond = range("bytes=100000-").await.refused(416, "InvalidRange");
    assert_eq!(beyond.header("content-range"), "bytes */100000");
    for odd in ["bytes=0-1,4-5", "bytes=9-1", "lines=1-2"] {
        assert_eq!(range(odd).await.expect(200).body, body, "{odd}");
    }
    let head = front
        .ask("HEAD", "/buc/k")
        .header("range", "bytes=0-9")
        .send()
        .await
        .expect(206);
    assert_eq!(head.header("content-length"), "10");
    let resumed = front
        .ask("GET", "/buc/k")
        .header("range", "bytes=5-")
        .header("if-range", "\"x\"");
    assert_eq!(resumed.send().await.expect(200).body, body);
    let head = front.ask("HEAD", "/buc/k").send().await.expect(200);
    for unchanged in ["etag", "last-modified"] {
        let resumed = front.ask("GET", "/buc/k").header("range", "bytes=99995-");
        let resumed = resumed.header("if-range", head.header(unchanged)).send();
        let resumed = resumed.await.expect(206);
        assert_eq!(resumed.body, body[99_995..], "{unchanged}");
    }
    front.close().await;
}

#[tokio::test]
async fn conditions_hold_for_reads_and_writes() {
    let front = Front::with_bucket().await;
    let etag = front.put("k", "x").await.header("etag").to_owned();
    let read =
        |name: &'static str, value: &str| front.ask("GET", "/buc/k").header(name, value).send();
    read("if-match", &etag).await.expect(200);
    read("if-match", etag.trim_matches('"')).await.expect(200);
    read("if-match", "\"other\"")
        .await
        .refused(412, "PreconditionFailed");
    let unchanged = read("if-none-match", &format!("\"a\", W/{etag}"))
        .await
        .expect(304);
    assert_eq!(
        (unchanged.header("etag"), unchanged.body.len()),
        (&*etag, 0)
    );
    read("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT")
        .await
        .expect(200);
    read("if-unmodified-since", "Sun, 06 Nov 1994 08:49:37 GMT")
        .await
        .expect(412);

    let write = |name: &'static str, value: &str, key: &str| {
        front
            .ask("PUT", &format!("/buc/{key}"))
            .header(name, value)
            .body("y")
            .send()
    };
    write("if-none-match", "*", "k")
        .await
        .refused(412, "PreconditionFailed");
    write("if-none-match", "*", "new").await.expect(200);
    write("if-match", "\"other\"", "k")
        .await
        .refused(412, "PreconditionFailed");
    write("if-match", "\"other\"", "missing")
        .await
        .refused(404, "NoSuchKey");
    write("if-none-match", "\"other\"", "k")
        .await
        .refused(501, "NotImplemented");
    let copy = |name: &'static str, value: &str, key: &str| {
        let ask = front.ask("PUT", &format!("/buc/{key}"));
        ask.header("x-amz-copy-source", "/buc/new")
            .header(name, value)
            .send()
    };
    copy("if-match", "\"other\"", "k")
        .await
        .refused(412, "PreconditionFailed");
    copy("if-match", "*", "missing")
        .await
        .refused(404, "NoSuchKey");
    copy("if-none-match", "*", "k")
        .await
        .refused(412, "PreconditionFailed");
    write("if-match", &etag, "k").await.expect(200);
    assert_eq!(front.read("k").await.body, "y");
    front.close().await;
}

#[tokio::test]
async fn copies_keep_or_replace_descriptions() {
    let front = Front::with_bucket().await;
    let put = front
        .ask("PUT", "/buc/from ä+")
        .header("x-amz-meta-a", "1")
        .header("content-type", "x/y");
    put.header("x-amz-tagging", "t=1")
        .body("body")
        .send()
        .await
        .expect(200);
    let source = ("x-amz-copy-source", "/buc/from%20%C3%A4%2B");
    let copy = front
        .ask("PUT", "/buc/to")
        .header(source.0, source.1)
        .send()
        .await
        .expect(200);
    assert!(copy.text().contains("CopyObjectResult"));
    assert_no_md5(&copy.element("ETag"));
    let kept = front.read("to").await;
    assert_eq!(
        (kept.header("x-amz-meta-a"), kept.header("content-type")),
        ("1", "x/y")
    );
    assert_eq!(
        (kept.header("x-amz-tagging-count"), &kept.body[..]),
        ("1", &b"body"[..])
    );
    let replace = front.ask("PUT", "/buc/to").header(source.0, source.1);
    let replace = replace
        .header("x-amz-metadata-directive", "REPLACE")
        .header("x-amz-meta-b", "2");
    replace.send().await.expect(200);
    let replaced = front.read("to").await;
    assert_eq!(
        (
            replaced.header("x-amz-meta-a"),
            replaced.header("x-amz-meta-b")
        ),
        ("", "2")
    );
    let same = front
        .ask("PUT", "/buc/to")
        .header(source.0, "/buc/to")
        .send()
        .await;
    same.refused(400, "InvalidRequest");
    front.close().await;
}
