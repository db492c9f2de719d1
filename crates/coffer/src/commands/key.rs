//! `coffer key`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{AdoptRequest, ExportRequest, Import, ImportRequest, ImportedBucket, Secret};
use coffer_client::{AdminClient, segment};
use http::Method;

use crate::commands::approval_outcome::ask;
use crate::commands::export::Export;
use crate::error::Error;
use crate::limits::EXPORT_FILE_BYTES;
use crate::output::table::{AnswerArgs, Flush, or_dash, show_done, table};

/// `coffer key`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct KeyArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// What can be done with levels' keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Seal a level's key for recipients of age: its backup, or the way to another server
    #[command(after_help = EXPORT_EXAMPLES)]
    Export {
        /// Level
        level: String,
        /// Who can open it: a recipient of age; may be repeated
        #[arg(long, value_name = "AGE-RECIPIENT", required = true, num_args = 1..)]
        to: Vec<String>,
        /// Where to write it: a file that is not there yet [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take in a level from an export, with the buckets whose folders have been copied
    #[command(after_help = EXAMPLES)]
    Import {
        /// The export
        file: PathBuf,
        /// File with the identity of age that opens it
        #[arg(long, value_name = "FILE")]
        identity: PathBuf,
        /// Another name for the level
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
        /// Mean it where another level has its label: the same subjects use both then
        #[arg(long)]
        same_label: bool,
    },
    /// Adopt a bucket of an imported level whose folder has been copied since
    #[command(after_help = EXAMPLES)]
    Adopt {
        /// The bucket's id: its folder's name
        id: String,
        /// Another name for the bucket
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
}

/// Asks, and shows the answer.
pub async fn key(server: &AdminClient, args: &KeyArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        KeyCommand::Export { level, to, out } => {
            let path = format!("/v1/levels/{}/export", segment(level));
            let request = ExportRequest {
                recipients: to.clone(),
            };
            let export = Export::new(Some(level), to, out.as_deref(), json)?;
            return ask(server, &path, Some(&request), Some(export), json).await;
        }
        KeyCommand::Import {
            file,
            identity,
            name,
            same_label,
        } => {
            let request = ImportRequest {
                same_label: *same_label,
                export: read(file, "FILE")?,
                identity: Secret(identity_line(identity)?),
                name: name.clone(),
            };
            let import: Import = server
                .call(Method::POST, "/v1/imports", Some(&request))
                .await?;
            show_done(json, &import, |import| {
                format!("level {}\n{}", import.level, many(&import.buckets))
            })?;
        }
        KeyCommand::Adopt { id, name } => {
            let request = AdoptRequest {
                id: id.clone(),
                name: name.clone(),
            };
            let bucket: ImportedBucket = server
                .call(Method::POST, "/v1/adoptions", Some(&request))
                .await?;
            show_done(json, &bucket, |bucket| many(std::slice::from_ref(bucket)))?;
            if bucket.state != "adopted" {
                return Err(Error::NotAdopted {
                    id: bucket.id,
                    problem: not_adopted(&bucket.state),
                });
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The identity in a file as `age-keygen` writes it: comments begin with `#`.
pub fn identity_line(path: &Path) -> Result<String, Error> {
    let text = zeroize::Zeroizing::new(read(path, "--identity")?);
    let mut lines = text.lines().map(str::trim);
    let identity = lines.find(|line| line.starts_with("AGE-SECRET-KEY-"));
    identity.map(str::to_owned).ok_or_else(|| Error::Option {
        option: "--identity",
        problem: format!("{} holds no AGE-SECRET-KEY-…", path.display()),
    })
}

fn read(path: &Path, option: &'static str) -> Result<String, Error> {
    use std::io::Read;
    let failed = |error: io::Error| Error::Option {
        option,
        problem: format!("{} can't be read: {error}", path.display()),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(EXPORT_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text)
}

/// Why a bucket was not adopted, and what to do.
fn not_adopted(state: &str) -> &'static str {
    match state {
        "folder-missing" => "its folder is not here: copy it into DATA/buckets, and adopt it then",
        "name-taken" => "another bucket has its name: give it another with --as",
        _ => "its catalog can't be read",
    }
}

fn many(buckets: &[ImportedBucket]) -> String {
    let columns = [
        ("BUCKET", Flush::Left),
        ("STATE", Flush::Left),
        ("FOLDER", Flush::Left),
        ("PROBLEM", Flush::Left),
    ];
    let row = |bucket: &ImportedBucket| {
        vec![
            or_dash(bucket.name.as_deref().unwrap_or_default()),
            bucket.state.clone(),
            format!("buckets/{}", bucket.id),
            or_dash(bucket.problem.as_deref().unwrap_or_default()),
        ]
    };
    let mut told = table(&columns, buckets.iter().map(row));
    // The same of each.
    let mut left = buckets.iter().map(|bucket| bucket.left_behind.join(", "));
    if let Some(left) = left.find(|left| !left.is_empty()) {
        told.push_str(&format!(
            "not brought along, so set anew what there was of it for each adopted bucket: {left}\n"
        ));
    }
    told
}

const EXPORT_EXAMPLES: &str = "\
Who can open an export can open what the level holds, for ever. Exports are counted, and the
receipt of an erase tells how many there were. A level made with --no-export has none.

Exit status 3: other custodians have to approve the export first. Who approves last gets it.

Examples:
  coffer key export secret --to age1qyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqs3290gq \\
    --out secret.age";

const EXAMPLES: &str = "\
An export brings a level, its key and those of its buckets, to another server, or back. What is in
the buckets' folders comes with these: objects, versions, locks, tags, whether versions are kept.
What the other server keeps elsewhere does not, and is to be set anew: owners, grants, policies,
blocks of the public, CORS and lifecycle rules, default encryption, MD5 as entity tags, settings of
object lock (what is locked stays so), quotas.

Examples:
  coffer key export secret --to age1qyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqs3290gq \\
    --out secret.age
  coffer key import secret.age --identity key.txt --as secret-2
  coffer key adopt 00112233445566778899aabbccddeeff --as evidence-2";
