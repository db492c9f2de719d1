//! `coffer receipt`.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{ReceiptEntry, ReceiptKey};
use coffer_client::{AdminClient, segment};
use coffer_keys::receipt::{Receipt, ReceiptPublicKey};
use serde_json::Value;

use crate::commands::approval_outcome::receipt_sheet;
use crate::error::Error;
use crate::limits::RECEIPT_BYTES;
use crate::output::printable::size;
use crate::output::table::{AnswerArgs, Flush, moment, show, table};

/// `coffer receipt`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct ReceiptArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: ReceiptCommand,
}

/// What can be done with receipts.
#[derive(Debug, Subcommand)]
pub enum ReceiptCommand {
    /// List receipts, the newest first
    #[command(after_help = EXAMPLES)]
    List,
    /// Show a receipt; its JSON is what was signed
    #[command(after_help = EXAMPLES)]
    Show {
        /// The receipt's id
        id: String,
    },
    /// Show the public key that verifies this server's receipts
    #[command(after_help = EXAMPLES)]
    Key,
    /// Verify a receipt with the public key alone, without a server; exit status 1 if it is not
    /// genuine
    #[command(after_help = EXAMPLES)]
    Verify(VerifyReceiptArgs),
}

/// `coffer receipt verify`.
#[derive(Debug, Args)]
pub struct VerifyReceiptArgs {
    /// The receipt, JSON
    pub file: PathBuf,
    /// The server's public key: 64 hexadecimal digits, or a file that holds them
    #[arg(long, value_name = "PUBKEY")]
    pub key: String,
}

/// Asks, and shows the answer.
pub async fn receipt(server: &AdminClient, args: &ReceiptArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        ReceiptCommand::List => show(json, &all(server).await?, |receipts| many(receipts)),
        ReceiptCommand::Show { id } => {
            let path = format!("/v1/receipts/{}", segment(id));
            show(json, &server.get::<Value>(&path).await?, receipt_sheet)
        }
        ReceiptCommand::Key => {
            let key: ReceiptKey = server.get("/v1/receipt-key").await?;
            show(json, &key, |key| key.public_key.clone())
        }
        ReceiptCommand::Verify(args) => return verify(args, json),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// All receipts, page by page: the server tells the newest first, and so many at a time.
async fn all(server: &AdminClient) -> Result<Vec<ReceiptEntry>, Error> {
    let mut receipts: Vec<ReceiptEntry> = server.get("/v1/receipts").await?;
    while let Some(last) = receipts.last() {
        let path = format!("/v1/receipts?until={}", segment(&last.signed_at));
        let page: Vec<ReceiptEntry> = server.get(&path).await?;
        // It begins with those of the same moment, which are known.
        let same = |receipt: &&ReceiptEntry| receipt.signed_at == last.signed_at;
        let known: HashSet<String> = { receipts.iter().rev() }
            .take_while(same)
            .map(|receipt| receipt.id.clone())
            .collect();
        let before = receipts.len();
        receipts.extend({ page.into_iter() }.filter(|receipt| !known.contains(&receipt.id)));
        if receipts.len() == before {
            break;
        }
    }
    Ok(receipts)
}

/// Verifies a receipt, offline.
///
/// # Errors
/// When the file or the key can't be read. That it is not genuine is no error here.
pub fn verify(args: &VerifyReceiptArgs, json: bool) -> Result<ExitCode, Error> {
    let text = read(&args.file)?;
    let key = public_key(&args.key)?;
    let verified = Receipt::from_json(&text).and_then(|receipt| {
        receipt.verify(&key)?;
        Ok(receipt)
    });
    match verified {
        Ok(receipt) => {
            let value = serde_json::to_value(&receipt).expect("a receipt is JSON");
            show(json, &value, |value| {
                format!("genuine\n{}", receipt_sheet(value))
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("NOT GENUINE: {error}");
            Ok(ExitCode::from(1))
        }
    }
}

fn public_key(text: &str) -> Result<ReceiptPublicKey, Error> {
    let wrong = |problem: String| Error::Option {
        option: "--key",
        problem,
    };
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let text = read(Path::new(text))
        .map_err(|_| wrong("neither 64 hexadecimal digits nor a file that holds them".into()))?;
    text.parse()
        .map_err(|error: coffer_keys::KeysError| wrong(error.to_string()))
}

fn read(path: &Path) -> Result<String, Error> {
    let failed = |error: std::io::Error| Error::Option {
        option: "FILE",
        problem: format!("{} can't be read: {error}", path.display()),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(RECEIPT_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text)
}

fn many(receipts: &[ReceiptEntry]) -> String {
    let columns = [
        ("RECEIPT", Flush::Left),
        ("ERASED", Flush::Left),
        ("LEVEL", Flush::Left),
        ("OBJECTS", Flush::Right),
        ("SIZE", Flush::Right),
        ("SIGNED (UTC)", Flush::Left),
    ];
    let row = |receipt: &ReceiptEntry| {
        vec![
            receipt.id.clone(),
            receipt.what.clone(),
            receipt.level.clone(),
            receipt.objects.to_string(),
            size(receipt.bytes),
            moment(&receipt.signed_at),
        ]
    };
    table(&columns, receipts.iter().map(row))
}

const EXAMPLES: &str = "\
A receipt is signed proof of what an erase destroyed. Keep the public key apart from the server.

Examples:
  coffer receipt key > coffer.pub
  coffer receipt list
  coffer receipt show 6f1c… --json > receipt.json
  coffer receipt verify receipt.json --key coffer.pub";
