//! Answers to reads: whether one is S3's, of the content that is wanted, and of the bytes that were
//! asked for. All that reads objects, at once or in pieces, goes by what is here.

#[cfg(test)]
mod tests;

use std::ops::Range;

use http::{HeaderMap, Method, StatusCode};
use time::Duration;

use crate::s3::body::{Answer, bare, is_of_s3, is_page, kind, strong, text};
use crate::s3::client::Client;
use crate::s3::error::{NO_ETAG, S3Error, date_of};
use crate::s3::listing::ListedObject;
use crate::s3::objects::{ObjectHead, ObjectName};
use crate::sealed::{SEALED, TRANSFER_HEADER};

/// How far a list and a header may differ in when an object was modified: headers have seconds.
const LIST_SLACK: Duration = Duration::SECOND;

/// The content of an object that is wanted, and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: ObjectName,
    pub(crate) bytes: u64,
    /// Its ETag; nothing where the service has none, or a weak one.
    pub(crate) etag: String,
    /// A weak ETag: another one is of another content, and the same may be.
    pub(crate) weak: String,
    /// When it was modified, where it has no ETag that names its bytes.
    pub(crate) modified: String,
}

/// What is wrong with an answer.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    /// It is of another content.
    Content,
    /// It is the whole object, of which a part was asked for.
    Whole,
    /// S3 gives no such answer.
    Answer(&'static str),
}

impl Wanted {
    /// What HEAD or a first answer told of.
    pub(crate) fn of(name: &ObjectName, head: &ObjectHead) -> Self {
        let (etag, weak, modified) = match strong(&head.etag) {
            Some(etag) => (etag, "", ""),
            None => ("", bare(&head.etag), text(&head.headers, "last-modified")),
        };
        Self {
            name: name.clone(),
            bytes: head.bytes,
            etag: etag.to_owned(),
            weak: weak.to_owned(),
            modified: modified.to_owned(),
        }
    }

    /// Whether answers that are of it can be told from others.
    pub(crate) fn is_marked(&self) -> bool {
        self.has_tag() || !self.modified.is_empty()
    }

    pub(crate) fn has_tag(&self) -> bool {
        !self.etag.is_empty()
    }

    /// What it is known by again beside that time, after a break.
    pub(crate) fn noted_tag(&self) -> String {
        if self.weak.is_empty() || self.modified.is_empty() {
            return self.etag.clone();
        }
        format!("W/\"{}\"", self.weak)
    }

    /// What has a copy be of it, or not be made. A time is none: services compare it by parts of a
    /// second that they do not tell.
    pub(crate) fn condition_of_copy(&self) -> Option<(String, String)> {
        let name = "x-amz-copy-source-if-match";
        self.has_tag().then(|| (name.to_owned(), self.etag.clone()))
    }

    /// Sees whether an answer has these bytes of it. One to a request without a range has all.
    fn check(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        range: &Range<u64>,
    ) -> Result<(), Wrong> {
        // Of what told its time before, an answer may tell no more than that.
        let is_dated = headers.contains_key("last-modified") && !is_page(kind(headers));
        if !(is_of_s3(headers) || is_dated && !self.modified.is_empty()) {
            return Err(Wrong::Answer(NO_ETAG));
        }
        let told = |name: &str| text(headers, name);
        if self.has_tag() {
            match bare(told("etag")) {
                "" => return Err(Wrong::Answer("tells no ETag, though the object has one")),
                etag if etag != bare(&self.etag) => return Err(Wrong::Content),
                _ => {}
            }
        } else {
            let etag = bare(told("etag"));
            let is_other = !self.weak.is_empty() && !etag.is_empty() && etag != self.weak;
            let is_then = self.modified.is_empty() || told("last-modified") == self.modified;
            if is_other || !is_then {
                return Err(Wrong::Content);
            }
        }
        if told(TRANSFER_HEADER) == SEALED {
            // An offer says in its body what it is of, which may be less.
            return Ok(());
        }
        let of_range = match status {
            // A server without ranges gives the object from its beginning.
            StatusCode::OK if *range != (0..self.bytes) => return Err(Wrong::Whole),
            StatusCode::OK => true,
            StatusCode::PARTIAL_CONTENT => {
                is_content_range(told("content-range"), range, self.bytes)
            }
            _ => return Err(Wrong::Answer(NOT_READ)),
        };
        if !of_range {
            return Err(Wrong::Answer("is not the range that was asked for"));
        }
        // One that comes in chunks tells no length, and is counted.
        let length = told("content-length").parse::<u64>().ok();
        match length.map(|length| length.cmp(&(range.end - range.start))) {
            Some(std::cmp::Ordering::Greater) => Err(Wrong::Answer(LONGER)),
            Some(std::cmp::Ordering::Less) => Err(Wrong::Answer("is shorter than was announced")),
            _ => Ok(()),
        }
    }
}

/// What is wrong with an answer that brings more than it may.
pub(crate) const LONGER: &str = "is longer than was announced";

/// How one that brings less breaks.
pub(crate) const EARLY: &str = "the object ended too early";

const NOT_READ: &str = "is none of S3's to a request for an object";

/// What is wrong with answers, several of which would make one content.
pub(crate) const UNMARKED: &str = "tells neither an ETag that names the object's bytes, which \
    a weak one does not, nor when it was modified, so pieces of it may be of several contents, \
    and it is fetched at once or not at all";

/// What an answer tells of an object, if that is what was listed.
fn as_listed(
    listed: &ListedObject,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<ObjectHead, Wrong> {
    if status != StatusCode::OK {
        return Err(Wrong::Answer(NOT_READ));
    }
    let mut headers = headers.clone();
    // One that comes in chunks tells no length, and is counted.
    let length = headers.entry(http::header::CONTENT_LENGTH);
    length.or_insert_with(|| listed.bytes.into());
    let head = ObjectHead::of_headers(headers);
    let head = head.ok_or(Wrong::Answer("tells no length that an object can have"))?;
    let is_then = head.is_of_then(listed);
    let is_as_listed = head.bytes == listed.bytes
        && match (bare(&listed.etag), bare(&head.etag)) {
            ("", _) => is_then.unwrap_or(true),
            (listed, told) => listed == told,
        };
    // A list shows that a page is an object.
    if !(is_of_s3(&head.headers) || is_as_listed && is_then == Some(true)) {
        return Err(Wrong::Answer(NO_ETAG));
    }
    is_as_listed.then_some(head).ok_or(Wrong::Content)
}

impl ObjectHead {
    /// Whether it tells the time that was listed; none where one of both has none.
    pub(crate) fn is_of_then(&self, listed: &ListedObject) -> Option<bool> {
        let listed = listed.modified_at()?;
        let told = date_of(&self.headers, "last-modified")?;
        Some((listed - told).abs() < LIST_SLACK)
    }

    /// Whether it is of what was listed.
    ///
    /// # Errors
    /// [`S3Error::Replaced`].
    pub(crate) fn check_listed(&self, listed: &ListedObject) -> Result<(), S3Error> {
        let told = as_listed(listed, StatusCode::OK, &self.headers);
        told.map(drop).map_err(|_| S3Error::Replaced)
    }
}

impl Answer {
    /// The same with what it tells, if it is all of the object that was listed.
    ///
    /// # Errors
    /// [`S3Error::Replaced`], [`S3Error::Unreadable`].
    pub(crate) fn of_listed(
        mut self,
        listed: &ListedObject,
    ) -> Result<(ObjectHead, Self), S3Error> {
        match as_listed(listed, self.status, &self.headers) {
            Ok(head) => {
                self.headers = head.headers.clone();
                Ok((head, self))
            }
            Err(wrong) => Err(self.wrong(wrong)),
        }
    }

    fn wrong(&self, wrong: Wrong) -> S3Error {
        match wrong {
            Wrong::Content => S3Error::Replaced,
            Wrong::Whole => S3Error::NoRanges {
                endpoint: self.endpoint.to_string(),
            },
            Wrong::Answer(problem) => self.unreadable(problem),
        }
    }
}

impl Client {
    /// Asks once for bytes of a content, also by these headers; they come as they are asked for.
    ///
    /// # Errors
    /// [`S3Error::Replaced`] where it is no longer there; those of [`send`](Self::send).
    pub(crate) async fn read_once(
        &self,
        wanted: &Wanted,
        range: Range<u64>,
        headers: &[(String, String)],
    ) -> Result<Answer, S3Error> {
        if range != (0..wanted.bytes) && !wanted.is_marked() {
            return Err(self.unreadable(UNMARKED));
        }
        let mut request = wanted.name.request(Method::GET).headers(headers);
        if wanted.has_tag() {
            request = request.header("if-match", wanted.etag.clone());
        }
        if range.start < range.end {
            let (first, last) = (range.start, range.end - 1);
            request = request.header("range", format!("bytes={first}-{last}"));
        }
        let answer = match self.send_once(&request).await {
            Err(error) if error.is_changed() => return Err(S3Error::Replaced),
            answered => answered?,
        };
        match wanted.check(answer.status, &answer.headers, &range) {
            Ok(()) => Ok(answer),
            Err(wrong) => Err(answer.wrong(wrong)),
        }
    }

    /// Asks once for all of an object that was listed, also by these headers.
    ///
    /// # Errors
    /// The same.
    pub(crate) async fn read_listed_once(
        &self,
        name: &ObjectName,
        listed: &ListedObject,
        headers: &[(String, String)],
    ) -> Result<Answer, S3Error> {
        let mut request = name.request(Method::GET).headers(headers);
        if let Some(etag) = strong(&listed.etag) {
            request = request.header("if-match", etag);
        }
        match self.send_once(&request).await {
            Err(error) if error.is_changed() => Err(S3Error::Replaced),
            answered => Ok(answered?.of_listed(listed)?.1),
        }
    }
}

fn is_content_range(told: &str, range: &Range<u64>, of: u64) -> bool {
    let read = || {
        let (unit, told) = told.trim().split_once(' ')?;
        let (ends, whole) = told.trim().split_once('/')?;
        let (first, last) = ends.split_once('-')?;
        let is_whole = whole == "*" || whole.parse() == Ok(of);
        let number = |text: &str| text.parse::<u64>().ok();
        let is_it = number(first)? == range.start && number(last)?.checked_add(1)? == range.end;
        Some(unit.eq_ignore_ascii_case("bytes") && is_whole && is_it)
    };
    read().unwrap_or(false)
}
