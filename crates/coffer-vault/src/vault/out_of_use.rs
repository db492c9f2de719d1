//! Why a bucket is out of use, as soon as that is known.

use std::time::Instant;

use tokio::time::sleep;

use super::Inner;
use crate::error::VaultError;
use crate::limits::{OUT_OF_USE_LOOK, OUT_OF_USE_WAIT};
use crate::open_buckets::OpenBucket;
use crate::system::BucketRow;

impl Inner {
    /// Why a bucket that was looked up is out of use. One that is just being removed, or whose
    /// erase may be refused yet, is waited for: it is gone, or in use again, within milliseconds.
    /// So it is before its row is, when it takes no commits any more, for those who were let in.
    pub(crate) async fn out_of_use(
        &self,
        row: &BucketRow,
        let_in: Option<&OpenBucket>,
    ) -> VaultError {
        let begun = Instant::now();
        loop {
            let why = self.system.out_of_use(row);
            let may_be_known_soon = matches!(why, VaultError::BucketInDoubt)
                && (row.is_out_of_use() || let_in.is_some_and(OpenBucket::is_gone))
                && !self.system.has_doubt();
            if !may_be_known_soon || begun.elapsed() > OUT_OF_USE_WAIT {
                return why;
            }
            sleep(OUT_OF_USE_LOOK).await;
        }
    }
}
