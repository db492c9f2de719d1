//! `coffer quota`.

use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use coffer_admin::{QuotaLimits, QuotaRow};
use coffer_client::{AdminClient, segment};
use http::Method;
use serde::Serialize;

use crate::error::Error;
use crate::output::printable::{bytes, size};
use crate::output::table::{AnswerArgs, Flush, done, or_dash, show, show_done, table};

/// `coffer quota`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct QuotaArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: QuotaCommand,
}

/// What a quota is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One bucket.
    Bucket,
    /// All buckets of a level.
    Level,
    /// All buckets that a subject has made over S3.
    Subject,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Bucket => "bucket",
            Self::Level => "level",
            Self::Subject => "subject",
        }
    }
}

/// What can be done with quotas.
#[derive(Debug, Subcommand)]
pub enum QuotaCommand {
    /// Set how much a bucket, a level or a subject may hold, in place of what was set
    #[command(after_help = EXAMPLES)]
    Set(SetArgs),
    /// List quotas, and what is used of them
    #[command(after_help = EXAMPLES)]
    List,
    /// Remove a quota
    #[command(after_help = EXAMPLES)]
    Remove {
        /// What it is of
        kind: Kind,
        /// The name of that
        name: String,
    },
}

/// `coffer quota set`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("limits").required(true).multiple(true))]
pub struct SetArgs {
    /// What it is of
    pub kind: Kind,
    /// The name of that
    pub name: String,
    /// Bytes of objects and of parts of uploads, such as 10GB, 512MiB or 1000000
    #[arg(long, value_name = "BYTES", value_parser = bytes, group = "limits")]
    pub bytes: Option<u64>,
    /// Objects; of versions, each is one
    #[arg(long, value_name = "N", group = "limits")]
    pub objects: Option<u64>,
    /// Multipart uploads under way
    #[arg(long, value_name = "N", group = "limits")]
    pub uploads: Option<u64>,
    /// Buckets, of a level or a subject
    #[arg(long, value_name = "N", group = "limits")]
    pub buckets: Option<u64>,
}

/// What was removed, for programs.
#[derive(Serialize)]
struct Removed<'a> {
    removed: &'a str,
    name: &'a str,
}

/// Asks, and shows the answer.
pub async fn quota(server: &AdminClient, args: &QuotaArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    let path = |kind: Kind, name: &str| format!("/v1/quotas/{}/{}", kind.word(), segment(name));
    match &args.command {
        QuotaCommand::Set(args) => {
            let limits = QuotaLimits {
                bytes: args.bytes,
                objects: args.objects,
                uploads: args.uploads,
                buckets: args.buckets,
            };
            let path = path(args.kind, &args.name);
            // Only to tell what goes: without it, the quota is set all the same.
            let before: Vec<QuotaRow> = server.get("/v1/quotas").await.unwrap_or_default();
            let set: QuotaRow = server.call(Method::PUT, &path, Some(&limits)).await?;
            show_done(json, &set, |set| {
                let gone = before.iter().filter(|old| is_same(old, set));
                let gone = gone.map(|old| limits_gone(old.limits, set.limits));
                rows(std::slice::from_ref(set)) + &gone.collect::<String>()
            })?;
        }
        QuotaCommand::List => {
            let all: Vec<QuotaRow> = server.get("/v1/quotas").await?;
            show(json, &all, |all| rows(all))?;
        }
        QuotaCommand::Remove { kind, name } => {
            let path = path(*kind, name);
            server
                .call::<()>(Method::DELETE, &path, None::<&()>)
                .await?;
            let removed = kind.word();
            let told = format!("the quota of {removed} {name} was removed");
            done(json, &Removed { removed, name }, &told)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_same(one: &QuotaRow, other: &QuotaRow) -> bool {
    one.kind == other.kind && one.name == other.name
}

/// The limits that a quota has no more, each in a line.
fn limits_gone(before: QuotaLimits, after: QuotaLimits) -> String {
    let count = |limit: Option<u64>| limit.map(|n| n.to_string());
    let limits = [
        ("bytes", before.bytes.map(size), after.bytes),
        ("objects", count(before.objects), after.objects),
        ("uploads", count(before.uploads), after.uploads),
        ("buckets", count(before.buckets), after.buckets),
    ];
    let gone = limits.into_iter().filter(|(.., after)| after.is_none());
    gone.filter_map(|(what, was, _)| Some(format!("{what}: was {}, now none\n", was?)))
        .collect()
}

fn rows(all: &[QuotaRow]) -> String {
    let columns = [
        ("QUOTA OF", Flush::Left),
        ("NAME", Flush::Left),
        ("BYTES", Flush::Right),
        ("OBJECTS", Flush::Right),
        ("UPLOADS", Flush::Right),
        ("BUCKETS", Flush::Right),
    ];
    let of = |used: String, limit: Option<String>| match limit {
        Some(limit) => format!("{used} of {limit}"),
        None => used,
    };
    let count = |used: u64, limit: Option<u64>| of(used.to_string(), limit.map(|n| n.to_string()));
    let row = |quota: &QuotaRow| {
        let (used, limits) = (quota.used, quota.limits);
        vec![
            quota.kind.clone(),
            quota.name.clone(),
            of(size(used.bytes), limits.bytes.map(size)),
            count(used.objects, limits.objects),
            count(used.uploads, limits.uploads),
            match &*quota.kind {
                "bucket" => or_dash(""),
                _ => count(used.buckets, limits.buckets),
            },
        ]
    };
    table(&columns, all.iter().map(row))
}

const EXAMPLES: &str = "\
What is stored already stays. Each write is counted before it is committed: however many write at
once, none passes a quota. What passes one is refused as QuotaExceeded (403), and says which quota,
how much is used, and what it would add. A subject's quota counts the buckets that it has made over
S3, with all that is written there.

Examples:
  coffer quota set bucket backups --bytes 500GB --objects 1000000
  coffer quota set level secret --bytes 2TiB
  coffer quota set subject ann --bytes 100GB --buckets 20 --uploads 50
  coffer quota list --json
  coffer quota remove bucket backups";
