//! `coffer backup`: has the running server copy its data folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use coffer_admin::{BackupReport, BackupRequest};
use coffer_client::{AdminClient, ClientError, Lines};
use http::Method;
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::Error;
use crate::output::printable::size;

/// How it ends where buckets were passed over of which the server has but the name.
const LEFT_OUT: u8 = 4;

/// `coffer backup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BackupArgs {
    /// Folder of this machine that the server writes to; the copy is in DIR/copy
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Report as JSON, an event a line
    #[arg(long)]
    pub json: bool,
}

/// Asks for it, and waits. Progress is drawn on standard error if that is a terminal.
pub async fn backup(server: &AdminClient, args: &BackupArgs) -> Result<ExitCode, Error> {
    let folder = absolute(&args.folder)?;
    let request = BackupRequest { folder };
    let body = server
        .open(Method::POST, "/v1/backup", Some(&request))
        .await?;
    // Draws on standard error, and only if that is a terminal.
    let bar = if args.json {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    let template = "{spinner} {human_pos} blobs, {msg}";
    bar.set_style(ProgressStyle::with_template(template).expect("a template that parses"));
    let mut lines = Lines::new(server, body);
    while let Some((report, line)) = lines.next::<BackupReport>().await? {
        if args.json {
            print(&line)?;
        }
        match report {
            BackupReport::Progress {
                blob_count,
                copied_bytes,
                ..
            } => {
                bar.set_position(blob_count);
                bar.set_message(format!("{} copied", size(copied_bytes)));
            }
            BackupReport::LeftOut { bucket } => {
                bar.finish_and_clear();
                if !args.json {
                    print_left_out(&bucket)?;
                }
            }
            BackupReport::Failed { code, message } => {
                bar.finish_and_clear();
                return Err(ClientError::Refused { code, message }.into());
            }
            BackupReport::Done {
                folder,
                bucket_count,
                blob_count,
                copied_count,
                copied_bytes,
                left_to_erase_count,
                left_out_count,
            } => {
                bar.finish_and_clear();
                if !args.json {
                    let copied = size(copied_bytes);
                    let told = format!(
                        "{folder}: {bucket_count} buckets, {blob_count} blobs, {copied_count} of \
                         them new ({copied})"
                    );
                    print(told.as_bytes())?;
                    print_left_to_erase(left_to_erase_count)?;
                }
                return Ok(match left_out_count {
                    0 => ExitCode::SUCCESS,
                    _ => ExitCode::from(LEFT_OUT),
                });
            }
        }
    }
    Err(server.ended_early().into())
}

/// As the server, which may work elsewhere, is to be told of it.
fn absolute(folder: &Path) -> Result<String, Error> {
    let folder = std::path::absolute(folder).map_err(|source| Error::System {
        doing: "finding the folder",
        source,
    })?;
    let folder = folder.into_os_string().into_string();
    folder.map_err(|_| Error::Option {
        option: "DIR",
        problem: "name a folder whose path is text".to_owned(),
    })
}

fn print_left_out(bucket: &str) -> Result<(), Error> {
    let told = format!(
        "passed over bucket {bucket}: the server has but its name, as a restore leaves out what \
         was not asked for or has no key"
    );
    print(told.as_bytes())
}

fn print_left_to_erase(count: u64) -> Result<(), Error> {
    if count == 0 {
        return Ok(());
    }
    let told = format!(
        "passed over {count} buckets that only have a name: their erase was ordered before the \
         copy that the server went on from. Ask for it again"
    );
    print(told.as_bytes())
}

fn print(line: &[u8]) -> Result<(), Error> {
    let write = || {
        let mut out = io::stdout().lock();
        out.write_all(line)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    write().map_err(|source| Error::System {
        doing: "writing the report",
        source,
    })
}

const EXAMPLES: &str = "\
The copy has all but root.key and credentials: keep root.key apart from it. What the copy before has
is not copied again. Ends with 0 when the copy is complete, 4 when it is, but for buckets of which
the server has no more than the name (each is told), else 1, and the copy before stays.

Examples:
  coffer backup /mnt/backup
  coffer backup /mnt/backup --data /srv/coffer --json
  coffer verify --data /mnt/backup/copy --root-key file:/root/kept-apart/root.key";
