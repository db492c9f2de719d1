//! The folder of a gateway, from one turn to the next.

use std::path::Path;

use coffer_replica::Place;
use coffer_vault::{BlobCache, blob_cache, prepare_cache, put_back_cache};

use crate::error::Error;

const MIB: u64 = 1_024 * 1_024;

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

/// Puts back what it held before a turn that reached no state of the log, and was ended.
pub async fn put_back(data: &Path) -> Result<(), Error> {
    if is_put_back(data).await? {
        tell_kept(data);
    }
    Ok(())
}

/// The same after a turn, unless it reached one; told or not.
pub async fn put_back_after(failed: Option<&Error>, data: &Path, is_told: bool) {
    let Some(failed) = failed else {
        return;
    };
    match is_put_back(data).await {
        Ok(_) if !is_told => {}
        // Where nothing had been moved yet, too: it lacks as much.
        Ok(_) if failed.is_full() => tracing::warn!(
            data = %data.display(),
            catalogs_mib = catalogs_bytes(data).div_ceil(MIB),
            "no room was left for a state of the engine's log: what this folder held before is in \
             its place. While a state is taken, the disk holds the catalogs twice, and 16 MiB: \
             make as much room, or give this gateway a larger disk"
        ),
        Ok(true) => tell_kept(data),
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(%error, "what this folder held before is in `before`, and is kept");
        }
    }
}

fn tell_kept(data: &Path) {
    tracing::warn!(
        data = %data.display(),
        "no state of the engine's log was reached: what this folder held before is kept, and is in \
         its place again; where the store lost something, it may be all that is left of it"
    );
}

async fn is_put_back(data: &Path) -> Result<bool, Error> {
    let folder = data.to_owned();
    blocking(move || Ok(put_back_cache(&folder)?)).await
}

/// How much the catalogs take of the state that is there.
fn catalogs_bytes(data: &Path) -> u64 {
    let buckets = std::fs::read_dir(data.join("buckets"));
    let buckets = buckets.into_iter().flatten().flatten();
    let catalogs = buckets.map(|bucket| bucket.path().join("catalog.db"));
    let all = catalogs.chain([data.join("system.db")]);
    all.filter_map(|path| Some(path.metadata().ok()?.len()))
        .sum()
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
