//! Names that a list named just before: some services name one twice, at the end of a page and the
//! beginning of the next.

use std::collections::HashSet;
use std::mem;

/// The names of a page, and of the one before it.
#[derive(Default)]
pub(super) struct Recent {
    page: HashSet<String>,
    before: HashSet<String>,
}

impl Recent {
    /// Another page begins.
    pub(super) fn begin_page(&mut self) {
        self.before = mem::take(&mut self.page);
    }

    /// Whether a name is none of those.
    pub(super) fn is_new(&mut self, name: &str) -> bool {
        !self.before.contains(name) && self.page.insert(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_page_and_the_last_are_known() {
        let mut recent = Recent::default();
        assert!(recent.is_new("a") && recent.is_new("b") && !recent.is_new("a"));
        recent.begin_page();
        assert!(!recent.is_new("b") && recent.is_new("c"));
        recent.begin_page();
        assert!(recent.is_new("b") && !recent.is_new("c"));
    }
}
