//! As little of an S3 client as a canary takes: requests of one piece, signed with AWS signature
//! version 4 in their headers.

use aws_lc_rs::{digest, hmac};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use time::OffsetDateTime;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::limits::{CANARY_ANSWER_BYTES, CONNECT_TIMEOUT};
use crate::remote::credentials::Credentials;

/// coffer takes any; this is what clients without a region send.
const REGION: &str = "us-east-1";

/// An S3 service, and the access key to use it with.
pub struct S3 {
    host: String,
    port: u16,
    name: ServerName<'static>,
    tls: TlsConnector,
    credentials: Credentials,
}

/// What was answered.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: Bytes,
}

impl S3 {
    /// The service at an address such as `https://127.0.0.1:9000`; `None` when it is none.
    pub fn new(endpoint: &str, tls: TlsConnector, credentials: Credentials) -> Option<Self> {
        let uri: Uri = endpoint.parse().ok()?;
        if uri.scheme_str() != Some("https") || !matches!(uri.path(), "" | "/") {
            return None;
        }
        let host = uri.host()?.to_owned();
        let bare = host.trim_matches(['[', ']']).to_owned();
        Some(Self {
            name: ServerName::try_from(bare).ok()?,
            port: uri.port_u16().unwrap_or(443),
            host,
            tls,
            credentials,
        })
    }

    /// Sends a request and takes its whole answer. Paths, and values of headers, need no escaping:
    /// they are the canary's own. Header names are in lower case.
    ///
    /// # Errors
    /// In words, when there was no answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Answer, String> {
        let host = format!("{}:{}", self.host, self.port);
        let request = self.signed(&method, path, &host, headers, body);
        let connecting = async {
            let bare = self.host.trim_matches(['[', ']']);
            let tcp = TcpStream::connect((bare, self.port)).await?;
            self.tls.connect(self.name.clone(), tcp).await
        };
        let stream = timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| "it does not answer".to_owned())?
            .map_err(|error| error.to_string())?;
        let broken = |error: hyper::Error| error.to_string();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        tokio::spawn(connection);
        let answer = sender.send_request(request?).await.map_err(broken)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), CANARY_ANSWER_BYTES)
            .collect()
            .await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Answer { status, body })
    }

    fn signed(
        &self,
        method: &Method,
        path: &str,
        host: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, String> {
        let now = timestamp(OffsetDateTime::now_utc());
        let payload = sha256(&body);
        let mut signed: Vec<(&str, String)> = headers.to_vec();
        signed.push(("host", host.to_owned()));
        signed.push(("x-amz-date", now.clone()));
        signed.push(("x-amz-content-sha256", payload.clone()));
        signed.sort_unstable();
        let authorization = authorization(&self.credentials, &now, method, path, &signed, &payload);
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &signed {
            request = request.header(*name, value);
        }
        request
            .header("authorization", authorization.as_str())
            .body(Full::new(body))
            .map_err(|error| error.to_string())
    }
}

/// The header of that name; AWS, "Signature Version 4 signing process". Headers are sorted.
fn authorization(
    credentials: &Credentials,
    now: &str,
    method: &Method,
    path: &str,
    headers: &[(&str, String)],
    payload: &str,
) -> Zeroizing<String> {
    let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    let canonical = format!("{method}\n{path}\n\n{lines}\n{names}\n{payload}");
    let day = &now[..8];
    let scope = format!("{day}/{REGION}/s3/aws4_request");
    let text = format!(
        "AWS4-HMAC-SHA256\n{now}\n{scope}\n{}",
        sha256(canonical.as_bytes())
    );
    let first = Zeroizing::new(format!("AWS4{}", *credentials.secret_access_key));
    let mac = |key: &[u8], text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
    };
    let key = [REGION, "s3", "aws4_request"]
        .iter()
        .fold(mac(first.as_bytes(), day), |key, part| {
            mac(key.as_ref(), part)
        });
    let signature = hex::encode(mac(key.as_ref(), &text));
    let id = &credentials.access_key_id;
    Zeroizing::new(format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
    ))
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

/// `20130524T000000Z`.
fn timestamp(now: OffsetDateTime) -> String {
    let (year, month, day) = now.to_calendar_date();
    let (hour, minute, second) = now.to_hms();
    let month = u8::from(month);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS, "Authenticating Requests: Using the Authorization Header", example PUT Object, with the
    /// header `date` left to what is signed.
    #[test]
    fn the_documented_example_is_signed_as_documented() {
        let credentials = Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned().into(),
        };
        let payload = sha256(b"Welcome to Amazon S3.");
        let headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT".to_owned()),
            ("host", "examplebucket.s3.amazonaws.com".to_owned()),
            ("x-amz-content-sha256", payload.clone()),
            ("x-amz-date", "20130524T000000Z".to_owned()),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY".to_owned()),
        ];
        let header = authorization(
            &credentials,
            "20130524T000000Z",
            &Method::PUT,
            "/test%24file.text",
            &headers,
            &payload,
        );
        let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        assert!(
            header.ends_with(&format!("Signature={signature}")),
            "{}",
            *header
        );
    }

    #[test]
    fn times() {
        assert_eq!(timestamp(OffsetDateTime::UNIX_EPOCH), "19700101T000000Z");
    }
}
