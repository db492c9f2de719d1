//! `coffer bucket`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use coffer_admin::{
    Bucket, BucketRequest, BucketSettings, EtagKind, VersioningState, from_rfc3339,
};
use coffer_client::{AdminClient, segment};
use coffer_durable::now_ms;
use http::Method;
use serde_json::json;

use crate::commands::approval_outcome::{EraseArgs, erase};
use crate::commands::rotation::{RotateArgs, rotate};
use crate::error::Error;
use crate::output::printable::{age, size};
use crate::output::table::{AnswerArgs, Flush, done, moment, sheet, show, show_done, table};

pub mod quota;

pub mod end_uploads;

use self::end_uploads::{EndUploadsArgs, end_uploads};

/// `coffer bucket`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct BucketArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: BucketCommand,
}

/// What can be done with buckets.
#[derive(Debug, Subcommand)]
pub enum BucketCommand {
    /// Make a bucket in a level, for good
    #[command(after_help = EXAMPLES)]
    Create {
        /// Name, by S3's rules
        name: String,
        /// Its level
        #[arg(long, default_value = "default")]
        level: String,
        /// ETags of its objects [default: as the server's configuration has it]
        #[arg(long, value_enum)]
        etag: Option<EtagArg>,
    },
    /// List buckets
    #[command(after_help = EXAMPLES)]
    List,
    /// Show a bucket
    #[command(after_help = EXAMPLES)]
    Show {
        /// Bucket
        name: String,
    },
    /// Erase a bucket with all that it holds: destroy its keys, at once and for good
    #[command(after_help = ERASE_EXAMPLES)]
    Erase(EraseArgs),
    /// Give a bucket a new key, while it is in use
    #[command(after_help = EXAMPLES)]
    Rotate(RotateArgs),
    /// End unfinished multipart uploads, with all their parts
    #[command(after_help = END_EXAMPLES)]
    EndUploads(EndUploadsArgs),
    /// Delete an empty bucket
    #[command(after_help = EXAMPLES)]
    Delete {
        /// Bucket
        name: String,
    },
}

/// How ETags come about.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EtagArg {
    /// As the server's configuration has it, which may want the MD5 of all buckets
    Random,
    /// Always the MD5, for programs that compare them, at 1.4 CPU seconds a GB
    Md5,
}

impl From<EtagArg> for EtagKind {
    fn from(arg: EtagArg) -> Self {
        match arg {
            EtagArg::Random => Self::Random,
            EtagArg::Md5 => Self::Md5,
        }
    }
}

fn etag_word(bucket: &Bucket) -> String {
    match bucket.etag {
        EtagKind::Random => "random",
        EtagKind::Md5 => "md5",
    }
    .to_owned()
}

/// Asks, and shows the answer.
pub async fn bucket(server: &AdminClient, args: &BucketArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    let path = |name: &str| format!("/v1/buckets/{}", segment(name));
    match &args.command {
        BucketCommand::Erase(args) => return erase(server, "bucket", args, json).await,
        BucketCommand::Create { name, level, etag } => {
            let request = BucketRequest {
                name: name.clone(),
                level: level.clone(),
                etag: etag.map(EtagKind::from).unwrap_or_default(),
            };
            let made: Bucket = server
                .call(Method::POST, "/v1/buckets", Some(&request))
                .await?;
            show_done(json, &made, one)?;
            if matches!((etag, made.etag), (Some(EtagArg::Random), EtagKind::Md5)) {
                eprintln!(
                    "warning: bucket {name} has MD5 ETags all the same: the server's configuration \
                     says etag = \"md5\", which is for all buckets"
                );
            }
        }
        BucketCommand::List => {
            let buckets: Vec<Bucket> = server.get("/v1/buckets").await?;
            show(json, &buckets, |buckets| many(buckets))?;
        }
        BucketCommand::Show { name } => {
            show(json, &server.get::<Bucket>(&path(name)).await?, one)?;
        }
        BucketCommand::Rotate(args) => return rotate(server, "bucket", args, json).await,
        BucketCommand::EndUploads(args) => end_uploads(server, args, json).await?,
        BucketCommand::Delete { name } => {
            server.delete(&path(name)).await?;
            let told = json!({ "name": name, "deleted": true });
            done(json, &told, &format!("bucket {name} was deleted"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn many(buckets: &[Bucket]) -> String {
    let columns = [
        ("BUCKET", Flush::Left),
        ("LEVEL", Flush::Left),
        ("LABEL", Flush::Left),
        ("ETAG", Flush::Left),
        ("OBJECTS", Flush::Right),
        ("SIZE", Flush::Right),
        ("UPLOADS", Flush::Right),
        ("THEIR SIZE", Flush::Right),
        ("OLDEST", Flush::Right),
        ("CREATED (UTC)", Flush::Left),
    ];
    let row = |bucket: &Bucket| {
        vec![
            bucket.name.clone(),
            bucket.level.clone(),
            bucket.label.clone(),
            etag_word(bucket),
            bucket
                .object_count
                .map_or("-".to_owned(), |n| n.to_string()),
            bucket.object_bytes.map_or("-".to_owned(), size),
            bucket
                .upload_count
                .map_or("-".to_owned(), |n| n.to_string()),
            bucket.upload_bytes.map_or("-".to_owned(), size),
            oldest_upload(bucket).map_or("-".to_owned(), age),
            moment(&bucket.created_at),
        ]
    };
    let mut text = table(&columns, buckets.iter().map(row));
    if buckets.iter().any(|bucket| bucket.object_count.is_none()) {
        text.push_str(CLOSED);
    }
    text
}

/// What a dash stands for.
const CLOSED: &str = "-: not known before the first request for the bucket opens it, or not told \
                      to who may not list it\n";

fn one(bucket: &Bucket) -> String {
    let unknown = || "not known while it is closed".to_owned();
    sheet([
        ("bucket", bucket.name.clone()),
        ("level", bucket.level.clone()),
        ("label", bucket.label.clone()),
        ("etags", etag_word(bucket)),
        ("folder", format!("buckets/{}", bucket.id)),
        ("key generation", generations(bucket)),
        (
            "objects",
            bucket.object_count.map_or_else(unknown, |n| n.to_string()),
        ),
        ("size", bucket.object_bytes.map_or_else(unknown, size)),
        ("uploads under way", uploads(bucket).unwrap_or_else(unknown)),
        ("owner", settings(bucket, owner)),
        ("versions kept", settings(bucket, versioning)),
        ("object lock", settings(bucket, object_lock)),
        ("policy", settings(bucket, policy)),
        (
            "lifecycle rules",
            settings(bucket, |set| set.lifecycle_rules.to_string()),
        ),
        ("CORS rules", settings(bucket, |set| yes(set.cors))),
        ("created (UTC)", moment(&bucket.created_at)),
    ])
}

/// What is told of what is set, where that may be told.
fn settings(bucket: &Bucket, told: impl Fn(&BucketSettings) -> String) -> String {
    bucket.settings.as_ref().map_or("-".to_owned(), told)
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

fn owner(set: &BucketSettings) -> String {
    let all = || "all who may do everything in it".to_owned();
    set.owner.clone().unwrap_or_else(all)
}

fn versioning(set: &BucketSettings) -> String {
    let state = set.versioning.map(VersioningState::word);
    state.unwrap_or("not known until it is opened").to_owned()
}

fn object_lock(set: &BucketSettings) -> String {
    let Some(lock) = &set.object_lock else {
        return "no".to_owned();
    };
    match (&lock.mode, lock.days) {
        (Some(mode), Some(days)) => format!("yes; new objects for {}, by {mode}", in_days(days)),
        _ => "yes; new objects as they are asked to".to_owned(),
    }
}

fn in_days(days: u64) -> String {
    match days {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

fn policy(set: &BucketSettings) -> String {
    match (set.policy, set.public) {
        (false, false) => "none",
        (false, true) => "none; the bucket's list LETS IN WHO SIGNS NOTHING",
        (true, false) => "yes; who signs nothing is not let in",
        (true, true) => "yes; LETS IN WHO SIGNS NOTHING",
    }
    .to_owned()
}

fn generations(bucket: &Bucket) -> String {
    match bucket.older_generation {
        Some(older) => format!(
            "{}; {older} is destroyed when its rotation ends",
            bucket.generation
        ),
        None => bucket.generation.to_string(),
    }
}

/// Those that are neither completed nor aborted: how many, how much, and since when.
fn uploads(bucket: &Bucket) -> Option<String> {
    let (count, bytes) = (bucket.upload_count?, bucket.upload_bytes?);
    Some(match oldest_upload(bucket) {
        Some(old) => format!("{count}; {}; the oldest is {} old", size(bytes), age(old)),
        None => count.to_string(),
    })
}

/// How old the oldest upload is, by this machine's clock.
fn oldest_upload(bucket: &Bucket) -> Option<Duration> {
    let began_ms = from_rfc3339(bucket.oldest_upload_at.as_ref()?)?;
    let age_ms = now_ms().saturating_sub(began_ms);
    Some(Duration::from_millis(u64::try_from(age_ms).unwrap_or(0)))
}

const END_EXAMPLES: &str = "\
A key custodian's, or a data user's who may write there. What such uploads hold is in no object, and
is gone afterwards. Their age is the time since they were begun.

Examples:
  coffer bucket list
  coffer bucket end-uploads evidence --dry-run
  coffer bucket end-uploads evidence --older-than 7d
  coffer bucket end-uploads --all --older-than 2w --json";

const ERASE_EXAMPLES: &str = "\
Erasing takes as long for a terabyte as for a byte, and prints a signed receipt.

Exit status 3: other custodians have to approve the erase first, and nothing is erased yet.

Examples:
  coffer bucket erase evidence
  coffer bucket erase evidence --yes --json > receipt.json";

const EXAMPLES: &str = "\
A bucket stays in its level for good. S3 clients name the level as LocationConstraint.

Examples:
  coffer bucket create evidence --level secret
  coffer bucket create mirrored --etag md5
  coffer bucket list --json
  coffer bucket show evidence
  coffer bucket rotate evidence
  coffer bucket erase evidence
  coffer bucket delete evidence";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_one() {
        assert_eq!(in_days(1), "1 day");
        assert_eq!(in_days(30), "30 days");
    }
}
