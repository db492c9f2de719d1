//! A version of the source, opened: what it is beside its bytes, and its bytes piece by piece.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;
use hyper::body::Bytes;
use time::OffsetDateTime;
use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::limits::PART_BYTES;
use crate::migrate::attributes::{Attributes, Lock};
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::Given;
use crate::mover::{MTIME_HEADER, MoverError, Source, mtime_text};
use crate::s3::checksum::{Checksum, Running};
use crate::s3::{
    Answer, Client, EARLY, LONGER, ListedVersion, ObjectHead, ObjectName, S3Error, Wanted,
};

/// Where bytes are read.
#[derive(Clone)]
pub(super) enum Body {
    Object {
        client: Arc<Client>,
        /// The content that was listed.
        wanted: Wanted,
    },
    File(Arc<Source>),
}

/// A version of the source, opened.
pub(super) struct Opened {
    pub(super) attributes: Attributes,
    /// Its tags, as a header has them.
    pub(super) tags: Option<String>,
    /// What the source says that its checksum is.
    pub(super) told: Option<Checksum>,
    pub(super) body: Body,
    /// All of its bytes, if they are few.
    pub(super) whole: Option<Bytes>,
}

impl Opened {
    /// What the target gets of it beside its bytes, and others may change there.
    pub(super) fn given(&self) -> Given {
        let tags = self.tags.as_deref().unwrap_or_default();
        Given::new(tags, &self.attributes.lock)
    }
}

impl Body {
    /// Reads a piece.
    pub(super) async fn piece(&self, range: Range<u64>) -> Result<Bytes, MigrateError> {
        match self {
            Self::File(source) => {
                let read = block_in_place(|| source.read(&range))?;
                Ok(read.into())
            }
            Self::Object { client, wanted } => {
                let bytes = range.end - range.start;
                let ask = || client.read_once(wanted, range.clone(), &[]);
                Ok(fetched(client, bytes, ask).await?.1)
            }
        }
    }

    /// Whether what was read is what was opened: an object is asked for by its content, a file is
    /// looked at.
    pub(super) fn check_unchanged(&self) -> Result<(), MigrateError> {
        match self {
            Self::Object { .. } => Ok(()),
            Self::File(source) => Ok(block_in_place(|| source.check_unchanged())?),
        }
    }
}

/// Fetches so many bytes into memory, by an answer that `ask` gets, again where that may help.
async fn fetched<F>(
    client: &Client,
    bytes: u64,
    ask: impl Fn() -> F,
) -> Result<(HeaderMap, Bytes), MigrateError>
where
    F: Future<Output = Result<Answer, S3Error>>,
{
    let mut attempt = 0;
    loop {
        let error = match arrived(ask().await, bytes).await {
            Ok(arrived) => return Ok(arrived),
            Err(error) => error,
        };
        attempt += 1;
        client.pause(attempt, error).await?;
    }
}

/// Takes bytes as they come.
async fn arrived(
    answer: Result<Answer, S3Error>,
    wanted: u64,
) -> Result<(HeaderMap, Bytes), S3Error> {
    let mut answer = answer?;
    // Its length is known: a vector that grew would hold twice as much for a while.
    let mut body = Vec::with_capacity(wanted as usize);
    while let Some(bytes) = answer.next().await? {
        if (body.len() + bytes.len()) as u64 > wanted {
            return Err(answer.unreadable(LONGER));
        }
        body.extend_from_slice(&bytes);
    }
    if (body.len() as u64) < wanted {
        return Err(answer.broken(EARLY.to_owned()));
    }
    Ok((answer.headers, body.into()))
}

/// A version of an object, by what a list says of it.
pub(super) fn named(bucket: &str, key: &str, version: &ListedVersion) -> ObjectName {
    let is_plain = version.version_id == "null" && version.is_latest;
    ObjectName {
        version_id: Some(version.version_id.clone()).filter(|_| !is_plain),
        ..ObjectName::new(bucket, key)
    }
}

/// Opens a version of a bucket, which may be locked. Small ones come whole at once.
pub(super) async fn open_object(
    client: &Arc<Client>,
    (bucket, may_be_locked): (&str, bool),
    version: &ListedVersion,
) -> Result<Opened, MigrateError> {
    let object = &version.object;
    let name = named(bucket, &object.key, version);
    let (head, whole) = if object.bytes <= PART_BYTES {
        let asked = [("x-amz-checksum-mode".to_owned(), "ENABLED".to_owned())];
        let ask = || client.read_listed_once(&name, object, &asked);
        let (headers, bytes) = fetched(client, object.bytes, ask).await?;
        let head = ObjectHead::of_headers(headers).ok_or(MoverError::ObjectChanged)?;
        (head, Some(bytes))
    } else {
        let head = client.head_object(&name).await?;
        head.check_listed(object)?;
        (head, None)
    };
    let wanted = Wanted::of(&name, &head);
    let (headers, told) = (head.headers, head.checksum);
    let now = OffsetDateTime::now_utc();
    let mut attributes = Attributes::of_headers(&headers, now);
    // Not all services tell of locks in the answer to GET.
    if may_be_locked && whole.is_some() && attributes.lock == Lock::default() {
        let head = client.head_object(&name).await?;
        attributes.lock = Attributes::of_headers(&head.headers, now).lock;
    }
    // Not all services count tags in the answer to HEAD.
    let has_tags = attributes.tags.unwrap_or(u64::from(whole.is_none())) > 0;
    let tags = if has_tags {
        match client.tags(&name).await {
            Ok(tags) => Some(tags).filter(|tags| !tags.is_empty()),
            // A service that has none, and counts none.
            Err(error) if attributes.tags.is_none() && error.is_not_offered() => None,
            Err(error) => return Err(error.into()),
        }
    } else {
        None
    };
    Ok(Opened {
        attributes,
        tags,
        told,
        body: Body::Object {
            client: Arc::clone(client),
            wanted,
        },
        whole,
    })
}

/// Opens a file, which has to be what was listed. Where its file system counts seconds, it is not
/// read before another change would show: it would be taken for what it was by each later run.
pub(super) async fn open_file(
    (folder, follows_links): (&Path, bool),
    key: &str,
    version: &ListedVersion,
) -> Result<Opened, MigrateError> {
    let path = folder.join(key);
    let open = || Source::open_found(folder, &path, follows_links);
    let mut source = block_in_place(open)?;
    let pause = source.seen().pause(SystemTime::now());
    if source.seen().counts_seconds() && !pause.is_zero() {
        sleep(pause).await;
        source = block_in_place(open)?;
    }
    let modified = mtime_text(source.modified());
    if source.seen().text() != version.object.etag {
        return Err(MoverError::SourceChanged { path }.into());
    }
    let whole = if version.object.bytes <= PART_BYTES {
        let read = block_in_place(|| {
            let read = source.read(&(0..version.object.bytes))?;
            source.check_unchanged().map(|()| read)
        })?;
        Some(read.into())
    } else {
        None
    };
    Ok(Opened {
        attributes: Attributes {
            headers: vec![(MTIME_HEADER.to_owned(), modified)],
            ..Attributes::default()
        },
        tags: None,
        told: None,
        body: Body::File(Arc::new(source)),
        whole,
    })
}

/// Holds bytes against what the source says of them.
pub(super) fn check(told: &Checksum, bytes: &[u8]) -> Result<(), MigrateError> {
    let mut running = Running::new(told.algorithm);
    block_in_place(|| running.update(bytes));
    same(told, &running.done())
}

pub(super) fn same(told: &Checksum, found: &Checksum) -> Result<(), MigrateError> {
    if told == found {
        return Ok(());
    }
    Err(MoverError::Damaged {
        expected: told.to_string(),
        found: found.to_string(),
    }
    .into())
}
