//! Work that waits for the disk, where it holds up no request.

use crate::error::{Result, VaultError};

/// Runs what waits for the disk where it holds up no other request.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| VaultError::ShuttingDown)?
}
