//! The folder of a gateway, from one turn to the next.

use std::path::Path;

use coffer_replica::Place;
use coffer_vault::{BlobCache, blob_cache, prepare_cache, put_back_cache};

use crate::error::Error;

/// Readies it for a turn; gives the cache of blobs in it, where there is none yet.
pub async fn prepare(
    data: &Path,
    from: &Place,
    has_log: bool,
    (cache, max_bytes): (Option<BlobCache>, u64),
) -> Result<Option<BlobCache>, Error> {
    let (data, from) = (data.to_owned(), from.clone());
    blocking(move || {
        prepare_cache(&data, &from, has_log)?;
        match cache {
            // What is not in the log by now is of no use.
            Some(cache) => {
                cache.none_is_only_here();
                Ok(None)
            }
            // Not before the folder is known to be this gateway's.
            None => Ok(Some(blob_cache(&data, &from, max_bytes)?)),
        }
    })
    .await
}

/// Puts back what it held before a turn that reached no state of the log.
pub async fn put_back(data: &Path) -> Result<(), Error> {
    let folder = data.to_owned();
    if blocking(move || Ok(put_back_cache(&folder)?)).await? {
        tracing::warn!(
            data = %data.display(),
            "no state of the engine's log was reached: what this folder held before is kept, and \
             is in its place again; it may be all that is left of what the store lost"
        );
    }
    Ok(())
}

/// The same after a turn, unless it reached one.
pub async fn put_back_unless(is_reached: bool, data: &Path) {
    if is_reached {
        return;
    }
    if let Err(error) = put_back(data).await {
        tracing::warn!(%error, "what this folder held before is in `before`, and is kept");
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|stopped| Error::System {
        doing: "readying the folder of this gateway",
        source: std::io::Error::other(stopped),
    })?
}
