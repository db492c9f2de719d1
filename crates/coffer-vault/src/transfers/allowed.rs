//! Whether a transfer under way may go on.

use std::pin::Pin;
use std::sync::Arc;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::waiting::Asker;
use crate::cutoff::SubjectCutoff;
use crate::limits::TRANSFER_LOOK;

/// Says whether a subject still has the right to its transfer.
pub(crate) type HasRight =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// What a transfer hangs on, beside its connection. It holds neither bucket nor key.
#[derive(Clone)]
pub(super) struct Allowed {
    cutoff: Arc<SubjectCutoff>,
    bucket_cut: CancellationToken,
    has_right: HasRight,
}

impl Allowed {
    pub(super) fn new(asker: &Asker, has_right: HasRight) -> Self {
        Self {
            cutoff: asker.subject.cutoff.clone(),
            bucket_cut: asker.bucket.cut_token(),
            has_right,
        }
    }

    /// Waits until it may go on no more.
    pub(super) async fn over(self) {
        let has_lost_right = async {
            while (self.has_right)().await {
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
