//! Listings, page by page.

use crate::front::Front;

#[tokio::test]
async fn pages_of_every_size_and_form_hold_all() {
    let front = Front::with_bucket().await;
    let mut names: Vec<String> = (0..4)
        .flat_map(|folder| (0..3).map(move |file| format!("d{folder}/f{file}")))
        .chain(["a".to_owned(), "z".to_owned()])
        .collect();
    names.sort();
    for name in &names {
        front.put(name, "x").await;
    }
    // Form, its parameters, where to go on, and the parameter for it.
    let forms = [
        (
            Some(("list-type", "2")),
            "NextContinuationToken",
            "continuation-token",
        ),
        (None, "NextMarker", "marker"),
        (Some(("versions", "")), "NextKeyMarker", "key-marker"),
    ];
    for (form, next, parameter) in forms {
        for (delimiter, size) in [("", "1"), ("", "5"), ("/", "1"), ("/", "4"), ("/", "1000")] {
            let (mut keys, mut prefixes, mut after) = (Vec::new(), Vec::new(), String::new());
            loop {
                let mut ask = front.ask("GET", "/buc").query("max-keys", size);
                if let Some((name, value)) = form {
                    ask = ask.query(name, value);
                }
                if !after.is_empty() {
                    ask = ask.query(parameter, &after);
                }
                let page = ask.query("delimiter", delimiter).send().await.expect(200);
                keys.extend(page.elements("Key"));
                let folded = page.elements("CommonPrefixes");
                prefixes.extend(
                    folded
                        .iter()
                        .map(|text| text.replace("<Prefix>", "").replace("</Prefix>", "")),
                );
                after = page.element(next);
                if page.element("IsTruncated") == "false" {
                    break;
                }
                assert!(!after.is_empty(), "{}", page.text());
            }
            match delimiter {
                "" => assert_eq!(keys, names, "{next} {size}"),
                _ => {
                    assert_eq!(keys, ["a", "z"], "{next} {size}");
                    assert_eq!(prefixes, ["d0/", "d1/", "d2/", "d3/"], "{next} {size}");
                }
            }
        }
    }
    front.close().await;
}

#[tokio::test]
async fn odd_names_survive_xml_and_url_encoding() {
    let front = Front::with_bucket().await;
    for name in ["cr\r", "<&>", "\u{1}", "ä +"] {
        front.put(name, "").await;
    }
    let plain = front
        .ask("GET", "/buc")
        .query("list-type", "2")
        .send()
        .await
        .expect(200);
    assert_eq!(
        plain.elements("Key"),
        ["&#x1;", "&lt;&amp;&gt;", "cr&#xD;", "ä +"]
    );
    let encoded = front
        .ask("GET", "/buc")
        .query("list-type", "2")
        .query("encoding-type", "url");
    let encoded = encoded.send().await.expect(200);
    assert_eq!(
        encoded.elements("Key"),
        ["%01", "%3C%26%3E", "cr%0D", "%C3%A4%20%2B"]
    );
    assert_eq!(encoded.element("EncodingType"), "url");
    front.close().await;
}

#[tokio::test]
async fn url_encoding_reaches_all_that_holds_names() {
    let front = Front::with_bucket().await;
    for name in ["a b/ä+1", "a b/ä+2", "a b/ö+1"] {
        front.put(name, "").await;
        let begin = front
            .ask("POST", &format!("/buc/{name}"))
            .query("uploads", "");
        begin.send().await.expect(200);
    }
    let page = |more: &'static [(&str, &str)]| {
        let ask = front.ask("GET", "/buc").query("encoding-type", "url");
        let ask = ask.query("prefix", "a b/").query("delimiter", "+");
        let ask = more
            .iter()
            .fold(ask, |ask, (name, value)| ask.query(name, value));
        async move {
            let page = ask.send().await.expect(200);
            assert_eq!(page.element("EncodingType"), "url");
            assert!(page.text().contains("<Prefix>a%20b/</Prefix>"));
            assert_eq!(page.element("Delimiter"), "%2B");
            let folded = page.element("CommonPrefixes");
            assert_eq!(folded, "<Prefix>a%20b/%C3%A4%2B</Prefix>");
            page
        }
    };
    let first = page(&[("max-keys", "1")]).await;
    assert_eq!(first.element("NextMarker"), "a%20b/%C3%A4%2B");
    let marked = page(&[("marker", "a ")]).await;
    assert_eq!(marked.element("Marker"), "a%20");
    let second = page(&[("list-type", "2"), ("start-after", "a ")]).await;
    assert_eq!(second.element("StartAfter"), "a%20");
    let versions = page(&[("versions", ""), ("max-keys", "1"), ("key-marker", "a ")]).await;
    assert_eq!(versions.element("KeyMarker"), "a%20");
    assert_eq!(versions.element("NextKeyMarker"), "a%20b/%C3%A4%2B");
    let uploads = page(&[("uploads", ""), ("max-uploads", "1"), ("key-marker", "a ")]).await;
    assert_eq!(uploads.element("KeyMarker"), "a%20");
    assert_eq!(uploads.element("NextKeyMarker"), "a%20b/%C3%A4%2B");

    let all = front.ask("GET", "/buc").query("uploads", "");
    let all = all.query("encoding-type", "url").send().await.expect(200);
    let names = ["a%20b/%C3%A4%2B1", "a%20b/%C3%A4%2B2", "a%20b/%C3%B6%2B1"];
    assert_eq!(all.elements("Key"), names);
    front.close().await;
}

#[tokio::test]
async fn odd_parameters_are_refused() {
    let front = Front::with_bucket().await;
    for (name, value) in [
        ("max-keys", "-1"),
        ("max-keys", "many"),
        ("encoding-type", "gzip"),
        ("encoding-type", ""),
        ("continuation-token", "forged"),
    ] {
        let ask = front
            .ask("GET", "/buc")
            .query("list-type", "2")
            .query(name, value);
        ask.send().await.refused(400, "InvalidArgument");
    }
    front
        .ask("GET", "/none")
        .query("list-type", "2")
        .send()
        .await
        .refused(404, "NoSuchBucket");
    front.close().await;
}

#[tokio::test]
async fn many_are_deleted_at_once_and_the_request_is_compared_with_its_digest() {
    let front = Front::with_bucket().await;
    front.put("a", "x").await;
    front.put("b", "x").await;
    let body = "<Delete><Object><Key>a</Key></Object><Object><Key>never</Key></Object>\
                <Object><Key>b</Key><VersionId>7</VersionId></Object></Delete>";
    let delete = || front.ask("POST", "/buc").deletes(body);
    let wrong = delete()
        .header("content-md5", "kAFQmDzST7DWlj99KOF/cg==")
        .send()
        .await;
    wrong.refused(400, "BadDigest");
    let wrong = delete().payload(&"0".repeat(64)).send().await;
    wrong.refused(400, "XAmzContentSHA256Mismatch");
    let bare = front.ask("POST", "/buc").query("delete", "").body(body);
    let bare = bare.send().await.refused(400, "InvalidRequest");
    assert!(bare.element("Message").contains("Content-MD5"));
    front.read("a").await.expect(200);
    let done = delete().send().await.expect(200);
    assert_eq!(done.elements("Deleted").len(), 2, "{}", done.text());
    assert!(
        done.element("Error").contains("NoSuchVersion"),
        "{}",
        done.text()
    );
    front.read("a").await.expect(404);
    front.read("b").await.expect(200);
    front.close().await;
}
