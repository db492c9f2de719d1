//! `coffer bucket end-uploads`.

use std::time::Duration;

use clap::Args;
use coffer_admin::{Bucket, EndUploadsRequest, EndedUploads};
use coffer_client::{AdminClient, segment};
use http::Method;

use crate::error::Error;
use crate::output::printable::{size, span};
use crate::output::table::{Flush, show, show_done, table};

/// `coffer bucket end-uploads`.
#[derive(Debug, Args)]
pub struct EndUploadsArgs {
    /// Bucket; --all means all
    pub name: Option<String>,
    /// In all buckets that have uploads under way
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
    /// Those that were begun so long ago or longer: 12h, 7d; 0s: all
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = older)]
    pub older_than: Duration,
    /// Only say how many that would be
    #[arg(long)]
    pub dry_run: bool,
}

fn older(text: &str) -> Result<Duration, String> {
    span(text).ok_or_else(|| "write a stretch of time, such as 90m, 12h or 7d".to_owned())
}

/// Ends them, bucket by bucket.
pub(super) async fn end_uploads(
    server: &AdminClient,
    args: &EndUploadsArgs,
    json: bool,
) -> Result<(), Error> {
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None if !args.all => {
            return Err(Error::Option {
                option: "coffer bucket end-uploads",
                problem: "name a bucket, or say --all for all that have uploads under way"
                    .to_owned(),
            });
        }
        None => {
            let buckets: Vec<Bucket> = server.get("/v1/buckets").await?;
            let has_some = |bucket: &Bucket| bucket.upload_count != Some(0);
            let with_some = buckets.into_iter().filter(has_some);
            with_some.map(|bucket| bucket.name).collect()
        }
    };
    let request = EndUploadsRequest {
        older_than_seconds: args.older_than.as_secs(),
        dry_run: args.dry_run,
    };
    let mut ended = Vec::new();
    for name in names {
        let path = format!("/v1/buckets/{}/end-uploads", segment(&name));
        let one: EndedUploads = server.call(Method::POST, &path, Some(&request)).await?;
        ended.push(one);
    }
    if args.dry_run {
        show(json, &ended, |ended| told(ended))
    } else {
        show_done(json, &ended, |ended| told(ended))
    }
}

fn told(ended: &[EndedUploads]) -> String {
    let columns = [
        ("BUCKET", Flush::Left),
        ("UPLOADS", Flush::Right),
        ("SIZE", Flush::Right),
        ("", Flush::Left),
    ];
    let row = |ended: &EndedUploads| {
        let became = match (ended.upload_count, ended.dry_run) {
            (0, _) => "none so old",
            (_, true) => "would end",
            (_, false) => "ended",
        };
        vec![
            ended.bucket.clone(),
            ended.upload_count.to_string(),
            size(ended.upload_bytes),
            became.to_owned(),
        ]
    };
    table(&columns, ended.iter().map(row))
}
