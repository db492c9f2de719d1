//! An S3 service on a vault in a temporary folder, and signed requests to it.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use coffer_s3::{BrokenOff, S3Options, S3Service};
use coffer_vault::{Vault, VaultOptions};
use http::{HeaderMap, Request};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tempfile::TempDir;

use crate::signer::{Key, Signable, encode, names, sha256};

pub(crate) const HOST: &str = "127.0.0.1:9000";

pub(crate) struct Front {
    pub(crate) service: S3Service,
    pub(crate) key: Key,
    pub(crate) vault: Vault,
    _data: TempDir,
}

impl Front {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let options = VaultOptions::new(data.clone());
        let vault = Vault::open(options).await.unwrap();
        let credentials = std::fs::read_to_string(data.join("credentials")).unwrap();
        let value = |name: &str| {
            let line = credentials
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap();
            line.split_once(" = ").unwrap().1.to_owned()
        };
        let key = Key {
            id: value("aws_access_key_id"),
            secret: value("aws_secret_access_key"),
        };
        let domains = vec!["s3.test".to_owned()];
        let service = coffer_s3::service(
            vault.clone(),
            S3Options {
                domains,
                sign_in_failures: None,
            },
        );
        Self {
            service,
            key,
            vault,
            _data: folder,
        }
    }

    /// A front with an empty bucket `buc`.
    pub(crate) async fn with_bucket() -> Self {
        let front = Self::new().await;
        front.ask("PUT", "/buc").send().await.expect(200);
        front
    }

    /// A request for a decoded path.
    pub(crate) fn ask(&self, method: &'static str, path: &str) -> Ask<'_> {
        Ask {
            front: self,
            method,
            path: path.to_owned(),
            query: Vec::new(),
            headers: vec![("host".to_owned(), HOST.to_owned())],
            unsigned: Vec::new(),
            body: Vec::new(),
            payload: None,
        }
    }

    pub(crate) async fn put(&self, name: &str, body: impl Into<Vec<u8>>) -> Answer {
        self.ask("PUT", &format!("/buc/{name}"))
            .body(body)
            .send()
            .await
            .expect(200)
    }

    pub(crate) async fn read(&self, name: &str) -> Answer {
        self.ask("GET", &format!("/buc/{name}")).send().await
    }

    pub(crate) async fn close(self) {
        self.vault.close().await;
    }
}

/// A request being made.
pub(crate) struct Ask<'a> {
    front: &'a Front,
    method: &'static str,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    unsigned: Vec<(String, String)>,
    body: Vec<u8>,
    payload: Option<String>,
}

impl Ask<'_> {
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(there, _)| there != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A header that the signature does not cover.
    pub(crate) fn unsigned(mut self, name: &str, value: &str) -> Self {
        self.unsigned.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// A deletion of many, with the checksum that it must have.
    pub(crate) fn deletes(self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let sum = digest::digest(&digest::SHA256, &body);
        let sum = STANDARD.encode(sum);
        let ask = self.query("delete", "").body(body);
        ask.header("x-amz-checksum-sha256", &sum)
    }

    /// What `x-amz-content-sha256` says instead of the body's hash.
    pub(crate) fn payload(mut self, payload: &str) -> Self {
        self.payload = Some(payload.to_owned());
        self
    }

    pub(crate) async fn send(self) -> Answer {
        let body = Full::from(self.body.clone());
        self.send_body(body).await
    }

    /// Sends another body than the one that is signed and counted.
    pub(crate) async fn send_body<B>(self, body: B) -> Answer
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        let (request, _) = self.signed();
        self.dispatch(request, body).await
    }

    /// Sends a body that is made of the time and the signature of the request.
    pub(crate) async fn send_chunks(
        self,
        body: impl FnOnce(&Key, &str, &str) -> Vec<u8>,
    ) -> Answer {
        let (request, (time, signature)) = self.signed();
        let body = body(&self.front.key, &time, &signature);
        self.dispatch(request, Full::from(body)).await
    }

    /// Sends it with its signature in the query.
    pub(crate) async fn send_presigned(mut self) -> Answer {
        let time = now();
        let key = &self.front.key;
        let names = names(&self.headers);
        for (name, value) in [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &key.credential(&time)),
            ("X-Amz-Date", &time),
            ("X-Amz-Expires", "60"),
            ("X-Amz-SignedHeaders", &names),
        ] {
            self.query.push((name.to_owned(), value.to_owned()));
        }
        let signature = key.sign(&time, &self.signable("UNSIGNED-PAYLOAD"));
        self.query.push(("X-Amz-Signature".to_owned(), signature));
        let request = self.request();
        let body = Full::from(self.body.clone());
        self.dispatch(request, body).await
    }

    pub(crate) async fn send_anonymous(self) -> Answer {
        let request = self.request();
        let body = Full::from(self.body.clone());
        self.dispatch(request, body).await
    }

    fn signed(&self) -> (http::request::Builder, (String, String)) {
        let time = now();
        let payload = self.payload.clone().unwrap_or_else(|| sha256(&self.body));
        let mut signed = Self {
            headers: self.headers.clone(),
            ..self.copy()
        };
        signed.headers.push(("x-amz-date".to_owned(), time.clone()));
        signed
            .headers
            .push(("x-amz-content-sha256".to_owned(), payload.clone()));
        let key = &self.front.key;
        let signature = key.sign(&time, &signed.signable(&payload));
        let (credential, names) = (key.credential(&time), names(&signed.headers));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
        );
        (
            signed.request().header("authorization", authorization),
            (time, signature),
        )
    }

    fn copy(&self) -> Self {
        Self {
            front: self.front,
            method: self.method,
            path: self.path.clone(),
            query: self.query.clone(),
            headers: Vec::new(),
            unsigned: self.unsigned.clone(),
            body: self.body.clone(),
            payload: self.payload.clone(),
        }
    }

    fn signable<'s>(&'s self, payload: &'s str) -> Signable<'s> {
        Signable {
            method: self.method,
            path: &self.path,
            query: &self.query,
            headers: &self.headers,
            payload,
        }
    }

    fn request(&self) -> http::request::Builder {
        let pair = |(name, value): &(String, String)| {
            if value.is_empty() {
                encode(name, false)
            } else {
                format!("{}={}", encode(name, false), encode(value, false))
            }
        };
        let query = self.query.iter().map(pair).collect::<Vec<_>>().join("&");
        let uri = format!("{}?{query}", encode(&self.path, true));
        let mut request = Request::builder().method(self.method).uri(uri);
        for (name, value) in self.headers.iter().chain(&self.unsigned) {
            request = request.header(name, value);
        }
        if !self.body.is_empty() || self.method == "PUT" {
            request = request.header("content-length", self.body.len());
        }
        request
    }

    async fn dispatch<B>(self, request: http::request::Builder, body: B) -> Answer
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        let response = self
            .front
            .service
            .handle(request.body(body).unwrap())
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }
}

/// What the service answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Asserts that this is an error with a code, a message and ids.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Self {
        let answer = self.expect(status);
        let text = answer.text();
        assert!(text.contains(&format!("<Code>{code}</Code>")), "{text}");
        assert!(!answer.element("Message").is_empty(), "{text}");
        assert_eq!(
            answer.element("RequestId"),
            answer.header("x-amz-request-id"),
            "{text}"
        );
        answer
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The text of the first element of a name.
    pub(crate) fn element(&self, name: &str) -> String {
        self.elements(name).into_iter().next().unwrap_or_default()
    }

    /// The texts of all elements of a name, as they stand in the document.
    pub(crate) fn elements(&self, name: &str) -> Vec<String> {
        let (start, end) = (format!("<{name}>"), format!("</{name}>"));
        let text = self.text();
        let pieces = text.split(&start).skip(1);
        pieces
            .map(|piece| piece.split(&end).next().unwrap().to_owned())
            .collect()
    }
}

/// Clients take an entity tag of 32 hexadecimal digits for the MD5 of what they sent; ours is none.
#[track_caller]
pub(crate) fn assert_no_md5(etag: &str) {
    let value = etag.replace("&quot;", "\"");
    let value = value
        .strip_prefix('"')
        .and_then(|tag| tag.strip_suffix('"'));
    let (digits, parts) = value.and_then(|tag| tag.split_once('-')).expect(etag);
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(digits.len() == 32 && is_hex, "{etag}");
    assert!(parts.parse::<u32>().is_ok(), "{etag}");
}

/// The time as signatures have it.
fn now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let date = httpdate::fmt_http_date(UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    // Sun, 06 Nov 1994 08:49:37 GMT
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(&date[8..11]).unwrap() / 3 + 1;
    let (day, year, clock) = (&date[5..7], &date[12..16], date[17..25].replace(':', ""));
    format!("{year}{month:02}{day}T{clock}Z")
}
