//! `coffer ls`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use coffer_client::mover::{Location, MoverError};
use coffer_client::s3::{Client, ListedObject, ListedVersion, Paging};
use serde_json::json;

use super::progress::Lines;
use super::{Progress, ServiceArgs, Typed};
use crate::error::Error;
use crate::output::printable::{printable, size};
use crate::output::streams::check_output;
use crate::output::table::unless_read_enough;

/// `coffer ls`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LsArgs {
    /// What to list: s3://BUCKET or s3://BUCKET/PREFIX; all buckets if nothing is named
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    pub place: Option<String>,
    /// List what is below prefixes, too
    #[arg(short, long)]
    pub recursive: bool,
    /// List all versions and delete markers, with their ids
    ///
    /// Of each name the newest comes first; what is below prefixes is listed, too.
    #[arg(long, requires = "place")]
    pub versions: bool,
    /// Tell exact lengths in bytes, and entity tags
    #[arg(short, long)]
    pub long: bool,
    /// How the service is reached.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Lists buckets or objects, as they come.
///
/// # Errors
/// When they can't be listed, or not be written.
pub async fn ls(typed: &Typed<'_>, args: &LsArgs) -> Result<ExitCode, Error> {
    check_output(io::stdout())?;
    let progress = Arc::new(Progress::new(Lines::None));
    let client = typed.client(&args.service, &progress).await?;
    let form = match (args.service.json, args.long) {
        (true, _) => Form::Json,
        (false, true) => Form::Long,
        (false, false) => Form::Short,
    };
    let listed = match &args.place {
        None => buckets(&client, form == Form::Json).await,
        Some(place) if args.versions => versions(&client, &place.parse()?, form).await,
        Some(place) => objects(&client, &place.parse()?, args.recursive, form).await,
    };
    unless_read_enough(listed)?;
    Ok(ExitCode::SUCCESS)
}

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Short,
    Long,
    Json,
}

impl Form {
    /// How long something is, and its entity tag where that is told; `-` is of what has neither.
    fn told(self, bytes: Option<u64>, etag: &str, none: &str) -> String {
        let bytes = bytes.map(|bytes| match self {
            Self::Long => bytes.to_string(),
            _ => size(bytes),
        });
        let bytes = bytes.unwrap_or_else(|| none.to_owned());
        match self {
            Self::Long => format!("{bytes:>14}  {:38}", printable(etag.trim_matches('"'))),
            _ => format!("{bytes:>9}"),
        }
    }
}

async fn buckets(client: &Client, json: bool) -> Result<(), Error> {
    let buckets = client.list_buckets().await.map_err(MoverError::from)?;
    let lines = buckets.iter().map(|bucket| {
        if json {
            json!({ "bucket": bucket.name, "created": bucket.created }).to_string()
        } else {
            format!("{}  {}", moment(&bucket.created), printable(&bucket.name))
        }
    });
    write(lines)
}

async fn objects(
    client: &Client,
    place: &Location,
    is_recursive: bool,
    form: Form,
) -> Result<(), Error> {
    let delimiter = (!is_recursive).then_some("/");
    let (mut after, mut count) = (None, 0);
    let mut paging = Paging::default();
    loop {
        let page = { client }
            .list_objects(&place.bucket, &place.key, delimiter, after.as_deref())
            .await
            .map_err(MoverError::from)?;
        let told = page.prefixes.len() + page.objects.len();
        { paging.follow(client, page.names(), page.next.as_ref()) }.map_err(MoverError::from)?;
        count += told;
        write(page.prefixes.iter().map(|prefix| {
            if form == Form::Json {
                json!({ "prefix": prefix }).to_string()
            } else {
                format!(
                    "{:19}  {}  {}",
                    "",
                    form.told(None, "", "-"),
                    printable(prefix)
                )
            }
        }))?;
        write(page.objects.iter().map(|object| line(object, form)))?;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    some_begins(place, count)
}

async fn versions(client: &Client, place: &Location, form: Form) -> Result<(), Error> {
    let (mut after, mut count) = (None, 0);
    let mut paging = Paging::default();
    loop {
        let page = { client }
            .list_versions(&place.bucket, &place.key, after.as_ref())
            .await
            .map_err(MoverError::from)?;
        { paging.follow(client, page.names(), page.next.as_ref()) }.map_err(MoverError::from)?;
        count += page.versions.len();
        write(
            page.versions
                .iter()
                .map(|version| version_line(version, form)),
        )?;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    some_begins(place, count)
}

/// Where a prefix is named, there is to be something.
fn some_begins(place: &Location, count: usize) -> Result<(), Error> {
    if count == 0 && !place.key.is_empty() {
        let prefix = place.key.clone();
        return Err(MoverError::NoneBegins { prefix }.into());
    }
    Ok(())
}

fn version_line(version: &ListedVersion, form: Form) -> String {
    let ListedVersion {
        object,
        version_id,
        is_latest,
        is_marker,
    } = version;
    if form == Form::Json {
        let mut told = json!({
            "name": object.key, "version_id": version_id, "is_latest": is_latest,
            "is_delete_marker": is_marker, "modified": object.modified,
        });
        if !is_marker {
            told["bytes"] = object.bytes.into();
            told["etag"] = object.etag.trim_matches('"').into();
        }
        return told.to_string();
    }
    let (modified, name) = (moment(&object.modified), printable(&object.key));
    let bytes = (!is_marker).then_some(object.bytes);
    let told = form.told(bytes, &object.etag, "deleted");
    format!("{modified}  {told}  {:32}  {name}", printable(version_id))
}

fn line(object: &ListedObject, form: Form) -> String {
    if form == Form::Json {
        let etag = object.etag.trim_matches('"');
        return json!({
            "name": object.key, "bytes": object.bytes, "etag": etag, "modified": object.modified,
        })
        .to_string();
    }
    let (modified, name) = (moment(&object.modified), printable(&object.key));
    let told = form.told(Some(object.bytes), &object.etag, "-");
    format!("{modified}  {told}  {name}")
}

/// `2026-11-20T18:31:03.000Z` as `2026-11-20 18:31:03`.
fn moment(text: &str) -> String {
    let text: String = text.replace('T', " ").chars().take(19).collect();
    printable(&text)
}

fn write(lines: impl Iterator<Item = String>) -> Result<(), Error> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    for line in lines {
        written = written.and_then(|()| writeln!(out, "{line}"));
    }
    let written = written.and_then(|()| out.flush());
    written.map_err(|source| Error::System {
        doing: "writing the list",
        source,
    })
}

const EXAMPLES: &str = "\
Times are UTC. With --json each line is an object.

Examples:
  coffer ls --endpoint https://127.0.0.1:9000
  coffer ls -l s3://evidence/2026/ --endpoint https://127.0.0.1:9000
  coffer ls -r s3://evidence --json --endpoint https://127.0.0.1:9000
  coffer ls --versions s3://evidence/recording.mkv --endpoint https://127.0.0.1:9000";
