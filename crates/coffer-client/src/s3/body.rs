//! Bytes that go out with a request, and those that come with an answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::time::timeout;

use crate::limits::{S3_SLICE_BYTES, S3_STANDSTILL};
use crate::s3::error::{NO_ETAG, S3Error};

mod origin;

pub(crate) use self::origin::{bare, strong};
pub(super) use self::origin::{is_numbered, is_of_s3, is_page, kind, text};

/// Is told of bytes that have gone out, and, as a negative number, of those that have to go again.
pub type Sent = Arc<dyn Fn(i64) + Send + Sync>;

/// How far a body has gone out.
#[derive(Default)]
pub(super) struct Progress {
    bytes: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

/// A body that lies in memory, and goes out in slices.
pub(super) struct Slices {
    rest: Bytes,
    progress: Arc<Progress>,
    sent: Option<Sent>,
}

impl Slices {
    pub(super) fn new(rest: Bytes, sent: Option<Sent>) -> (Self, Arc<Progress>) {
        let progress = Arc::<Progress>::default();
        progress.is_over.store(rest.is_empty(), Relaxed);
        let slices = Self {
            rest,
            progress: Arc::clone(&progress),
            sent,
        };
        (slices, progress)
    }
}

impl Body for Slices {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(S3_SLICE_BYTES);
        let slice = self.rest.split_to(length);
        self.progress.bytes.fetch_add(length as u64, Relaxed);
        self.progress.is_over.store(self.rest.is_empty(), Relaxed);
        if let Some(sent) = &self.sent {
            sent(length as i64);
        }
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// An answer that is a success: its head, and a body that comes as it is asked for.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    pub(super) body: Incoming,
    pub(crate) endpoint: Arc<str>,
}

impl Answer {
    /// A header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The same, if it is of an object, and not of what stands before the service.
    ///
    /// # Errors
    /// [`S3Error::Unreadable`].
    pub(super) fn of_object(self) -> Result<Self, S3Error> {
        if is_of_s3(&self.headers) {
            return Ok(self);
        }
        Err(self.unreadable(NO_ETAG))
    }

    /// Whether it is no page for people, as one to log in is, unless that is an object.
    pub(super) fn is_no_page(&self) -> bool {
        is_of_s3(&self.headers) || !is_page(kind(&self.headers))
    }

    /// Sees whether it is that of S3 to a deletion, which has nothing to say, and so is of no kind.
    ///
    /// # Errors
    /// [`S3Error::Unreadable`].
    pub(crate) fn of_deletion(self) -> Result<(), S3Error> {
        let may_be_empty = is_numbered(&self.headers) || !self.headers.contains_key(CONTENT_TYPE);
        if self.status == StatusCode::NO_CONTENT || self.body.is_end_stream() && may_be_empty {
            return Ok(());
        }
        Err(self.unreadable("is no S3 answer to a deletion"))
    }

    pub(crate) fn unreadable(&self, problem: &'static str) -> S3Error {
        S3Error::Unreadable {
            endpoint: self.endpoint.to_string(),
            problem,
        }
    }

    /// More of the body; none at its end.
    ///
    /// # Errors
    /// [`S3Error::Broken`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, S3Error> {
        loop {
            let frame = match timeout(S3_STANDSTILL, self.body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(self.broken(told(&error))),
                Err(_) => return Err(self.broken("nothing came any more".to_owned())),
            };
            if let Ok(bytes) = frame.into_data()
                && !bytes.is_empty()
            {
                return Ok(Some(bytes));
            }
        }
    }

    /// The whole body, which may be no longer than this.
    ///
    /// # Errors
    /// [`S3Error::Broken`], [`S3Error::Unreadable`] for one that is longer.
    pub async fn whole(mut self, most_bytes: usize) -> Result<Bytes, S3Error> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            if whole.len() + bytes.len() > most_bytes {
                return Err(S3Error::Unreadable {
                    endpoint: self.endpoint.to_string(),
                    problem: "is too long",
                });
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.into())
    }

    pub(crate) fn broken(&self, problem: String) -> S3Error {
        S3Error::Broken {
            endpoint: self.endpoint.to_string(),
            problem,
        }
    }
}

/// What went wrong, with what is behind it, for libraries tell only the outermost.
pub(super) fn told(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let more = error.to_string();
        if !text.contains(&more) {
            text.extend([": ", &more]);
        }
        inner = error.source();
    }
    text
}
