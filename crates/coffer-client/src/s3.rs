//! As little of an S3 client as storing and reading a few objects takes: requests of one piece,
//! signed in their headers.

use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use time::OffsetDateTime;
use tokio_rustls::TlsConnector;

use crate::credentials::Credentials;
use crate::error::ClientError;
use crate::http1::{collected, exchange};
use crate::https::HttpsServer;
use crate::limits::S3_ANSWER_BYTES;
use crate::signing::{S3, Signer, sha256_hex};

/// An S3 service, and the access key to use it with.
pub struct S3Client {
    server: HttpsServer,
    tls: TlsConnector,
    credentials: Credentials,
}

/// What was answered.
pub struct S3Answer {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: Bytes,
}

impl S3Client {
    /// Uses this service with this access key.
    pub fn new(server: HttpsServer, tls: TlsConnector, credentials: Credentials) -> Self {
        Self {
            server,
            tls,
            credentials,
        }
    }

    /// Sends a request and takes its whole answer. Paths must be encoded already, and values of
    /// headers need no encoding. Header names are in lower case.
    ///
    /// # Errors
    /// In words, when there was no answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<S3Answer, String> {
        let request = self.signed(&method, path, headers, body)?;
        let stream = match self.server.connect(&self.tls).await {
            Err(ClientError::Unreachable { problem, .. }) => return Err(problem),
            connected => connected.map_err(|error| error.to_string())?,
        };
        let answer = exchange(stream, request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = collected(answer.into_body(), S3_ANSWER_BYTES).await;
        let body = body.map_err(|error| error.to_string())?;
        Ok(S3Answer { status, body })
    }

    fn signed(
        &self,
        method: &Method,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, String> {
        let signer = Signer::new(&self.credentials, S3, OffsetDateTime::now_utc());
        let (host, payload) = (self.server.host(), sha256_hex(&body));
        let mut signed: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        signed.push(("host", &host));
        signed.push(("x-amz-date", signer.amz_date()));
        signed.push(("x-amz-content-sha256", &payload));
        signed.sort_unstable();
        let authorization = signer.authorization(method.as_str(), path, &signed, &payload);
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &signed {
            request = request.header(*name, *value);
        }
        request
            .header("authorization", authorization)
            .body(Full::new(body))
            .map_err(|error| error.to_string())
    }
}
