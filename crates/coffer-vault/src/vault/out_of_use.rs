//! Why a bucket is out of use, as soon as that is known.

use std::time::Instant;

use tokio::time::sleep;

use super::Inner;
use crate::error::VaultError;
use crate::limits::{OUT_OF_USE_LOOK, OUT_OF_USE_WAIT};
use crate::system::BucketRow;

impl Inner {
    /// Why a bucket that was looked up is out of use. One that is just being removed, or whose
    /// erase may be refused yet, is waited for: it is gone, or in use again, within milliseconds.
    pub(crate) async fn out_of_use(&self, row: &BucketRow) -> VaultError {
        let begun = Instant::now();
        loop {
            let why = self.system.out_of_use(row);
            let may_be_known_soon = matches!(why, VaultError::BucketInDoubt)
                && row.is_out_of_use()
                && !self.system.has_doubt();
            if !may_be_known_soon || begun.elapsed() > OUT_OF_USE_WAIT {
                return why;
            }
            sleep(OUT_OF_USE_LOOK).await;
        }
    }
}
