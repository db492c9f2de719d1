//! One bucket, from what is set of it before its objects come to what is set behind them.

mod crowd;

mod itself;

mod emptied;

mod lists;

use std::cmp::Ordering;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use crate::migrate::error::{MigrateError, Reach};
use crate::migrate::ledger::Ledger;
use crate::migrate::name::Work;
use crate::migrate::names::Name;
use crate::migrate::place::{Locks, Place, Versioning};
use crate::migrate::plan::Both;
use crate::migrate::report::BucketReport;
use crate::migrate::settings::{Before, versioning};
use crate::migrate::{Migration, Mode};
use crate::s3::{S3Error, is_ended};

use self::crowd::Crowd;

/// How names of buckets begin and end that S3 keeps for itself.
const RESERVED_STARTS: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];
const RESERVED_ENDS: [&str; 5] = ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

/// Whether a bucket of this name can be made (Amazon S3 User Guide, "General purpose bucket naming
/// rules").
fn may_be_made(name: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (3..=63).contains(&bytes.len())
        && bytes
            .iter()
            .all(|byte| is_plain(byte) || b"-.".contains(byte))
        && bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
        && !name.contains("..")
        && name.parse::<Ipv4Addr>().is_err()
        && !RESERVED_STARTS.iter().any(|start| name.starts_with(start))
        && !RESERVED_ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a bucket of the source keeps versions, or did.
fn keeps_versions(before: Option<&Before>) -> bool {
    before.is_some_and(|it| it.versioning != Versioning::Never)
}

impl Migration {
    /// Sees to a bucket. What goes wrong with it is told.
    pub(super) async fn bucket(self: &Arc<Self>, from: &str, to: &str, prefix: &str) {
        let report = match self.whole_bucket(from, to, prefix).await {
            Ok(report) => report,
            Err(error) => {
                self.ended(&self.origin.place(from), error);
                BucketReport {
                    bucket: from.to_owned(),
                    to: to.to_owned(),
                    missing: 1,
                    ..BucketReport::default()
                }
            }
        };
        self.report.bucket(report);
    }

    /// Tells what ended a bucket. What holds for all others as well ends the migration.
    fn ended(&self, what: &str, error: MigrateError) {
        let error = match error.reach() {
            Reach::One => error,
            _ => error.ending(""),
        };
        if !matches!(error.reach(), Reach::One | Reach::Bucket) {
            self.is_over.store(true, Relaxed);
        }
        self.missing(what, &error);
    }

    /// Whether a bucket is at the target; where it is not, it must be one that can be made.
    async fn is_there(&self, bucket: &str, prefix: &str) -> Result<bool, MigrateError> {
        match self.target.head_bucket(bucket).await {
            Ok(_) => Ok(true),
            Err(S3Error::Refused {
                status: 400 | 404, ..
            }) if !may_be_made(bucket) => {
                let bucket = bucket.to_owned();
                Err(MigrateError::BucketName { bucket })
            }
            Err(error) if error.is_absent() => Ok(false),
            // The answer to HEAD has no body that says why.
            Err(_) => {
                let listing = self.target.list_objects(bucket, prefix, None, None);
                Ok(listing.await.map(|_| true)?)
            }
        }
    }

    /// What versioning is at the target, or would be when the bucket is prepared.
    async fn versioning_there(
        &self,
        bucket: &str,
        is_there: bool,
        before: Option<&Before>,
    ) -> Result<Versioning, MigrateError> {
        if self.options.mode == Mode::Plan && keeps_versions(before) {
            return Ok(Versioning::Enabled);
        }
        if !is_there {
            return Ok(Versioning::Never);
        }
        Ok(versioning(&self.target, bucket).await?)
    }

    async fn whole_bucket(
        self: &Arc<Self>,
        from: &str,
        to: &str,
        prefix: &str,
    ) -> Result<BucketReport, MigrateError> {
        self.check_elsewhere(from, to)?;
        self.origin.check_folder(from)?;
        let client = self.origin.client();
        let before = match &client {
            Some(client) => Some(Before::of(client, from).await?),
            None => None,
        };
        let is_there = self.is_there(to, prefix).await?;
        let moves = self.options.mode == Mode::Move;
        let text = self.origin.place(from);
        let target = format!("{}/{to}/{prefix}", self.target.endpoint().text());
        let ledger = Ledger::open(&self.options.state, &text, &target, moves)?;
        { self.prepare(to, is_there, before.as_ref(), &ledger) }.await?;
        let is_there = is_there || moves;
        let versioning = { self.versioning_there(to, is_there, before.as_ref()) }.await?;
        let place = Arc::new(Place {
            ledger,
            from: from.to_owned(),
            locks: { before.as_ref() }.map_or(Locks::None, |before| before.locks),
            source_keeps: keeps_versions(before.as_ref()),
            says_versioning: before.as_ref().is_none_or(|before| before.says_versioning),
            folder: self.origin.folder(from),
            client,
            text,
            to: to.to_owned(),
            follows_links: self.options.follow_links,
            prefix: prefix.to_owned(),
            is_there,
            is_unread: AtomicBool::new(false),
            versioning,
            has_dates: OnceLock::new(),
            tally: BucketReport {
                bucket: from.to_owned(),
                to: to.to_owned(),
                ..BucketReport::default()
            }
            .into(),
        });
        if self.options.mode == Mode::Check && !is_there {
            // Of a bucket without objects, nothing else tells.
            place.count(|tally| tally.missing += 1);
            self.missing(&place.text, &MigrateError::AbsentBucket);
        }
        let mut crowd = Crowd::new(self, &place);
        let walked = self.walk(&place, &mut crowd).await;
        let walked = crowd.end(walked).await;
        let left = self.leave(&place, walked.is_ok()).await;
        if moves && walked.is_ok() && left.is_ok() {
            self.end_uploads(&place).await;
        }
        let mut met = { walked.as_ref().err().into_iter() }.chain(left.as_ref().err());
        // What would be asked of a service then would be refused as well.
        let is_over = met.any(|error| error.reach() != Reach::One);
        if let Some(before) = before.filter(|_| prefix.is_empty() && !is_over) {
            self.settle(&place, &before).await;
        }
        let gone = self.of_gone(&place, &walked);
        for error in [walked.err().or(gone), left.err()].into_iter().flatten() {
            place.count(|tally| tally.missing += 1);
            self.ended(&place.text, error);
        }
        Ok(place.tally.lock().clone())
    }

    /// What is told of all that is gone at the source, where both lists came to their ends. That is
    /// a difference, and where the source has nothing at all, it is not deleted.
    fn of_gone(&self, place: &Place, walked: &Result<bool, MigrateError>) -> Option<MigrateError> {
        let count = place.tally.lock().gone;
        match walked {
            Ok(false) if count > 0 => Some(MigrateError::Emptied),
            Ok(true) if self.options.mode == Mode::Check && count > 0 => {
                Some(MigrateError::Gone { count })
            }
            _ => None,
        }
    }

    /// Goes through both lists in step. False where the source has nothing, and so nothing was to
    /// be deleted.
    async fn walk(
        self: &Arc<Self>,
        place: &Arc<Place>,
        crowd: &mut Crowd,
    ) -> Result<bool, MigrateError> {
        place.check_versioning(&[])?;
        let (mut source, mut target) = self.lists(place);
        let mut doubts = self.doubts(place)?;
        let mut from = self.next_from(place, &mut source, &mut doubts).await?;
        let mut there = self.next(place, &mut target, &mut doubts).await?;
        let may_delete = !self.options.delete || self.options.delete_all;
        let deletes = from.is_some() || may_delete;
        loop {
            let order = match (&from, &there) {
                (None, None) => return Ok(deletes),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(from), Some(there)) => from.key.cmp(&there.key),
            };
            let (mut of, mut at) = (Name::default(), Name::default());
            if order.is_le() {
                of = from.take().unwrap_or_default();
            }
            if order.is_ge() {
                at = there.take().unwrap_or_default();
            }
            let key = if order.is_le() { of.key } else { at.key };
            let disorder = of.disorder.or(at.disorder);
            let both = Both {
                is_hidden: doubts.hidden.covers(&key),
                key,
                from: of.versions,
                there: at.versions,
            };
            if let Some(error) = disorder {
                self.without_order(place, &both, &error);
            } else {
                let deletes_it = deletes && !self.stays(place, &both, &mut doubts);
                self.begin(place, both, deletes_it, crowd).await?;
            }
            if order.is_le() {
                from = self.next_from(place, &mut source, &mut doubts).await?;
            }
            if order.is_ge() {
                there = self.next(place, &mut target, &mut doubts).await?;
            }
        }
    }

    /// Begins a name, when there is room for it.
    ///
    /// # Errors
    /// What holds for all that is left.
    async fn begin(
        self: &Arc<Self>,
        place: &Arc<Place>,
        both: Both,
        deletes: bool,
        crowd: &mut Crowd,
    ) -> Result<(), MigrateError> {
        place.ledger.listed(&both.key, &both.from);
        let asks = self.options.mode != Mode::Move || self.options.tags_and_locks;
        let matched = both.matched(&place.ledger);
        let is_all = matched.is_all();
        let work = Work::new(both, matched, deletes);
        if asks || !is_all {
            return crowd.add(work).await;
        }
        // Nothing is asked, so nothing is waited for.
        match self.name(place, work).await {
            Ok(_) => Ok(()),
            Err(held) => Err(held.error),
        }
    }

    /// Ends uploads of earlier runs whose versions are gone at the source. Of a folder that is not
    /// read whole, none is known to be.
    async fn end_uploads(&self, place: &Place) {
        if place.is_unread.load(Relaxed) {
            return;
        }
        for (of, begun) in place.ledger.needless_uploads() {
            let name = place.at_target(&begun.key);
            // What can't be ended now, a later run ends.
            let ending = self.target.abort_upload(&name, &begun.upload_id);
            if is_ended(&ending.await) {
                let _ = place.ledger.ended(of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_buckets_that_can_be_made() {
        let longest = "a".repeat(63);
        for name in ["abc", "2026", "a.b-c", longest.as_str()] {
            assert!(may_be_made(name), "{name}");
        }
        let too_long = "a".repeat(64);
        for name in [
            "",
            "ab",
            "Abc",
            "a_b",
            "-ab",
            "ab.",
            "a..b",
            "10.0.0.1",
            "xn--ab",
            "ab--x-s3",
            "bücher",
            too_long.as_str(),
        ] {
            assert!(!may_be_made(name), "{name}");
        }
    }
}
