//! What a write at the target may replace: what was seen there, and nothing that others have
//! written since. And what a write became whose answer was lost.
//!
//! A condition goes with each write. It also makes a write whose answer was lost safe to send
//! again: where the first one arrived, the second is refused.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use http::Method;
use hyper::body::Bytes;
use time::OffsetDateTime;

use crate::migrate::Migration;
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::Given;
use crate::migrate::place::Place;
use crate::migrate::transfer::Seen;
use crate::s3::checksum::Checksum;
use crate::s3::{
    Answer, DonePart, ListedVersion, ObjectHead, ObjectName, Request, S3Error, Sent, Stored,
    date_of,
};

/// How a version is stored.
pub(super) enum Write<'a> {
    /// In one piece.
    Whole {
        request: &'a Request,
        body: &'a Bytes,
    },
    /// Out of parts, which are there.
    Complete {
        upload_id: &'a str,
        parts: &'a [DonePart],
        /// The checksum that the target compares.
        whole: Option<&'a Checksum>,
    },
}

/// How often a request failed, of which this is told as its bytes go out.
fn counting(sent: Option<Sent>) -> (Arc<AtomicU32>, Sent) {
    let failures = Arc::<AtomicU32>::default();
    let count = Arc::clone(&failures);
    let counting = move |bytes: i64| {
        // What went out in vain is taken back, be it nothing.
        if bytes <= 0 {
            count.fetch_add(1, Relaxed);
        }
        if let Some(sent) = &sent {
            sent(bytes);
        }
    };
    (failures, Arc::new(counting))
}

/// Whether it may be that the request before the one that was answered so did arrive.
fn may_have_arrived(failures: u32, error: &S3Error) -> bool {
    failures > 1 || error.is_passing() || error.is_without_answer()
}

impl Migration {
    /// Stores a version in the place of what was seen there.
    ///
    /// # Errors
    /// [`MigrateError::ChangedThere`] where something else is by now; what storing meets.
    pub(super) async fn store(
        &self,
        (place, key, of): (&Place, &str, &ListedVersion),
        name: &ObjectName,
        seen: &Seen,
        write: &Write<'_>,
        (sum, given): (&Checksum, Given),
    ) -> Result<Stored, MigrateError> {
        let condition = seen.condition();
        // Without a condition, what is written between the look and the write is lost. One on an
        // entity tag passes over the same bytes that others stored there again.
        let looks = condition.is_none() || seen.has_time() && !place.keeps_versions();
        if looks && !seen.is(self.head_there(name).await?.as_ref()) {
            return Err(MigrateError::ChangedThere);
        }
        place.ledger.sending(key, of, given)?;
        let sent = matches!(write, Write::Whole { .. }).then(|| self.sent());
        let (failures, counted) = counting(sent.clone());
        let error = match self
            .written(name, write, condition.as_slice(), counted)
            .await
        {
            Ok(stored) => return Ok(stored),
            Err(error) => error,
        };
        if error.is_not_offered() && condition.is_some() {
            // A server without conditions.
            if !seen.is(self.head_there(name).await?.as_ref()) {
                place.ledger.unsent(key, of)?;
                return Err(MigrateError::ChangedThere);
            }
            let (_, sent) = counting(sent);
            return Ok(self.written(name, write, &[], sent).await?);
        }
        let may_be_ours = error.is_changed() || error.is_absent() || error.is_without_answer();
        // An upload that is gone may have become an object.
        let is_completed = error.code() == Some("NoSuchUpload");
        if !is_completed && !may_have_arrived(failures.load(Relaxed), &error) {
            place.ledger.unsent(key, of)?;
        } else if may_be_ours
            && let Some(ours) = self.arrived_before(name, of.object.bytes, sum).await?
        {
            return Ok(ours);
        }
        let is_taken = error.is_changed() || error.code() == Some("NoSuchKey");
        Err(if is_taken {
            MigrateError::ChangedThere
        } else {
            error.into()
        })
    }

    async fn written(
        &self,
        name: &ObjectName,
        write: &Write<'_>,
        conditions: &[(String, String)],
        sent: Sent,
    ) -> Result<Stored, S3Error> {
        match write {
            Write::Whole { request, body } => {
                let request = Request::clone(request).headers(conditions);
                let request = request.body(Bytes::clone(body), Some(sent));
                let answer = self.target.send(&request).await?;
                self.target.stored(&request, answer).await
            }
            Write::Complete {
                upload_id,
                parts,
                whole,
            } => {
                let with = (conditions, Some(sent));
                let target = &self.target;
                target
                    .complete_upload_if(name, upload_id, parts, *whole, with)
                    .await
            }
        }
    }

    /// What a request before the one that was refused has stored, if that is what is there.
    async fn arrived_before(
        &self,
        name: &ObjectName,
        bytes: u64,
        sum: &Checksum,
    ) -> Result<Option<Stored>, MigrateError> {
        let head = match self.target.head_object(name).await {
            Ok(head) => head,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let is_ours = head.bytes == bytes && head.checksum.as_ref() == Some(sum);
        let stored_at = date_of(&head.headers, "last-modified");
        Ok(is_ours.then_some(Stored {
            told_at: stored_at.map(OffsetDateTime::unix_timestamp),
            etag: head.etag,
            version_id: head.version_id,
            checksum: head.checksum,
            is_unverified: false,
        }))
    }

    /// What is under a name now.
    async fn head_there(&self, name: &ObjectName) -> Result<Option<ObjectHead>, MigrateError> {
        match self.target.head_object(name).await {
            Ok(head) => Ok(Some(head)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a delete marker before what was seen: its version id.
    ///
    /// # Errors
    /// [`MigrateError::ChangedThere`] where something else is by now;
    /// [`MigrateError::NoVersions`]; what deleting meets.
    pub(in crate::migrate) async fn hide(
        &self,
        (place, key, of): (&Place, &str, &ListedVersion),
        name: &ObjectName,
        seen: &Seen,
    ) -> Result<String, MigrateError> {
        // Many servers pass over conditions of a deletion, and none knows one for what is absent.
        if !seen.is(self.head_there(name).await?.as_ref()) {
            return Err(MigrateError::ChangedThere);
        }
        place.ledger.sending(key, of, Given::default())?;
        let (failures, sent) = counting(None);
        match self.marked(name, seen, sent).await {
            Ok(Some(id)) => Ok(id),
            Ok(None) => {
                place.ledger.unsent(key, of)?;
                Err(MigrateError::NoVersions)
            }
            Err(error) => {
                if !may_have_arrived(failures.load(Relaxed), &error) {
                    place.ledger.unsent(key, of)?;
                } else if (error.is_changed() || error.is_absent())
                    && let Some(id) = self.marker_there(name).await?
                {
                    return Ok(id);
                }
                let is_taken = error.is_changed() || error.code() == Some("NoSuchKey");
                Err(if is_taken {
                    MigrateError::ChangedThere
                } else {
                    error.into()
                })
            }
        }
    }

    /// Puts a delete marker before what was seen, once: its version id, if one was made. After a
    /// request without an answer it looks for the marker before it asks again: without a condition,
    /// or with one that does not count, a second request would make a second one.
    async fn marked(
        &self,
        name: &ObjectName,
        seen: &Seen,
        sent: Sent,
    ) -> Result<Option<String>, S3Error> {
        let before = match seen {
            Seen::Nothing => self.marker_there(name).await?,
            Seen::Object(_) => None,
        };
        let plain = name.request(Method::DELETE).body(Bytes::new(), Some(sent));
        let mut guarded = match seen {
            Seen::Nothing => None,
            Seen::Object(_) => { seen.condition() }.map(|it| plain.clone().headers(&[it])),
        };
        let mut attempt = 0;
        loop {
            let request = guarded.as_ref().unwrap_or(&plain);
            let answered = self.target.send_once(request).await;
            let error = match answered {
                Ok(answer) => return Ok(marker_of(&answer)),
                Err(error) if error.is_not_offered() && guarded.is_some() => {
                    guarded = None;
                    continue;
                }
                Err(error) => error,
            };
            attempt += 1;
            self.target.pause(attempt, error).await?;
            let there = self.marker_there(name).await?;
            if there.is_some() && there != before {
                return Ok(there);
            }
        }
    }

    /// Deletes an object that was seen. Of one that is not the newest under its name there is no
    /// condition: servers judge that by the newest.
    async fn deleted(&self, name: &ObjectName, newest: Option<&Seen>) -> Result<(), S3Error> {
        let plain = name.request(Method::DELETE);
        if let Some(condition) = newest.and_then(Seen::condition) {
            let guarded = plain.clone().headers(&[condition]);
            match self.target.send(&guarded).await {
                Err(error) if error.is_not_offered() => {}
                answered => return answered?.of_deletion(),
            }
        }
        self.target.send(&plain).await?.of_deletion()
    }

    /// The version id of the delete marker that is the newest under a name.
    async fn marker_there(&self, name: &ObjectName) -> Result<Option<String>, S3Error> {
        let listing = self.target.list_versions(&name.bucket, &name.key, None);
        let page = listing.await?;
        let newest = { page.versions.into_iter() }
            .find(|version| version.object.key == name.key && version.is_latest);
        Ok(newest
            .filter(|newest| newest.is_marker)
            .map(|newest| newest.version_id))
    }

    /// Deletes an object of a bucket without versions, if it is still what was seen. False where
    /// another has put something else in its place.
    ///
    /// # Errors
    /// What asking and deleting meet.
    pub(in crate::migrate) async fn delete_seen(
        &self,
        name: &ObjectName,
        listed: &ListedVersion,
    ) -> Result<bool, MigrateError> {
        let seen = Seen::Object(listed.object.clone());
        let is_it = |now: Option<ObjectHead>| now.is_none() || seen.is(now.as_ref());
        if !is_it(self.head_there(name).await?) {
            return Ok(false);
        }
        let deleting = self.deleted(name, listed.is_latest.then_some(&seen));
        match deleting.await {
            Ok(()) => Ok(true),
            // Also where the answer to a first one was lost.
            Err(error) if error.is_changed() || error.is_absent() => {
                Ok(self.head_there(name).await?.is_none())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The version id of the marker that a deletion has made.
fn marker_of(answer: &Answer) -> Option<String> {
    let id = answer.header("x-amz-version-id").map(str::to_owned);
    id.filter(|_| answer.header("x-amz-delete-marker") == Some("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_failed_are_counted() {
        let (failures, sent) = counting(None);
        for bytes in [5, 3, -8, 8, 0] {
            sent(bytes);
        }
        assert_eq!(failures.load(Relaxed), 2);
    }
}
