//! Answers of what is no S3 service, such as a page that logs users in, and of odd services.

use http::Method;
use hyper::body::Bytes;

use super::{SLOW, answer, counting, server};
use crate::s3::listing::Paging;
use crate::s3::{Client, DonePart, ObjectName, S3Error, Wanted};

/// What a network says to all until one logs in.
fn page() -> String {
    let body = "<html><title>Log in</title></html>";
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The same to HEAD.
fn head_of_page() -> String {
    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 34\r\n\r\n".to_owned()
}

fn is_told<T>(answered: Result<T, S3Error>) {
    let told = answered.err().unwrap().to_string();
    assert!(told.contains("no login page or proxy"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_page_stores_nothing() {
    let (client, serving) = server(&[&page(), &head_of_page()]);
    let (net, sent) = counting();
    let name = ObjectName::new("b", "k");
    let stored = client.put_object(&name, &[], Bytes::from_static(b"12345"), Some(sent));
    is_told(stored.await);
    assert_eq!(net.load(std::sync::atomic::Ordering::Relaxed), 0);
    serving.join().unwrap();
    let (client, serving) = server(&[&page()]);
    let part = client.upload_part(&name, ("u", 1), &[], Bytes::from_static(b"1"), None);
    is_told(part.await);
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_an_etag_is_one_if_the_object_is_there() {
    let bare = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let md5_of_12345 = "827ccb0eea8a706c4c34a16891f84e7b";
    let date = "Tue, 14 Nov 2023 22:13:20 GMT";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\netag: \"{md5_of_12345}\"\r\n\
         date: {date}\r\nlast-modified: {date}\r\n\r\n"
    );
    let (client, serving) = server(&[bare, &head]);
    let name = ObjectName::new("b", "k");
    let stored = client.put_object(&name, &[], Bytes::from_static(b"12345"), None);
    assert!(stored.await.unwrap().etag.contains(md5_of_12345));
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_page_is_no_object() {
    let name = ObjectName::new("b", "k");
    let (client, serving) = server(&[&page()]);
    let wanted = Wanted {
        name: name.clone(),
        bytes: 34,
        etag: "e".to_owned(),
        weak: String::new(),
        modified: String::new(),
    };
    is_told(client.read_once(&wanted, 0..34, &[]).await);
    serving.join().unwrap();
    let dated = "HTTP/1.1 200 OK\r\ncontent-type: Text/HTML\r\ncontent-length: 34\r\n\
                 last-modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n";
    for head in [head_of_page().as_str(), dated] {
        let (client, serving) = server(&[head]);
        is_told(client.head_object(&name).await);
        serving.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_may_have_no_etag() {
    let date = "content-type: x/y\r\nlast-modified: Tue, 14 Nov 2023 22:13:20 GMT";
    for header in [date, "x-amz-request-id: 1"] {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n{header}\r\n\r\n");
        let (client, serving) = server(&[&head]);
        let found = client.head_object(&ObjectName::new("b", "k")).await;
        assert_eq!(found.unwrap().bytes, 5);
        serving.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_ends_by_its_result_alone() {
    let name = ObjectName::new("b", "k");
    let part = DonePart {
        number: 1,
        etag: "e".to_owned(),
        checksum: None,
    };
    let untagged = "<CompleteMultipartUploadResult/>";
    for wrong in ["", "<Other><ETag>e</ETag></Other>", untagged] {
        let (client, serving) = server(&[&answer("200 OK", wrong)]);
        let parts = std::slice::from_ref(&part);
        let ended = client.complete_upload_if(&name, "u", parts, None, (&[], None));
        is_told(ended.await);
        serving.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_page_deletes_nothing() {
    let name = ObjectName::new("b", "k");
    let (page, head) = (page(), head_of_page());
    let (client, serving) = server(&[&page, &head, &head]);
    is_told(client.delete_object(&name).await);
    serving.join().unwrap();
    // Another success is believed where it says nothing, and where the object is gone.
    let (empty, gone) = (answer("200 OK", ""), answer("404 x", ""));
    let empty_page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n";
    for answers in [&[empty.as_str()][..], &[&page, &gone], &[empty_page, &gone]] {
        let (client, serving) = server(answers);
        client.delete_object(&name).await.unwrap();
        serving.join().unwrap();
    }
    let (client, serving) = server(&[empty_page, &empty, &empty]);
    is_told(client.delete_object(&name).await);
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_where_all_of_many_are_gone() {
    let names = ["one", "two"].map(|key| ObjectName::new("b", key));
    let empty = answer("200 OK", "");
    let gone = answer("404 x", "");
    let (client, serving) = server(&[&empty, &gone, &gone]);
    let deleted = client.delete_objects("b", &names).await.unwrap();
    assert!(deleted.iter().all(|deleted| deleted.failure.is_none()));
    let asked = serving.join().unwrap();
    assert!(asked[1].0.starts_with("HEAD /b/one "), "{}", asked[1].0);
    assert!(asked[2].0.starts_with("HEAD /b/two "), "{}", asked[2].0);
    let (client, serving) = server(&[&empty, &gone, &answer("200 OK", "")]);
    is_told(client.delete_objects("b", &names).await);
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lengths_that_no_file_has_are_told() {
    let length = 1_u64 << 63;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\netag: \"e\"\r\n\r\n");
    let (client, serving) = server(&[&head]);
    let told = client.head_object(&ObjectName::new("b", "k")).await;
    let told = told.unwrap_err().to_string();
    assert!(told.contains("no length that an object can have"), "{told}");
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_nothing_have_an_end() {
    let (client, serving) = server(&[]);
    serving.join().unwrap();
    let count = |client: &Client, paging: &mut Paging, pages: u32| {
        (0..pages).try_for_each(|_| paging.follow(client, [] as [&str; 0], None::<&String>))
    };
    let mut paging = Paging::default();
    count(&client, &mut paging, 999).unwrap();
    paging.follow(&client, ["a"], None::<&String>).unwrap();
    count(&client, &mut paging, 999).unwrap();
    is_told(count(&client, &mut paging, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_the_same_names_have_an_end_though_each_page_asks_for_another() {
    let (client, serving) = server(&[]);
    serving.join().unwrap();
    let mut paging = Paging::default();
    let mut page = |page: u32| paging.follow(&client, ["a", "b"], Some(&page));
    (0..1_000).try_for_each(&mut page).unwrap();
    is_told(page(1_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_refusal_says_nothing_of_tls() {
    let bare = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n";
    let (client, serving) = server(&[bare, bare]);
    let name = ObjectName::new("b", "k");
    for method in [Method::GET, Method::HEAD] {
        let told = client.send(&name.request(method)).await.err().unwrap();
        assert!(!told.to_string().contains("TLS"), "{told}");
        assert_eq!(told.code(), Some("BadRequest"));
    }
    serving.join().unwrap();
}

fn listed(inner: &str) -> String {
    answer(
        "200 OK",
        &format!("<ListBucketResult>{inner}</ListBucketResult>"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_were_not_asked_for_are_told() {
    let key = "<Contents><Key>keep/other</Key><Size>1</Size></Contents>";
    let below = "<CommonPrefixes><Prefix>keep/</Prefix></CommonPrefixes>";
    for wrong in [key, below] {
        let (client, serving) = server(&[&listed(wrong)]);
        let told = client
            .list_objects("b", "p/", None, None)
            .await
            .unwrap_err();
        assert!(told.to_string().contains("lists keep/"), "{told}");
        serving.join().unwrap();
    }
    let version = "<Version><Key>keep/other</Key><VersionId>v</VersionId><Size>1</Size></Version>";
    let versions = format!("<ListVersionsResult>{version}</ListVersionsResult>");
    let (client, serving) = server(&[&answer("200 OK", &versions)]);
    let told = client.list_versions("b", "p/", None).await.unwrap_err();
    assert!(told.to_string().contains("lists keep/other"), "{told}");
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_parts_go_forward() {
    let name = ObjectName::new("b", "k");
    let page = |number: u32, flag: &str, next: &str| {
        let part = format!("<PartNumber>{number}</PartNumber><ETag>e</ETag><Size>5</Size>");
        let more = format!("<IsTruncated>{flag}</IsTruncated><NextPartNumberMarker>{next}");
        let inner = format!("<Part>{part}</Part>{more}</NextPartNumberMarker>");
        answer(
            "200 OK",
            &format!("<ListPartsResult>{inner}</ListPartsResult>"),
        )
    };
    let (first, last) = (page(1, "TRUE", "1"), page(2, "false", "2"));
    let (client, serving) = server(&[&first, &last]);
    let parts = client.list_parts(&name, "u").await.unwrap();
    assert_eq!(
        parts.iter().map(|part| part.number).collect::<Vec<_>>(),
        [1, 2]
    );
    let asked = serving.join().unwrap();
    assert!(
        asked[1].0.contains("part-number-marker=1"),
        "{}",
        asked[1].0
    );
    for wrong in [
        page(2, "true", "1"),
        page(2, "true", ""),
        page(2, "more", "2"),
    ] {
        let (client, serving) = server(&[&first, &wrong]);
        is_told(client.list_parts(&name, "u").await);
        serving.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_buckets_that_come_round_have_an_end() {
    let page = |next: &str| {
        let bucket = "<Buckets><Bucket><Name>b</Name></Bucket></Buckets>";
        let inner = format!("{bucket}<ContinuationToken>{next}</ContinuationToken>");
        answer(
            "200 OK",
            &format!("<ListAllMyBucketsResult>{inner}</ListAllMyBucketsResult>"),
        )
    };
    let (a, b) = (page("a"), page("b"));
    let (client, serving) = server(&[&a, &b, &a]);
    is_told(client.list_buckets().await);
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_behind_the_head_of_a_success_is_not_stored() {
    let name = ObjectName::new("b", "k");
    let denied = answer("200 OK", "<Error><Code>AccessDenied</Code></Error>");
    let (client, serving) = server(&[&denied]);
    let stored = client.put_object(&name, &[], Bytes::from_static(b"1"), None);
    assert_eq!(stored.await.unwrap_err().code(), Some("AccessDenied"));
    serving.join().unwrap();
    let (late, done) = (answer("200 OK", SLOW), answer("200 OK", ""));
    let (client, serving) = server(&[&late, &done]);
    let part = client.upload_part(&name, ("u", 1), &[], Bytes::from_static(b"1"), None);
    assert_eq!(part.await.unwrap().etag, "\"e\"");
    serving.join().unwrap();
    let (client, serving) = server(&[&answer("206 Partial Content", "")]);
    let part = client.upload_part(&name, ("u", 1), &[], Bytes::from_static(b"1"), None);
    is_told(part.await);
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_headers_are_no_other_protocol() {
    let headers: String = (0..5_000).map(|it| format!("x-h{it}: 1\r\n")).collect();
    let many = format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n");
    let (client, serving) = server(&[&many]);
    let request = ObjectName::new("b", "k").request(Method::GET);
    let told = client.send_once(&request).await.err().unwrap().to_string();
    assert!(!told.contains("plain HTTP"), "{told}");
    drop(serving);
}
