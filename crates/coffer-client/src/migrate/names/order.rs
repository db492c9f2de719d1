//! The order of a name's versions and delete markers.
//!
//! S3's rule is that a list gives each name's from the newest to the oldest, versions and delete
//! markers between each other, and calls the first of them, and no other, the newest. Such a list
//! counts as it is, whatever its times are: clocks are put back, and an upload in parts may have
//! the time of its beginning. So no order is changed unless the list itself shows that it is
//! another:
//! - Some services list all versions of a page, and then all its delete markers, or those first.
//!   What shows that is a page whose names begin anew there, or a name whose newest is not its
//!   first and leads the other kind. Then versions and markers go between each other by their
//!   times, where these decide it, and those of one kind stay in the order they were listed in.
//! - Where the last is the newest, and all times rise, the list has the oldest first.
//!
//! What is listed of one name by kinds may be right, and may be of such a service: an object that
//! was deleted before it was ever stored, or one that was deleted and stored again. It is right
//! where the times of both kinds agree with it, and where they agree with no order at all, for then
//! they show nothing. Where they agree with another order, or two are the same, it can't be told,
//! but of a service that is known to list both kinds between each other. A name without a newest,
//! or with several, is not known at all: what is newer may have been left out.

use time::OffsetDateTime;

use crate::s3::{ListedVersion, VersionsPage};

const NO_NEWEST: &str = "calls none of this name's versions the newest";
const SEVERAL: &str =
    "calls several of this name's versions the newest, or does not say which one is";
const NOT_FIRST: &str = "does not list the newest of this name's versions first";
const APART: &str =
    "lists this name's versions and its delete markers apart, and their times do not decide";

/// How a service lists versions and delete markers, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::migrate) enum Kinds {
    Unknown,
    /// Between each other.
    Interleaved,
    /// One kind behind the other.
    Apart,
}

/// How the names of Amazon's hosts end.
const AMAZON: [&str; 2] = [".amazonaws.com", ".amazonaws.com.cn"];

impl Kinds {
    /// What is known of a host by its name.
    pub(in crate::migrate) fn of(host: &str) -> Self {
        let host = host.split(':').next().unwrap_or_default();
        if AMAZON.iter().any(|end| host.ends_with(end)) {
            Self::Interleaved
        } else {
            Self::Unknown
        }
    }

    /// The same, when a page was seen as it came.
    pub(super) fn seen(self, page: &VersionsPage) -> Self {
        // Its pages are S3's, in all releases.
        if page.is_of_coffer {
            return Self::Interleaved;
        }
        let page = &page.versions;
        let mut falls = { page.windows(2) }.filter(|it| it[0].object.key > it[1].object.key);
        let Some(fall) = falls.next() else {
            let mut names = page.chunk_by(|a, b| a.object.key == b.object.key);
            let shows_it = self == Self::Unknown && names.any(|name| runs(name) > 2);
            return if shows_it { Self::Interleaved } else { self };
        };
        let is_between = fall[0].is_marker != fall[1].is_marker;
        if is_between && falls.next().is_none() && runs(page) == 2 {
            return Self::Apart;
        }
        self
    }
}

/// How often one kind follows upon the other, with the first.
fn runs(listed: &[ListedVersion]) -> usize {
    listed.chunk_by(|a, b| a.is_marker == b.is_marker).count()
}

/// A page whose names come one behind the other, each as it was listed.
pub(super) fn by_name(mut page: Vec<ListedVersion>) -> Vec<ListedVersion> {
    page.sort_by(|a, b| a.object.key.cmp(&b.object.key));
    page
}

/// What is listed of a name, each once, the newest first.
pub(super) struct InOrder {
    pub(super) versions: Vec<ListedVersion>,
    /// Why the order can't be told; then it is that of the list.
    pub(super) problem: Option<&'static str>,
}

/// The versions of a name in their order, of what each page has of it.
pub(super) fn in_order(mut pages: Vec<Vec<ListedVersion>>, kinds: Kinds) -> InOrder {
    let mut seen = std::collections::HashSet::new();
    for page in &mut pages {
        page.retain(|it| it.version_id == "null" || seen.insert(it.version_id.clone()));
    }
    let are_between = pages.iter().any(|page| runs(page) > 2);
    let mut versions: Vec<ListedVersion> = pages.into_iter().flatten().collect();
    // Of what has no id, only the same is the same.
    versions.dedup();
    match changed(&versions, kinds, are_between) {
        Ok(Some(order)) => versions = order,
        Ok(None) => {}
        Err(problem) => {
            let problem = Some(problem);
            return InOrder { versions, problem };
        }
    }
    let problem = None;
    InOrder { versions, problem }
}

/// Another order than that of the list, where the list shows that it is another; `are_between`
/// says whether a page has its kinds between each other.
///
/// # Errors
/// Why it can't be told.
fn changed(
    listed: &[ListedVersion],
    kinds: Kinds,
    are_between: bool,
) -> Result<Option<Vec<ListedVersion>>, &'static str> {
    let mut latest = { listed.iter().enumerate() }.filter(|(_, it)| it.is_latest);
    let newest = match (latest.next(), latest.next()) {
        (Some((newest, _)), None) => newest,
        (None, _) => return Err(NO_NEWEST),
        (Some(_), Some(_)) => return Err(SEVERAL),
    };
    let is_known = runs(listed) == 1 || are_between || kinds == Kinds::Interleaved;
    if newest == 0 && (is_known || agrees(&listed[1..])) {
        return Ok(None);
    }
    if newest + 1 == listed.len() && newest > 0 && rise(listed) {
        return Ok(Some(listed.iter().rev().cloned().collect()));
    }
    if newest == 0 && kinds == Kinds::Unknown {
        return if may_be_apart(listed) {
            Err(APART)
        } else {
            Ok(None)
        };
    }
    let leads = |before: &ListedVersion| before.is_marker != listed[newest].is_marker;
    if are_between || !listed[..newest].iter().all(leads) {
        return Err(NOT_FIRST);
    }
    let order = merged(listed, newest);
    if agrees(&order[1..]) {
        Ok(Some(order))
    } else {
        Err(APART)
    }
}

/// Whether times strictly rise along a list.
fn rise(listed: &[ListedVersion]) -> bool {
    let times: Option<Vec<_>> = listed.iter().map(|it| it.object.modified_at()).collect();
    times.is_some_and(|times| times.is_sorted_by(|a, b| a < b))
}

/// Whether of every two of different kinds, the first is the newer one by their times.
fn agrees(order: &[ListedVersion]) -> bool {
    if runs(order) < 2 {
        return true;
    }
    let mut oldest: [Option<OffsetDateTime>; 2] = [None; 2];
    order.iter().all(|it| {
        let Some(time) = it.object.modified_at() else {
            return false;
        };
        let own = usize::from(it.is_marker);
        let is_older = oldest[1 - own].is_none_or(|other| other > time);
        oldest[own] = Some(oldest[own].map_or(time, |before| before.min(time)));
        is_older
    })
}

/// Whether the times of a list, whose first is the newest, are those of some order of its two
/// kinds. Without times, it may be any.
fn may_be_apart(listed: &[ListedVersion]) -> bool {
    let time = |it: &ListedVersion| it.object.modified_at();
    let of_kind = |is_marker| listed.iter().filter(move |it| it.is_marker == is_marker);
    let falls = |is_marker| of_kind(is_marker).is_sorted_by(|a, b| time(a) >= time(b));
    let has_newer = || listed.iter().any(|it| time(it) > time(&listed[0]));
    listed.iter().any(|it| time(it).is_none()) || falls(true) && falls(false) && !has_newer()
}

/// The newest, and then both kinds between each other by their times.
fn merged(listed: &[ListedVersion], newest: usize) -> Vec<ListedVersion> {
    let rest = || { listed.iter().enumerate() }.filter(|(at, _)| *at != newest);
    let of_kind = |is_marker| {
        rest()
            .map(|(_, it)| it)
            .filter(move |it| it.is_marker == is_marker)
    };
    let (mut versions, mut markers) = (of_kind(false).peekable(), of_kind(true).peekable());
    let mut order = vec![listed[newest].clone()];
    loop {
        let is_version_next = match (versions.peek(), markers.peek()) {
            (Some(version), Some(marker)) => {
                version.object.modified_at() > marker.object.modified_at()
            }
            (version, _) => version.is_some(),
        };
        let next = if is_version_next {
            versions.next()
        } else {
            markers.next()
        };
        let Some(next) = next else { return order };
        order.push(next.clone());
    }
}

#[cfg(test)]
mod tests;
