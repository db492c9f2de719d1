//! Uploads in parts that nothing goes on with: they are noted until it is known that they are
//! ended, for their parts would stay at the server, and nothing know of them.

use std::sync::Arc;

use tokio::task::block_in_place;
use tokio::time::timeout;

use super::state::ToEnd;
use crate::limits::{REST_WAIT, UPLOADS_TO_END};
use crate::mover::Mover;
use crate::mover::journal::Journal;
use crate::s3::{ObjectName, is_ended};

impl Mover {
    /// Ends uploads of an object, and gives back those that may still be there.
    pub(super) async fn end_uploads(
        &self,
        name: &ObjectName,
        mut uploads: Vec<String>,
    ) -> Vec<String> {
        let mut left = Vec::new();
        uploads.truncate(UPLOADS_TO_END);
        for upload_id in uploads {
            let ending = self.client.abort_upload(name, &upload_id);
            match timeout(REST_WAIT, ending).await {
                Ok(answer) if is_ended(&answer) => {}
                _ => left.push(upload_id),
            }
        }
        left
    }
}

/// Ends a journal, in which stays what is to be ended yet.
pub(super) fn end_journal(journal: Journal, to_end: Vec<String>) {
    if to_end.is_empty() || block_in_place(|| journal.begin(&ToEnd { to_end })).is_err() {
        journal.remove();
    }
}

/// The same of one that may be held elsewhere.
pub(super) fn forget(journal: Option<Arc<Journal>>, to_end: Vec<String>) {
    if let Some(journal) = journal.and_then(Arc::into_inner) {
        end_journal(journal, to_end);
    }
}
