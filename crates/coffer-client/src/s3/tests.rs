//! Requests over real sockets, to a server that answers what it is told, one answer a connection or
//! request.

mod lost_answers;

mod other_answers;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use http::{HeaderMap, HeaderValue, Method};
use hyper::body::Bytes;

use crate::profiles::{Credentials, Settings};
use crate::s3::{Client, ClientOptions, ObjectHead, ObjectName, Request, S3Error, Sent};

/// The heads and bodies of requests.
type AskedFor = Vec<(String, Vec<u8>)>;

/// Answers these, in order, and gives what was asked: heads and bodies. An empty answer ends the
/// connection instead, and one whose body is shorter than it says ends it afterwards.
fn server(answers: &[&str]) -> (Client, JoinHandle<AskedFor>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
    let serving = thread::spawn(move || {
        let mut asked = Vec::new();
        let mut open: Option<TcpStream> = None;
        for answer in answers {
            let request = loop {
                let stream = open.get_or_insert_with(|| listener.accept().unwrap().0);
                match read_request(stream) {
                    Some(request) => break request,
                    None => open = None,
                }
            };
            let ends = answer.is_empty() || is_cut(&answer) && !request.0.starts_with("HEAD");
            asked.push(request);
            if let Some(stream) = &mut open {
                stream.write_all(answer.as_bytes()).unwrap();
            }
            if ends {
                open = None;
            }
        }
        asked
    });
    let settings = Settings {
        endpoint,
        credentials: Credentials {
            access_key_id: "A".to_owned(),
            secret_access_key: "s".to_owned().into(),
            session_token: Some("token".to_owned().into()),
        },
        region: "r1".to_owned(),
        ca: None,
    };
    let options = ClientOptions {
        retries: 3,
        ..ClientOptions::default()
    };
    (Client::new(settings, options).unwrap(), serving)
}

fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = { head.lines() }.find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn is_cut(answer: &str) -> bool {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let length = { head.lines() }.find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() < length.parse::<usize>().unwrap())
}

/// Who is told of bytes, and what all of them come to.
fn counting() -> (Arc<AtomicI64>, Sent) {
    let net = Arc::new(AtomicI64::new(0));
    let told = Arc::clone(&net);
    let sent = move |bytes| {
        told.fetch_add(bytes, Relaxed);
    };
    (net, Arc::new(sent))
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\netag: \"e\"\r\n\r\n{body}")
}

const SLOW: &str = "<Error><Code>SlowDown</Code><Message>slower</Message></Error>";

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_again_where_that_may_help() {
    let slow = answer("503 x", SLOW);
    let (nothing, stored) = (answer("404 x", ""), answer("200 OK", ""));
    // What the lost answer was to is looked for first.
    let (client, serving) = server(&[&slow, "", &nothing, &stored]);
    let (net, sent) = counting();
    let body = Bytes::from(vec![7; 700_000]);
    let name = ObjectName::new("b", "k");
    let stored = client.put_object(&name, &[], body.clone(), Some(sent));
    assert_eq!(stored.await.unwrap().etag, "\"e\"");
    assert_eq!(net.load(Relaxed), 700_000);
    let mut asked = serving.join().unwrap();
    assert_eq!(asked.len(), 4);
    let looked = asked.remove(2).0;
    assert!(looked.starts_with("HEAD /b/k HTTP/1.1\r\n"), "{looked}");
    for (head, sent) in asked {
        assert!(head.starts_with("PUT /b/k HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("x-amz-checksum-crc64nvme: "), "{head}");
        assert!(head.contains("x-amz-security-token: token\r\n"), "{head}");
        assert!(head.contains("/r1/s3/aws4_request"), "{head}");
        // Without TLS, the signature guards the body.
        assert!(!head.contains("UNSIGNED"), "{head}");
        assert_eq!(sent, body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_refuses_is_not_asked_again() {
    let denied = answer("403 x", "<Error><Code>AccessDenied</Code></Error>");
    let (client, serving) = server(&[&denied]);
    let error = client.list_buckets().await.unwrap_err();
    assert_eq!(error.code(), Some("AccessDenied"));
    assert_eq!(serving.join().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_an_end_of_trying() {
    let slow = answer("503 x", SLOW);
    let (client, serving) = server(&[slow.as_str(); 4]);
    let request = Request::of_bucket(Method::GET, "b").query("versions", "");
    let error = client.send(&request).await.err().unwrap();
    assert_eq!(error.code(), Some("SlowDown"));
    let asked = serving.join().unwrap();
    assert_eq!(asked.len(), 4);
    assert!(asked[0].0.starts_with("GET /b?versions= HTTP/1.1\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_behind_a_success_is_one() {
    let late = answer("200 OK", "  <Error><Code>InternalError</Code></Error>");
    let copied = answer(
        "200 OK",
        "<CopyObjectResult><ETag>c</ETag></CopyObjectResult>",
    );
    let (client, serving) = server(&[&late, &copied]);
    let name = ObjectName::new("b", "k");
    let length = HeaderValue::from_static("1");
    let headers = HeaderMap::from_iter([(http::header::CONTENT_LENGTH, length)]);
    let head = ObjectHead::of_headers(headers).unwrap();
    let stored = client
        .copy_object((&name, &head), &name, &[])
        .await
        .unwrap();
    assert_eq!(stored.etag, "c");
    assert_eq!(serving.join().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_ends_early_is_broken() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\netag: \"e\"\r\n\r\n12345";
    let (client, serving) = server(&[cut]);
    let request = ObjectName::new("b", "k").request(Method::GET);
    let mut object = client.send(&request).await.unwrap();
    assert_eq!(object.next().await.unwrap().unwrap(), "12345");
    serving.join().unwrap();
    let error = object.next().await.unwrap_err();
    assert!(matches!(error, S3Error::Broken { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_start_is_waited_for_once() {
    let (client, serving) = server(&[]);
    serving.join().unwrap();
    for wanted_ms in [600..8_000, 0..500] {
        let began = std::time::Instant::now();
        let error = client.list_buckets().await.unwrap_err();
        assert!(error.to_string().contains("cannot be reached"), "{error}");
        let waited = began.elapsed().as_millis();
        assert!(wanted_ms.contains(&waited), "{waited} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_s3_is_told() {
    let (client, _) = server(&[&answer("200 OK", "<html><p>hello</html>")]);
    let told = client.list_buckets().await.unwrap_err().to_string();
    assert!(told.contains("is there an S3 service"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_know_no_crc_get_md5s() {
    let refused = answer("400 x", "<Error><Code>InvalidArgument</Code></Error>");
    let begun = answer("200 OK", "<R><UploadId>u</UploadId></R>");
    let (client, serving) = server(&[&refused, &begun]);
    let start = client
        .create_upload(&ObjectName::new("b", "k"), &[])
        .await
        .unwrap();
    assert_eq!((start.upload_id.as_str(), start.compares), ("u", false));
    let asked = serving.join().unwrap();
    assert!(asked[0].0.contains("x-amz-checksum-algorithm: CRC64NVME"));
    assert!(!asked[1].0.contains("x-amz-checksum"));
}
