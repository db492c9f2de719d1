//! Objects stored: sent, or copied by the server. Where no answer comes, what is there is looked at
//! before it goes again, for in a bucket with versions that would store another one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderName, Method, StatusCode};
use hyper::body::Bytes;

use crate::s3::body::{Answer, Sent};
use crate::s3::checksum::{Algorithm, Checksum, checksum};
use crate::s3::client::Client;
use crate::s3::error::{NO_ETAG, S3Error};
use crate::s3::objects::{DESCRIPTION, METADATA, ObjectHead, ObjectName, REDIRECT_HEADER, Stored};
use crate::s3::request::Request;
use crate::s3::since::Since;
use crate::sealed::{DAMAGED, STORED_HEADER};

/// What a request is to store, and how it is known again.
pub(crate) struct Awaited<'a> {
    /// Where.
    pub(crate) name: &'a ObjectName,
    /// What it is to have beside its bytes.
    pub(crate) headers: &'a [(String, String)],
    /// How long it is.
    pub(crate) bytes: u64,
    /// A checksum of all of it, where one is known.
    pub(crate) checksum: Option<&'a Checksum>,
    /// Its ETag with servers that make those of MD5s. Forming it takes time.
    pub(crate) etag: &'a (dyn Fn() -> Option<String> + Sync),
    /// When it was begun: what is older was there before.
    pub(crate) began: Since,
    /// Who is told of bytes that go out.
    pub(crate) sent: Option<Sent>,
    /// Who is told that the server called it doubtful: that it is there tells nothing from then on.
    pub(crate) doubted: Option<&'a Doubted<'a>>,
}

/// Is told that a server called doubtful what it was to store.
pub(crate) type Doubted<'a> = dyn Fn() + Sync + 'a;

impl Awaited<'_> {
    /// Whether that is there. What the server found damaged is nothing that it gives out.
    fn is(&self, head: &ObjectHead) -> bool {
        head.bytes == self.bytes
            && head.header(STORED_HEADER) != Some(DAMAGED)
            && self.began.is_before(head)
            && self.headers.iter().all(|header| self.is_told(head, header))
            && self.is_all_metadata(head)
            && self.is_content(head)
    }

    /// Whether a header is told as it was sent. What is no ASCII, or was said twice, is told in
    /// another form, and not compared. Of tags, those who may know learn how many there are.
    fn is_told(&self, head: &ObjectHead, (name, value): &(String, String)) -> bool {
        if name == "x-amz-tagging" {
            let told = head.header("x-amz-tagging-count");
            let sent = value.split('&').filter(|tag| !tag.is_empty()).count();
            return told.is_none_or(|told| told.parse::<usize>() == Ok(sent));
        }
        let is_once = || self.headers.iter().filter(|(of, _)| of == name).count() == 1;
        let is_description = name.starts_with(METADATA) || DESCRIPTION.contains(&name.as_str());
        let is_compared = is_description && value.is_ascii() && is_once();
        !is_compared || head.header(name) == Some(value.trim())
    }

    /// Whether it has no metadata that was not sent.
    fn is_all_metadata(&self, head: &ObjectHead) -> bool {
        let is_sent = |told: &str| self.headers.iter().any(|(sent, _)| sent == told);
        let told = head.headers.keys().map(HeaderName::as_str);
        let mut metadata = told.filter(|told| told.starts_with(METADATA));
        metadata.all(is_sent)
    }

    /// By a checksum of one kind, and else by an ETag that is made of the bytes.
    fn is_content(&self, head: &ObjectHead) -> bool {
        let told = head.checksum.as_ref().zip(self.checksum);
        match told.filter(|(told, sent)| told.algorithm == sent.algorithm) {
            Some((told, sent)) => told == sent,
            None => (self.etag)().is_some_and(|etag| head.etag.trim_matches('"') == etag),
        }
    }
}

impl Client {
    /// Stores an object of one piece, with a checksum that the server compares.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn put_object(
        &self,
        name: &ObjectName,
        headers: &[(String, String)],
        body: Bytes,
        sent: Option<Sent>,
    ) -> Result<Stored, S3Error> {
        self.put_object_told(name, headers, body, (sent, None))
            .await
    }

    /// The same, with who is told that the server called it doubtful.
    pub(crate) async fn put_object_told(
        &self,
        name: &ObjectName,
        headers: &[(String, String)],
        body: Bytes,
        (sent, doubted): (Option<Sent>, Option<&Doubted<'_>>),
    ) -> Result<Stored, S3Error> {
        let sum = checksum(Algorithm::Crc64Nvme, &body);
        let request = name.request(Method::PUT).headers(headers);
        let request = request.body(body.clone(), sent.clone());
        let awaited = Awaited {
            name,
            headers,
            bytes: body.len() as u64,
            checksum: Some(&sum),
            etag: &|| Some(hex::encode(checksum(Algorithm::Md5, &body).value)),
            began: Since::now(),
            sent,
            doubted,
        };
        self.store(&awaited, || self.put_once(&request, &sum)).await
    }

    async fn put_once(&self, request: &Request, sum: &Checksum) -> Result<Stored, S3Error> {
        let comparing = { request.clone() }.header(sum.algorithm.header(), sum.text());
        let answer = match self.send_once(&comparing).await {
            // A server that knows other checksums only.
            Err(error) if error.is_about_checksums() => {
                let md5 = BASE64.encode(checksum(Algorithm::Md5, &request.body).value);
                let comparing = { request.clone() }.header("content-md5", md5);
                self.send_once(&comparing).await?
            }
            answered => answered?,
        };
        self.stored(request, answer).await
    }

    /// What an answer says of what a request stored. Where it is none to that, the bytes have gone
    /// out for nothing.
    pub(crate) async fn stored(
        &self,
        request: &Request,
        answer: Answer,
    ) -> Result<Stored, S3Error> {
        let read = self.read_stored(answer).await;
        if let (Err(_), Some(sent)) = (&read, &request.sent) {
            sent(-(request.body.len() as i64));
        }
        read
    }

    /// S3 names the content by an ETag; an answer without one is another's. What fails late is told
    /// behind the head of a success.
    async fn read_stored(&self, answer: Answer) -> Result<Stored, S3Error> {
        if answer.status == StatusCode::PARTIAL_CONTENT {
            return Err(self.unreadable("is one to a request for a range, which was none"));
        }
        let (_, headers) = self.read_document(answer).await?;
        let stored = Stored::of_headers(&headers);
        if stored.etag.is_empty() {
            return Err(self.unreadable(NO_ETAG));
        }
        Ok(stored)
    }

    /// Has the server copy an object, or a version of it, in one piece, of which this is the head.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn copy_object(
        &self,
        (source, head): (&ObjectName, &ObjectHead),
        target: &ObjectName,
        headers: &[(String, String)],
    ) -> Result<Stored, S3Error> {
        let request = target.request(Method::PUT).headers(headers);
        let request = request.header("x-amz-copy-source", source.copy_source());
        let mut copied = head.description();
        copied.retain(|(name, _)| name != REDIRECT_HEADER);
        let awaited = Awaited {
            name: target,
            headers: &copied,
            bytes: head.bytes,
            checksum: head.checksum.as_ref(),
            etag: &|| None,
            began: Since::now(),
            sent: None,
            doubted: None,
        };
        self.store(&awaited, || self.copy_once(&request)).await
    }

    async fn copy_once(&self, request: &Request) -> Result<Stored, S3Error> {
        let (answer, headers) = self.document_once(request).await?;
        let etag = answer.value_of("ETag");
        // Some services call it CopyObjectResponse.
        let etag = etag.filter(|_| answer.name.starts_with("CopyObject"));
        let etag = etag.ok_or_else(|| self.unreadable("is no S3 answer to a copy"))?;
        let mut stored = Stored::of_headers(&headers);
        stored.etag = etag.to_owned();
        Ok(stored)
    }

    /// Stores what came before, and is named in the request's headers.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub(crate) async fn commit_object(
        &self,
        awaited: &Awaited<'_>,
        request: &Request,
    ) -> Result<Stored, S3Error> {
        self.store(awaited, || self.commit_once(request)).await
    }

    async fn commit_once(&self, request: &Request) -> Result<Stored, S3Error> {
        let answer = self.send_once(request).await?;
        self.stored(request, answer).await
    }

    /// What is there, if it is what was to be stored. What may not be looked at is none.
    ///
    /// # Errors
    /// When it can't be looked at now.
    pub(crate) async fn found(&self, awaited: &Awaited<'_>) -> Result<Option<Stored>, S3Error> {
        match self.head_object(awaited.name).await {
            Ok(head) if awaited.is(&head) => Ok(Some(Stored::of_headers(&head.headers))),
            Err(error) if error.is_passing() => Err(error),
            _ => Ok(None),
        }
    }

    /// Has something stored by `ask`, again where that may help. Where no answer tells whether it
    /// was, and what is there is what was to be stored, that is the answer.
    pub(super) async fn store<F>(
        &self,
        awaited: &Awaited<'_>,
        ask: impl Fn() -> F,
    ) -> Result<Stored, S3Error>
    where
        F: Future<Output = Result<Stored, S3Error>>,
    {
        let mut attempt = 0;
        let mut is_doubtful = false;
        loop {
            let error = match ask().await {
                Ok(stored) => return Ok(stored),
                Err(error) => error,
            };
            attempt += 1;
            // What a server called doubtful may be there and not be kept: only an answer tells, and
            // a completion that is asked again is answered.
            let is_lost = error.is_without_answer() || error.is_used_up();
            let is_unknown = error.is_gone() || (is_lost && !is_doubtful);
            if error.is_doubtful() {
                is_doubtful = true;
                if let Some(doubted) = awaited.doubted {
                    doubted();
                }
            }
            let waited = self.pause(attempt, error).await;
            if is_unknown {
                match self.found(awaited).await {
                    Ok(Some(stored)) => {
                        if let Some(sent) = &awaited.sent {
                            sent(awaited.bytes as i64);
                        }
                        return Ok(stored);
                    }
                    Ok(None) => {}
                    // It was asked often enough, and is not stored again.
                    Err(looked) => {
                        let first = waited.err().filter(S3Error::is_passing);
                        return Err(first.unwrap_or(looked));
                    }
                }
            }
            waited?;
        }
    }
}
