//! `coffer restore`: puts a data folder together from a sealed copy.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use coffer_durable::rfc3339;
use coffer_keys::SourceSpec;
use coffer_replica::{KnownHead, Place};
use coffer_vault::{Restore, RestoreEvent, VaultError, restore as restore_copy};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::error::Error;
use crate::output::printable::size;
use crate::output::table::{moment, print};
use crate::secrets::passphrase::PassphraseArgs;
use crate::secrets::root_source::secrets_of;

/// `coffer restore`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RestoreArgs {
    /// The copy: a URL as `coffer replica add` takes it
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// A head that the copy must have, or a later one, as `coffer replica status` showed it
    #[arg(long, value_name = "NUMBER:SHA256")]
    pub head: Option<KnownHead>,
    /// Where the root key is, if the data folder does not say, such as file:/PATH
    #[arg(long, value_name = "SOURCE")]
    pub root_key: Option<SourceSpec>,
    /// Where the passphrase of the root key comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// Report as JSON, an event a line
    #[arg(long)]
    pub json: bool,
}

/// Restores, and tells. Progress is drawn on standard error if that is a terminal.
pub async fn restore(data: &Path, args: &RestoreArgs) -> Result<ExitCode, Error> {
    let source = args.root_key.clone();
    let secrets = secrets_of(data, source.as_ref(), &args.passphrase)?;
    let from = Place::parse(&args.from).map_err(VaultError::from)?;
    let bar = if args.json {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    let template = "{spinner} {human_pos} blobs, {msg}";
    bar.set_style(ProgressStyle::with_template(template).expect("a template that parses"));
    let request = Restore {
        from,
        data: data.to_owned(),
        source,
        secrets,
        known: args.head.clone(),
    };
    let mut told = Ok(());
    let mut tell = |event: RestoreEvent| {
        let line = if args.json {
            Some(as_json(&event))
        } else {
            for_people(&event, &bar, data)
        };
        if let (Some(line), Ok(())) = (line, &told) {
            told = bar.suspend(|| print(&format!("{line}\n")));
        }
    };
    let restored = restore_copy(request, &mut tell).await;
    bar.finish_and_clear();
    restored?;
    told.map_err(|source| Error::System {
        doing: "writing the report",
        source,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(event: &RestoreEvent) -> String {
    let value = match event {
        RestoreEvent::Progress {
            blob_count,
            fetched_bytes,
        } => json!({
            "event": "progress", "blob_count": blob_count, "fetched_bytes": fetched_bytes,
        }),
        RestoreEvent::NoKey { bucket } => json!({ "event": "nokey", "bucket": bucket }),
        RestoreEvent::Done {
            head,
            as_of_ms,
            bucket_count,
            blob_count,
            fetched_bytes,
        } => json!({
            "event": "done", "head": head.to_string(), "as_of": rfc3339(*as_of_ms),
            "bucket_count": bucket_count, "blob_count": blob_count,
            "fetched_bytes": fetched_bytes,
        }),
    };
    value.to_string()
}

fn for_people(event: &RestoreEvent, bar: &ProgressBar, data: &Path) -> Option<String> {
    match event {
        RestoreEvent::Progress {
            blob_count,
            fetched_bytes,
        } => {
            bar.set_position(*blob_count);
            bar.set_message(format!("{} fetched", size(*fetched_bytes)));
            None
        }
        RestoreEvent::NoKey { bucket } => Some(format!(
            "bucket {bucket} is left out: this keystore has no key for it. It was erased, or made \
             after the keystore was copied"
        )),
        RestoreEvent::Done {
            as_of_ms,
            bucket_count,
            blob_count,
            fetched_bytes,
            ..
        } => {
            let (as_of, fetched) = (moment(&rfc3339(*as_of_ms)), size(*fetched_bytes));
            let data = data.display();
            Some(format!(
                "{data}, as of {as_of}: {bucket_count} buckets, {blob_count} blobs ({fetched} \
                 fetched). `coffer verify --data {data}` opens all of it; `coffer serve \
                 --accept-rollback --data {data}` goes on from there"
            ))
        }
    }
}

const EXAMPLES: &str = "\
The data folder holds `keystore` and what opens it, and nothing else. An interrupted restore goes on
when it is asked for again. The first start on it takes `--accept-rollback`.

Examples:
  coffer restore --from file:///mnt/disk/coffer --data /srv/restored
  coffer restore --from 's3://copies/coffer?endpoint=https://s3.example&credentials=/root/far' \\
      --data /srv/restored --root-key file:/root/kept-apart/root.key
  coffer verify --data /srv/restored
  coffer serve --data /srv/restored --accept-rollback";
