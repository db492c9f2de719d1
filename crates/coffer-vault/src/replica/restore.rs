//! Restoring a copy into a data folder, which a server then starts on.
//!
//! The folder has the keystore, and what opens it; the copy has the rest. It is marked as a backup
//! that is not complete until all of it is there and durable, and as a complete one afterwards: a
//! start refuses either, the second until it is told that the rollback is on purpose.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use coffer_durable::{now_ms, rfc3339};
use coffer_keys::{ExportIdentity, KeyFolder, Keystore, SourceSecrets, SourceSpec};
use coffer_replica::{
    BucketState, Copy, CopyReader, CopyRecord, Gap, KnownHead, Moment, Place, Store,
};
use coffer_seal::BucketId;

use super::fetch::Work;
use super::fetch_keystore::{FetchedKeystore, check_files, fetch_keystore, target};
use super::report::{RestoreEvent, Restored};
use crate::backup::BackupRecord;
use crate::blocking::blocking;
use crate::data_folder::{Folder, failed};
use crate::error::Result;

/// What is restored, and where to.
pub struct Restore {
    /// The copy.
    pub from: Place,
    /// The data folder.
    pub data: PathBuf,
    /// Where the root key is, if the folder does not say.
    pub source: Option<SourceSpec>,
    /// What opens the source.
    pub secrets: SourceSecrets,
    /// A head that the copy must have, or a later one.
    pub known: Option<KnownHead>,
    /// The moment to go back to, in milliseconds since 1970; the newest, if none is given.
    pub at_ms: Option<i64>,
    /// The head to go back to, by its number, where no moment is given.
    pub at_head: Option<u64>,
    /// The buckets, by name or id; all, if none is given.
    pub buckets: Vec<String>,
    /// What opens a keystore that lies in the copy for recipients of age.
    pub identity: Option<ExportIdentity>,
}

/// Restores a copy; the last event is [`RestoreEvent::Done`]. What an interrupted restore left is
/// used. A blob that is missing in the copy, or of another length, is told, and all else restored.
///
/// # Errors
/// [`CopyError::Target`](crate::CopyError::Target), `NoSuchBucket`; when something else is missing
/// in the copy, or is not what was written.
pub async fn restore(restore: Restore, mut told: impl FnMut(RestoreEvent)) -> Result<()> {
    let Restore {
        from,
        data,
        source,
        secrets,
        known,
        at_ms,
        at_head,
        buckets,
        identity,
    } = restore;
    let keys = (source, secrets, identity);
    let store = blocking(move || Ok(from.open(false)?)).await?;
    // Where there is none, nothing is to be said of keys.
    let record = CopyRecord::read(&*store).await?;
    let fetched = fetch_keystore((&store, &record), &data, keys.2.as_ref()).await?;
    let opened = async {
        let (folder, keystore, copy) = open_copy((store, record), &data, (keys.0, keys.1)).await?;
        if let Some(fetched) = &fetched {
            fetched.check_newest(&copy).await?;
        }
        let (reader, lacks) = find_head(copy, known, (at_ms, at_head), &mut told).await?;
        if reader.head().as_of_ms == 0 {
            let problem = "the copy was never complete: there is nothing to restore yet";
            return Err(target(&data, problem));
        }
        Ok((folder, keystore, reader, lacks))
    };
    let (folder, keystore, reader, lacks) = match opened.await {
        Err(error) => {
            if let Some(fetched) = fetched.filter(|fetched| fetched.is_of_no_use(&data)) {
                fetched.put_back(&data);
            }
            return Err(error);
        }
        opened => opened?,
    };
    let head = reader.head().clone();
    let mark = BackupRecord::begun(keystore.id(), rfc3339(head.as_of_ms));
    mark.write(&data)?;
    let mut work = Work::new(&reader, &data, &keystore);
    work.files().await?;
    // Names are in it.
    work.read_names(&folder, &buckets)?;
    let wanted = work.wanted(&buckets)?;
    work.tell_not_there(&buckets, &mut told);
    let bucket_count = fetch_buckets(&mut work, &keystore, &wanted, &mut told).await?;
    remove_others(&data, &wanted)?;
    FetchedKeystore::keep(&data);
    let left_out = work.left_out(&wanted, &buckets);
    mark.complete_without(&data, keystore.generation(), &left_out)?;
    told(RestoreEvent::Done(Restored {
        head: reader.known().clone(),
        as_of_ms: head.as_of_ms,
        until_ms: head.until_ms(),
        lacks,
        bucket_count,
        left_out_count: (head.buckets.len() - wanted.len()) as u64,
        blob_count: work.blob_count,
        fetched_bytes: work.fetched_bytes,
        missing_count: work.missing_count,
    }));
    Ok(())
}

/// Restores these buckets, as far as there is a key for them. How many.
async fn fetch_buckets(
    work: &mut Work<'_>,
    keystore: &Keystore,
    wanted: &BTreeMap<BucketId, BucketState>,
    told: &mut impl FnMut(RestoreEvent),
) -> Result<u64> {
    let mut bucket_count = 0;
    for (id, state) in wanted {
        if !keystore.holds_bucket(*id) {
            told(RestoreEvent::NoKey {
                bucket: id.to_string(),
            });
        } else if work.bucket(*id, state, told).await? {
            bucket_count += 1;
        }
    }
    Ok(bucket_count)
}

/// The head that is restored: of a moment, of a number, or the newest; at or beyond the one that is
/// known. And the time before that moment of which it lacks what was changed, if any.
async fn find_head(
    copy: Copy,
    known: Option<KnownHead>,
    (at_ms, at_head): (Option<i64>, Option<u64>),
    told: &mut impl FnMut(RestoreEvent),
) -> Result<(CopyReader, Option<Gap>)> {
    let mut lacks = None;
    let reader = match (at_ms, at_head) {
        (None, None) => CopyReader::newest(copy, known.as_ref()).await?,
        (None, Some(number)) => CopyReader::numbered(copy, known.as_ref(), number).await?,
        (Some(at_ms), _) => {
            let (reader, moment) = CopyReader::at(copy, known.as_ref(), at_ms).await?;
            lacks = lacking(&moment, at_ms);
            tell_moment(moment, at_ms, told);
            reader
        }
    };
    if let Some(known) = known
        && !reader.has(&known).await?
    {
        told(RestoreEvent::HeadLeft(known));
    }
    Ok((reader, lacks))
}

/// The time before a moment of which what was changed is not there, where nothing else tells it.
fn lacking(moment: &Moment, at_ms: i64) -> Option<Gap> {
    let is_told = moment.gap.is_some() || moment.unchecked.is_some() || moment.clock.is_some();
    let is_all = moment.is_newest || moment.complete_ms >= at_ms;
    (!is_told && !is_all).then_some(Gap {
        from_ms: moment.complete_ms,
        to_ms: at_ms,
    })
}

/// Takes the folder, and opens the copy with its keystore.
async fn open_copy(
    (store, record): (Store, CopyRecord),
    data: &Path,
    (source, secrets): (Option<SourceSpec>, SourceSecrets),
) -> Result<(Folder, Keystore, Copy)> {
    let (folder, keystore) = {
        let data = data.to_owned();
        blocking(move || take_folder(&data, source.as_ref(), &secrets)).await?
    };
    let copy = Copy::of(store, record, keystore.id(), &keystore.system_key()).await?;
    Ok((folder, keystore, copy))
}

/// Tells how what was found is to what was asked for.
fn tell_moment(moment: Moment, at_ms: i64, told: &mut impl FnMut(RestoreEvent)) {
    if let Some(clock) = moment.clock {
        told(RestoreEvent::Clock(clock));
    } else if let Some(gap) = moment.gap {
        told(RestoreEvent::Gap(gap));
    }
    if !moment.damaged.is_empty() {
        let (heads, unchecked) = (moment.damaged, moment.unchecked);
        told(RestoreEvent::Damaged { heads, unchecked });
    }
    if moment.is_newest && at_ms > now_ms() {
        told(RestoreEvent::Later);
    }
}

/// Takes a folder that holds a keystore and nothing else, or what an interrupted restore left.
fn take_folder(
    data: &Path,
    source: Option<&SourceSpec>,
    secrets: &SourceSecrets,
) -> Result<(Folder, Keystore)> {
    let no_keystore = "put the server's `keystore` there, with what opens it (`root.key`, \
                       `root.passphrase` and `keystore.source`, or name it by --root-key): this \
                       copy has no keys";
    if !data.join("keystore").exists() {
        return Err(target(data, no_keystore));
    }
    check_files(data)?;
    let folder = Folder::open_existing(data)?;
    let keystore = KeyFolder::new(data).open_read_only(source, secrets)?;
    Ok((folder, keystore))
}

/// Removes buckets that an earlier attempt restored, of another moment or more than are wanted now.
fn remove_others(data: &Path, wanted: &BTreeMap<BucketId, BucketState>) -> Result<()> {
    let folder = data.join("buckets");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed("read", &folder))?,
    };
    for entry in entries {
        let path = entry.map_err(failed("read", &folder))?.path();
        let id = path.file_name().and_then(|name| name.to_str());
        let id = id.and_then(BucketId::from_hex);
        if id.is_some_and(|id| !wanted.contains_key(&id)) {
            fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}
