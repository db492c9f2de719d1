//! By when what was stored was there, by the target's clock. Where it has no id of its own, another
//! may store the same there later, which this tells.

use time::OffsetDateTime;

use crate::limits::COMMIT_AGE_SLACK;
use crate::migrate::Migration;
use crate::migrate::place::Place;
use crate::s3::{ObjectName, Stored, bare, date_of};

const SLACK: i64 = COMMIT_AGE_SLACK.as_secs() as i64;

/// A time as a ledger has it: no time that it can't hold is told.
pub(in crate::migrate) fn second(of: Option<OffsetDateTime>) -> Option<u32> {
    u32::try_from(of?.unix_timestamp()).ok()
}

impl Migration {
    /// By which second it was there, as far as the target tells that. The date of its answer says
    /// so, unless that came before what it is the answer to, as with uploads in parts, or is by
    /// another clock, as a proxy's may be: the first object shows that. Else it is asked.
    pub(super) async fn there_by(
        &self,
        place: &Place,
        name: &ObjectName,
        stored: &Stored,
        is_whole: bool,
    ) -> Option<u32> {
        if stored.version_id.as_deref().is_some_and(|id| id != "null") {
            return None;
        }
        let date = { stored.told_at }.filter(|_| is_whole);
        let of_date = date.and_then(|date| u32::try_from(date + SLACK).ok());
        if of_date.is_some() && place.has_dates.get() == Some(&true) {
            return of_date;
        }
        // Not to know it is no failure of what is stored.
        let head = self.target.head_object(name).await.ok();
        let head = head.filter(|head| bare(&head.etag) == bare(&stored.etag));
        let told = head.and_then(|head| date_of(&head.headers, "last-modified"));
        if let (Some(date), Some(told)) = (date, told) {
            let is_after = told.unix_timestamp() <= date + SLACK;
            let _ = place.has_dates.set(is_after);
        }
        second(told).or(of_date)
    }
}
