//! Copies that the server makes: no bytes come here.

use std::sync::Arc;

use crate::limits::{COPY_BYTES_MAX, COPY_PART_BYTES};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Moved};
use crate::mover::plan::pieces;
use crate::mover::together::Together;
use crate::s3::{
    Awaited, DonePart, ObjectHead, ObjectName, S3Error, Since, Stored, UNMARKED, Wanted, bare,
    etag_of_parts,
};

impl Mover {
    /// Has the server copy an object, with its metadata and tags.
    ///
    /// # Errors
    /// [`MoverError`]; then there is no copy.
    pub async fn copy(
        self: &Arc<Self>,
        from: &ObjectName,
        to: &ObjectName,
    ) -> Result<Moved, MoverError> {
        let bytes = self.head(from).await?.bytes;
        self.tell(&Event::Found { files: 1, bytes });
        self.copy_known(from, to, None).await
    }

    /// The same with an object that was listed, with this entity tag: its content then is meant.
    pub(super) async fn copy_known(
        self: &Arc<Self>,
        from: &ObjectName,
        to: &ObjectName,
        listed: Option<&str>,
    ) -> Result<Moved, MoverError> {
        let permit = self.permits.acquire().await.map_err(|_| MoverError::Lost)?;
        let head = self.head(from).await?;
        // The copy names the tag of now, which is to be that one. Some services list none.
        let listed = listed.map(bare).filter(|listed| !listed.is_empty());
        if listed.is_some_and(|listed| listed != bare(&head.etag)) {
            return Err(MoverError::ObjectChanged);
        }
        let stored = if head.bytes <= COPY_BYTES_MAX {
            let mut headers = vec![("x-amz-metadata-directive".to_owned(), "COPY".to_owned())];
            headers.extend(Wanted::of(from, &head).condition_of_copy());
            let stored = self.client.copy_object((from, &head), to, &headers).await;
            drop(permit);
            match stored {
                // Which of two, a server need not tell: the source's was there just before.
                Err(error) if error.code() == Some("NoSuchBucket") => {
                    let missing = self.absent(to).await;
                    return Err(if missing.is_of_bucket() {
                        missing
                    } else {
                        error.into()
                    });
                }
                stored => stored.map_err(changed)?,
            }
        } else {
            drop(permit);
            self.copy_parts(from, to, &head).await?
        };
        self.copied(from, to, &head, stored).await
    }

    /// Compares the copy with its source, where the server tells checksums of both.
    async fn copied(
        &self,
        from: &ObjectName,
        to: &ObjectName,
        head: &ObjectHead,
        stored: Stored,
    ) -> Result<Moved, MoverError> {
        let there = ObjectName {
            version_id: stored.version_id.clone(),
            ..to.clone()
        };
        let copy = self.head(&there).await?;
        let is_same_kind = |a: &crate::s3::checksum::Checksum| {
            { head.checksum.as_ref() }.is_some_and(|b| a.algorithm == b.algorithm)
        };
        let told = copy.checksum.as_ref().filter(|told| is_same_kind(told));
        if copy.bytes != head.bytes || told.is_some_and(|told| Some(told) != head.checksum.as_ref())
        {
            let text = |head: &ObjectHead| match &head.checksum {
                Some(checksum) => checksum.to_string(),
                None => format!("{} bytes", head.bytes),
            };
            return Err(MoverError::StoredOtherwise {
                object: format!("s3://{}/{}", to.bucket, to.key),
                told: text(&copy),
                sent: text(head),
            });
        }
        let place = |name: &ObjectName| format!("s3://{}/{}", name.bucket, name.key);
        let moved = Moved {
            from: place(from),
            to: place(to),
            bytes: head.bytes,
            kept_bytes: 0,
            checksum: told.map(ToString::to_string),
            verified: told.is_some(),
            checked: None,
            stored: None,
            transfer: "server",
            version_id: stored.version_id,
        };
        self.tell(&Event::Bytes(head.bytes as i64));
        self.tell(&Event::Done(&moved));
        Ok(moved)
    }

    async fn copy_parts(
        self: &Arc<Self>,
        from: &ObjectName,
        to: &ObjectName,
        head: &ObjectHead,
    ) -> Result<Stored, MoverError> {
        let headers = self.headers_of_copy(from, head).await?;
        let start = self.begin_upload(to, &headers).await?;
        let upload_id = &start.upload_id;
        let copying = async {
            let parts = self.all_copied(from, to, head, upload_id).await?;
            let awaited = Awaited {
                name: to,
                headers: &headers,
                bytes: head.bytes,
                checksum: head.checksum.as_ref(),
                etag: &|| etag_of_parts(&parts),
                began: Since::Server(start.began_seconds),
                sent: None,
                doubted: None,
            };
            let client = &self.client;
            let completing = client.complete_upload(&awaited, upload_id, &parts, None);
            Ok(completing.await?)
        };
        self.or_aborted(to, upload_id, copying).await
    }

    /// Headers that a copy in parts has to be given; one in one piece has them by itself.
    async fn headers_of_copy(
        &self,
        from: &ObjectName,
        head: &ObjectHead,
    ) -> Result<Vec<(String, String)>, MoverError> {
        let mut headers = head.description();
        if head.header("x-amz-tagging-count").is_some() {
            let tags = self.client.tags(from).await?;
            headers.push(("x-amz-tagging".to_owned(), tags));
        }
        Ok(headers)
    }

    async fn all_copied(
        self: &Arc<Self>,
        from: &ObjectName,
        to: &ObjectName,
        head: &ObjectHead,
        upload_id: &str,
    ) -> Result<Vec<DonePart>, MoverError> {
        let wanted = Wanted::of(from, head);
        if !wanted.is_marked() {
            return Err(self.client.unreadable(UNMARKED).into());
        }
        let mut together = Together::new(&self.permits);
        for (number, range) in (1..).zip(pieces(head.bytes, part_bytes(head.bytes))) {
            let (mover, from, to) = (Arc::clone(self), from.clone(), to.clone());
            let (upload_id, condition) = (upload_id.to_owned(), wanted.condition_of_copy());
            let work = move |permit| async move {
                let mut headers = vec![(
                    "x-amz-copy-source-range".to_owned(),
                    format!("bytes={}-{}", range.start, range.end - 1),
                )];
                headers.extend(condition);
                let part = (upload_id.as_str(), number);
                let copied = mover.client.copy_part(&from, &to, part, &headers).await;
                drop(permit);
                copied.map_err(changed)
            };
            if !together.add(1, work).await {
                break;
            }
        }
        let mut parts = together.all().await?;
        // What has no ETag may have been replaced between two parts.
        if !wanted.has_tag() && Wanted::of(from, &self.head(from).await?) != wanted {
            return Err(MoverError::ObjectChanged);
        }
        parts.sort_unstable_by_key(|part: &DonePart| part.number);
        Ok(parts)
    }
}

/// What it means that the source is another than was seen.
fn changed(error: S3Error) -> MoverError {
    if error.is_changed() {
        MoverError::ObjectChanged
    } else {
        error.into()
    }
}

/// How long the parts of a copy are.
fn part_bytes(bytes: u64) -> u64 {
    super::plan::part_bytes(bytes).max(COPY_PART_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn copies_keep_what_is_no_ascii() {
        let mut headers = HeaderMap::new();
        headers.insert("content-length", HeaderValue::from_static("1"));
        for name in ["content-disposition", "x-amz-meta-title"] {
            let value = HeaderValue::from_bytes("attachment; filename=\"für.pdf\"".as_bytes());
            headers.insert(name, value.unwrap());
        }
        let kept = ObjectHead::of_headers(headers).unwrap().description();
        let names: Vec<_> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-disposition", "x-amz-meta-title"]);
        assert!(kept.iter().all(|(_, value)| value.contains("für.pdf")));
    }
}
