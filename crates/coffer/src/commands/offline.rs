//! `coffer offline`: reads a stopped server's data with its root key.

use crate::secrets::passphrase::PassphraseArgs;
use clap::{Args, Subcommand};
use std::io::{self, Write};
use std::path::Path;

use coffer_keys::SourceSpec;
use coffer_vault::offline::{BlobKey, BucketPlace, ObjectKeys, Offline, OfflineBucket};
use coffer_vault::record::{ListQuery, ListedObject, ObjectName};
use coffer_vault::version::{VersionId, Which};
use coffer_vault::{VaultError, VersionsQuery};
use futures::StreamExt;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::config::args::NoRemoteArgs;
use crate::error::Error;
use crate::limits::OFFLINE_PAGE;
use crate::output::printable::{date, printable};
use crate::output::table::unless_read_enough;
use crate::secrets::root_source::secrets_of;

/// `coffer offline`.
#[derive(Debug, Args)]
#[command(after_help = OFFLINE_EXAMPLES, disable_help_subcommand = true)]
pub struct OfflineArgs {
    /// It asks no server.
    #[command(flatten)]
    pub remote: NoRemoteArgs,
    /// Where the root key is of a copy that does not record it, such as file:/PATH
    #[arg(long, value_name = "SOURCE", global = true)]
    pub root_key: Option<SourceSpec>,
    /// Where the passphrase of the root key comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: OfflineCommand,
}

/// What can be done with a stopped server's data.
#[derive(Debug, Subcommand)]
pub enum OfflineCommand {
    /// List buckets, or the objects of a bucket
    #[command(after_help = OFFLINE_EXAMPLES)]
    Ls {
        /// Bucket whose objects to list
        bucket: Option<String>,
        /// Only names that begin so
        prefix: Option<String>,
        /// Older versions and delete markers, too, with their ids
        #[arg(long)]
        versions: bool,
        /// Exact names and more, as JSON, an object a line
        #[arg(long)]
        json: bool,
    },
    /// Write an object to standard output
    #[command(after_help = OFFLINE_EXAMPLES)]
    Cat {
        /// Bucket
        bucket: String,
        /// Object name
        name: String,
        /// Which version: `ls --versions` shows their ids; without this, the newest
        #[arg(long, value_name = "ID")]
        version_id: Option<VersionId>,
    },
    /// Print the files and keys of an object, for any Cobblestone-256 implementation
    #[command(after_help = KEYS_EXAMPLES)]
    Keys {
        /// Bucket
        bucket: String,
        /// Object name
        name: String,
        /// Which version: `ls --versions` shows their ids; without this, the newest
        #[arg(long, value_name = "ID")]
        version_id: Option<VersionId>,
        /// Changes nothing: they are told as JSON, always
        #[arg(long)]
        json: bool,
    },
}

fn bucket_of(command: &OfflineCommand) -> &str {
    match command {
        OfflineCommand::Ls { bucket, .. } => bucket.as_deref().unwrap_or_default(),
        OfflineCommand::Cat { bucket, .. } | OfflineCommand::Keys { bucket, .. } => bucket,
    }
}

/// Runs one of the commands; what was asked for goes to standard output.
pub async fn offline(data: &Path, args: &OfflineArgs) -> Result<(), Error> {
    let command = &args.command;
    let source = args.root_key.as_ref();
    let secrets = secrets_of(data, source, &args.passphrase)?;
    let offline = Offline::open(data, source, &secrets).map_err(|error| match error {
        VaultError::FolderInUse { .. } => Error::ServerRunning {
            data: data.to_owned(),
        },
        error => error.into(),
    })?;
    for rollback in offline.rollbacks().await {
        tracing::warn!("ROLLBACK: {rollback}; it is read as it is");
    }
    let done = match command {
        OfflineCommand::Ls {
            bucket: None, json, ..
        } => list_buckets(&offline, *json).await,
        OfflineCommand::Ls {
            bucket: Some(bucket),
            prefix,
            versions,
            json,
        } => {
            let prefix = prefix.clone().unwrap_or_default();
            if *versions {
                list_versions(&offline, bucket, prefix, *json).await
            } else {
                list_objects(&offline, bucket, prefix, *json).await
            }
        }
        OfflineCommand::Cat {
            bucket,
            name,
            version_id,
        } => cat(&offline, bucket, (object(name)?, which(*version_id))).await,
        OfflineCommand::Keys {
            bucket,
            name,
            version_id,
            json: _,
        } => keys(&offline, bucket, (object(name)?, which(*version_id))).await,
    };
    unless_read_enough(done).map_err(|error| error.of_bucket(data, bucket_of(command)))
}

fn object(name: &str) -> Result<ObjectName, Error> {
    ObjectName::new(name).ok_or_else(|| Error::Option {
        option: "NAME",
        problem: "an object's name has 1 to 1,024 bytes".to_owned(),
    })
}

fn which(version: Option<VersionId>) -> Which {
    version.map_or(Which::Current, Which::Version)
}

fn writing(source: io::Error) -> Error {
    Error::System {
        doing: "writing to standard output",
        source,
    }
}

/// A line of `offline ls --json`.
#[derive(Serialize)]
#[serde(untagged)]
enum Row<'a> {
    Bucket {
        bucket: Option<&'a str>,
        id: String,
        level: Option<&'a str>,
        is_there: bool,
    },
    Object {
        name: &'a str,
        size_bytes: u64,
        modified_ms: i64,
        etag: &'a str,
    },
    Version {
        name: &'a str,
        version_id: String,
        is_latest: bool,
        is_delete_marker: bool,
        size_bytes: Option<u64>,
        modified_ms: i64,
        etag: Option<&'a str>,
    },
}

impl Row<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

async fn list_buckets(offline: &Offline, json: bool) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    for OfflineBucket {
        id,
        name,
        level,
        place,
    } in offline.buckets().await
    {
        let (bucket, level) = (name.as_deref(), level.as_deref());
        let written = if json {
            Row::Bucket {
                bucket,
                id: id.to_string(),
                level,
                is_there: place == BucketPlace::Here,
            }
            .write(&mut out)
        } else {
            let name = bucket.unwrap_or("(name unknown)");
            let level = level.unwrap_or("(unknown)");
            let place = match place {
                BucketPlace::Here => "",
                BucketPlace::NotRestored => "  (not restored)",
                BucketPlace::Missing => "  (its folder is missing)",
            };
            writeln!(out, "{id}  {level:12}  {name}{place}")
        };
        written.map_err(writing)?;
    }
    out.flush().map_err(writing)
}

async fn list_objects(
    offline: &Offline,
    bucket: &str,
    prefix: String,
    json: bool,
) -> Result<(), Error> {
    let mut query = ListQuery {
        prefix,
        limit: OFFLINE_PAGE,
        ..ListQuery::default()
    };
    loop {
        let page = offline.list(bucket, query.clone()).await?;
        let mut out = io::BufWriter::new(io::stdout().lock());
        for ListedObject {
            name,
            size_bytes,
            modified_ms,
            etag,
            ..
        } in &page.objects
        {
            let (name, size_bytes, modified_ms) = (name.expose(), *size_bytes, *modified_ms);
            let written = if json {
                Row::Object {
                    name,
                    size_bytes,
                    modified_ms,
                    etag,
                }
                .write(&mut out)
            } else {
                writeln!(
                    out,
                    "{} {size_bytes:>12} {}",
                    date(modified_ms),
                    printable(name)
                )
            };
            written.map_err(writing)?;
        }
        out.flush().map_err(writing)?;
        if page.next.is_none() {
            return Ok(());
        }
        query.start_after = page.next;
    }
}

async fn list_versions(
    offline: &Offline,
    bucket: &str,
    prefix: String,
    json: bool,
) -> Result<(), Error> {
    let mut query = VersionsQuery {
        prefix,
        limit: OFFLINE_PAGE,
        ..VersionsQuery::default()
    };
    loop {
        let page = offline.list_versions(bucket, query.clone()).await?;
        let mut out = io::BufWriter::new(io::stdout().lock());
        for listed in &page.versions {
            let written = if json {
                let content = listed.content.as_ref();
                Row::Version {
                    name: listed.name.expose(),
                    version_id: listed.version.to_string(),
                    is_latest: listed.is_latest,
                    is_delete_marker: content.is_none(),
                    size_bytes: content.map(|content| content.size_bytes),
                    modified_ms: listed.modified_ms,
                    etag: content.map(|content| content.etag.as_str()),
                }
                .write(&mut out)
            } else {
                let size = listed.content.as_ref();
                let size = size.map_or("deleted".to_owned(), |size| size.size_bytes.to_string());
                writeln!(
                    out,
                    "{} {size:>12} {:32} {}",
                    date(listed.modified_ms),
                    listed.version.to_string(),
                    printable(listed.name.expose())
                )
            };
            written.map_err(writing)?;
        }
        out.flush().map_err(writing)?;
        if page.next.is_none() {
            return Ok(());
        }
        query.start_after = page.next;
    }
}

async fn cat(
    offline: &Offline,
    bucket: &str,
    (name, which): (ObjectName, Which),
) -> Result<(), Error> {
    let (_, mut body) = offline.read(bucket, &name, which).await?;
    let mut out = io::stdout().lock();
    while let Some(bytes) = body.next().await {
        out.write_all(&bytes?).map_err(writing)?;
    }
    out.flush().map_err(writing)
}

/// An element of the list that `offline keys` prints.
#[derive(Serialize)]
struct Key<'a> {
    blob_file: &'a Path,
    context_hex: String,
    data_key_hex: &'a str,
    plaintext_bytes: u64,
}

async fn keys(
    offline: &Offline,
    bucket: &str,
    (name, which): (ObjectName, Which),
) -> Result<(), Error> {
    let blobs = match offline.keys(bucket, &name, which).await? {
        ObjectKeys::Inline { plaintext_bytes } => return Err(Error::InCatalog { plaintext_bytes }),
        ObjectKeys::Blobs(blobs) => blobs,
    };
    let element = |blob: &BlobKey| -> Result<Zeroizing<Vec<u8>>, Error> {
        let data_key_hex = Zeroizing::new(hex::encode(blob.data_key.expose()));
        let key = Key {
            blob_file: &blob.blob_file,
            context_hex: hex::encode(&blob.context),
            data_key_hex: &data_key_hex,
            plaintext_bytes: blob.plaintext_bytes,
        };
        let json = serde_json::to_vec(&key).map_err(|error| writing(error.into()))?;
        Ok(Zeroizing::new(json))
    };
    let mut out = io::stdout().lock();
    let mut separator = "[\n  ";
    for blob in &blobs {
        let json = element(blob)?;
        out.write_all(separator.as_bytes())
            .and_then(|()| out.write_all(&json))
            .map_err(writing)?;
        separator = ",\n  ";
    }
    let end = if blobs.is_empty() { "[]\n" } else { "\n]\n" };
    out.write_all(end.as_bytes())
        .and_then(|()| out.flush())
        .map_err(writing)
}

const OFFLINE_EXAMPLES: &str = "\
Needs the data folder with its root key, and that no server uses it. Changes nothing.

Examples:
  coffer offline ls --data /srv/coffer
  coffer offline ls --data /srv/coffer photos 2026/
  coffer offline ls --data /srv/coffer photos 2026/ --versions
  coffer offline cat --data /srv/coffer photos 2026/a.jpg > a.jpg
  coffer offline keys --data /srv/coffer photos 2026/a.jpg";

const KEYS_EXAMPLES: &str = "\
Prints a JSON list, an element a blob in order: blob_file (relative to the data folder),
context_hex, data_key_hex, plaintext_bytes. WITH THIS LIST, ANYONE CAN READ THE OBJECT.
An object of at most 16 KiB lies in its bucket's catalog and has no blob: use `offline cat`.

Examples:
  coffer offline keys --data /srv/coffer photos 2026/a.jpg > keys.json";
