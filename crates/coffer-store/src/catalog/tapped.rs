//! Taking a catalog page by page, sealed as it is.

use std::sync::Arc;

use crate::catalog::open::Catalog;
use crate::database::page_tap::{PageTap, TakenPages};
use crate::error::Result;

impl Catalog {
    /// Has changes noted from now on, which outlast this catalog's being closed. The first tap
    /// stays. Said before the catalog is used, or else all pages count as changed.
    pub async fn tap_by(&self, tap: Arc<PageTap>) -> Result<()> {
        let tapped = self.connections().tapped();
        // In the place of a write, so that no commit is passed over.
        self.write(move |_| {
            tapped.attach(tap.clone());
            Ok(())
        })
        .await
    }

    /// Has the log read for changes.
    pub async fn note_changes(&self) -> Result<()> {
        let tapped = self.connections().tapped();
        self.write(move |_| {
            tapped.note();
            Ok(())
        })
        .await
    }

    /// Takes pages that were changed since `cursor` took them, `page_max` at most; what was taken
    /// before and has not arrived is taken again. None of a catalog that has no tap, or that
    /// `cursor` does not follow.
    pub async fn take_pages(&self, cursor: u32, page_max: usize) -> Result<Option<TakenPages>> {
        let tapped = self.connections().tapped();
        self.write(move |session| tapped.take(cursor, session.commit_count()?, page_max))
            .await
    }
}
