//! Whether a transfer under way may go on.

use std::sync::Arc;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::waiting::Asker;
use crate::cutoff::SubjectCutoff;
use crate::limits::TRANSFER_LOOK;

/// What a transfer hangs on, beside its connection. It holds neither bucket nor key.
#[derive(Clone)]
pub(super) struct Allowed {
    cutoff: Arc<SubjectCutoff>,
    bucket_cut: CancellationToken,
    /// Whether its subject still has the right to it.
    has_right: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Allowed {
    pub(super) fn new(asker: &Asker, has_right: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            cutoff: asker.subject.cutoff.clone(),
            bucket_cut: asker.bucket.cut_token(),
            has_right: Arc::new(has_right),
        }
    }

    /// Waits until it may go on no more.
    pub(super) async fn over(self) {
        let has_lost_right = async {
            while (self.has_right)() {
                sleep(TRANSFER_LOOK).await;
            }
        };
        tokio::select! {
            () = self.cutoff.cut_off() => {}
            () = self.bucket_cut.cancelled() => {}
            () = has_lost_right => {}
        }
    }
}
