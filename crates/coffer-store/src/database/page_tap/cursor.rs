//! What one who copies has taken, and has yet to take.

use crate::database::page_bits::PageBits;

/// One who copies.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// What is to be taken; none: all, as soon as anything is.
    pub(super) pages: Option<PageBits>,
    /// Whether anything changed since all was to be taken.
    pub(super) is_touched: bool,
    /// What was taken last, until that is settled.
    pub(super) in_flight: Vec<u32>,
    /// How many commits there were then, if that was all.
    pub(super) in_flight_commits: Option<u64>,
    /// How many commits there were when all had been taken, and arrived.
    pub(super) since: Option<u64>,
    /// The one who takes all for this one, who takes only what is changed behind that.
    pub(super) leader: Option<u32>,
}

impl Cursor {
    pub(super) fn give_back(&mut self) {
        self.in_flight_commits = None;
        let taken = std::mem::take(&mut self.in_flight);
        if let Some(pages) = &mut self.pages {
            taken.into_iter().for_each(|number| pages.insert(number));
        }
    }

    pub(super) fn arrived(&mut self) {
        self.in_flight.clear();
        if let Some(commits) = self.in_flight_commits.take() {
            self.since = Some(commits);
        }
    }

    /// All is new again.
    pub(super) fn lose(&mut self) {
        *self = Self {
            is_touched: self.is_touched,
            leader: self.leader,
            ..Self::default()
        };
    }

    /// From here on it is told of changes, if it did not know what there is.
    pub(super) fn begin(&mut self, commit_count: u64) {
        if self.pages.is_none() {
            self.pages = Some(PageBits::default());
            self.since = Some(commit_count);
        }
    }
}
