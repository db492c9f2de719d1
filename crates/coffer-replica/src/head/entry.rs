//! What has a number in a log: heads, and in the log of an engine records between them.

use std::sync::Arc;

use bytes::Bytes;
use coffer_seal::SecretKey;

use crate::digest::sha256_hex;
use crate::error::Result;
use crate::head::record::Record;
use crate::head::{Head, KnownHead, is_behind};
use crate::names::CopyId;

/// A head or a record.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Head(Arc<Head>),
    Record(Arc<Record>),
}

/// One of them, and which it is.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) known: KnownHead,
    pub(crate) body: Body,
}

impl Entry {
    /// Opens that of a number.
    pub(crate) fn open(key: &SecretKey, copy: CopyId, number: u64, bytes: &Bytes) -> Result<Self> {
        if !Record::is_one(bytes) {
            let (head, known) = Head::open(key, copy, number, bytes)?;
            let body = Body::Head(Arc::new(head));
            return Ok(Self { known, body });
        }
        let record = Record::open(key, copy, number, bytes)?;
        let sha256 = sha256_hex(bytes);
        Ok(Self {
            known: KnownHead { number, sha256 },
            body: Body::Record(Arc::new(record)),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.known.number
    }

    /// SHA-256 of the one before it.
    pub(crate) fn previous(&self) -> &str {
        match &self.body {
            Body::Head(head) => &head.previous,
            Body::Record(record) => &record.place.previous,
        }
    }

    /// The start of a writer that wrote it.
    pub(crate) fn writer(&self) -> &str {
        match &self.body {
            Body::Head(head) => &head.writer,
            Body::Record(record) => &record.place.writer,
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        match &self.body {
            Body::Head(head) => head.epoch,
            Body::Record(record) => record.place.epoch,
        }
    }

    /// As [`Head::as_of_ms`].
    pub(crate) fn as_of_ms(&self) -> i64 {
        match &self.body {
            Body::Head(head) => head.as_of_ms,
            Body::Record(record) => record.holds.as_of_ms,
        }
    }

    /// As [`Head::written_ms`].
    pub(crate) fn written_ms(&self) -> i64 {
        match &self.body {
            Body::Head(head) => head.written_ms,
            Body::Record(record) => record.place.written_ms,
        }
    }

    /// As [`Head::until_ms`].
    pub(crate) fn until_ms(&self) -> i64 {
        self.as_of_ms().max(self.written_ms())
    }

    /// As [`Head::is_behind`].
    pub(crate) fn is_behind(&self) -> bool {
        is_behind(self.as_of_ms(), self.written_ms())
    }

    /// As [`Head::after_ms`].
    pub(crate) fn after_ms(&self) -> i64 {
        match &self.body {
            Body::Head(head) => head.after_ms,
            Body::Record(record) => record.holds.after_ms,
        }
    }

    /// As [`Head::first_ms`]; 0 of a record, which does not say.
    pub(crate) fn first_ms(&self) -> i64 {
        match &self.body {
            Body::Head(head) => head.first_ms,
            Body::Record(_) => 0,
        }
    }

    /// The head itself, or the number of the newest head before the record.
    pub(crate) fn head(&self) -> std::result::Result<&Arc<Head>, u64> {
        match &self.body {
            Body::Head(head) => Ok(head),
            Body::Record(record) => Err(record.place.head),
        }
    }
}
