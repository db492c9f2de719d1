//! `coffer restore`: puts a data folder together from a sealed copy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use coffer_durable::{from_rfc3339, rfc3339};
use coffer_keys::{ExportIdentity, KeysError, SourceSpec};
use coffer_replica::{Gap, KnownHead, Place, WrongClock};
use coffer_vault::{Restore, RestoreEvent, Restored, VaultError, restore as restore_copy};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::commands::key::identity_line;
use crate::error::Error;
use crate::output::moments::time_or_ago;
use crate::output::printable::{printable, size};
use crate::output::table::{moment, print};
use crate::secrets::engine_identity::identity_there;
use crate::secrets::passphrase::PassphraseArgs;
use crate::secrets::root_source::secrets_of;

/// `coffer restore`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RestoreArgs {
    /// The copy: a URL as `coffer replica add` takes it
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// Go back to this moment (UTC): 2026-11-20T18:31:03Z, '2026-11-20 18:31', or 12h, so long ago
    #[arg(long, value_name = "TIME", value_parser = time_or_ago)]
    pub at: Option<String>,
    /// Restore the head of this number, as `--at` names one where the clock does not tell
    #[arg(long, value_name = "NUMBER", conflicts_with = "at")]
    pub at_head: Option<u64>,
    /// Restore this bucket only, by its name at that time or its id; may be given more than once
    #[arg(long = "bucket", value_name = "BUCKET")]
    pub buckets: Vec<String>,
    /// A head that the copy must have, or a later one, as `coffer replica status` showed it
    #[arg(long, value_name = "NUMBER:SHA256")]
    pub head: Option<KnownHead>,
    /// Where the root key is, if the data folder does not say, such as file:/PATH
    ///
    /// Of an engine's log, the passphrase or the token that its gateways share.
    #[arg(long, value_name = "SOURCE")]
    pub root_key: Option<SourceSpec>,
    /// Where the passphrase of the root key comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// File of an age identity that opens the copy's keystore, where one goes along for recipients
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// End with 0 where all is restored but buckets that the keystore has no key for
    #[arg(long)]
    pub accept_missing_keys: bool,
    /// Report as JSON, an event a line
    #[arg(long)]
    pub json: bool,
}

/// Restores, and tells. Progress is drawn on standard error if that is a terminal.
pub async fn restore(data: &Path, args: &RestoreArgs) -> Result<ExitCode, Error> {
    let from = Place::parse(&args.from).map_err(VaultError::from)?;
    let identity = match (&args.identity, &args.root_key) {
        (Some(identity), _) => Some(identity_of(identity)?),
        (None, Some(source)) if source.is_shared() => {
            identity_there(&from, source, &args.passphrase).await?
        }
        (None, _) => None,
    };
    // Of an engine, it is what opens the identity: the root key comes with the keystore.
    let is_of_engine = identity.is_some() && args.identity.is_none();
    let source = args.root_key.clone().filter(|_| !is_of_engine);
    let secrets = secrets_of(data, source.as_ref(), &args.passphrase)?;
    let has_identity = identity.is_some();
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
        at_ms: args.at.as_deref().and_then(from_rfc3339),
        at_head: args.at_head,
        buckets: args.buckets.clone(),
        identity,
    };
    let mut ends = Ends::default();
    let mut told = Ok(());
    let mut tell = |event: RestoreEvent| {
        ends.note(&event);
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
    restored.map_err(|error| Error::from(error).of_folder(data))?;
    told.map_err(|source| Error::System {
        doing: "writing the report",
        source,
    })?;
    if has_identity && args.head.is_none() {
        eprintln!(
            "warning: nothing proves that your server made this copy: recipients of age are \
             public, so another's copy opens by the same identity. `--head NUMBER:SHA256`, noted \
             down from `coffer replica status`, proves it"
        );
    }
    Ok(ends.code(args.accept_missing_keys))
}

/// Reads the file of an identity.
///
/// # Errors
/// When there is none in it.
pub fn identity_of(path: &Path) -> Result<ExportIdentity, Error> {
    let line = zeroize::Zeroizing::new(identity_line(path)?);
    line.parse().map_err(|error: KeysError| Error::Option {
        option: "--identity",
        problem: error.to_string(),
    })
}

/// Blobs are missing or don't open, or what damaged heads had; the rest is restored.
const PARTIAL: u8 = 3;

/// Buckets have no key; the rest is restored.
const NO_KEY: u8 = 4;

/// What was not restored.
#[derive(Default)]
struct Ends {
    is_partial: bool,
    lacks_keys: bool,
}

impl Ends {
    fn note(&mut self, event: &RestoreEvent) {
        self.is_partial |= match event {
            RestoreEvent::Done(restored) => restored.missing_count > 0,
            RestoreEvent::Damaged { unchecked, .. } => unchecked.is_some(),
            RestoreEvent::Rotated { .. }
            | RestoreEvent::NotThere { .. }
            | RestoreEvent::Clock(_) => true,
            _ => false,
        };
        self.lacks_keys |= matches!(event, RestoreEvent::NoKey { .. });
    }

    fn code(&self, accepts_missing_keys: bool) -> ExitCode {
        match (self.is_partial, self.lacks_keys) {
            (true, _) => ExitCode::from(PARTIAL),
            (false, true) if !accepts_missing_keys => ExitCode::from(NO_KEY),
            (false, _) => ExitCode::SUCCESS,
        }
    }
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
        RestoreEvent::Gap(gap) => json!({
            "event": "gap", "from": rfc3339(gap.from_ms), "to": rfc3339(gap.to_ms),
        }),
        RestoreEvent::Clock(clock) => json!({
            "event": "clock", "from": rfc3339(clock.time.from_ms), "to": rfc3339(clock.time.to_ms),
            "head": clock.head.to_string(), "written": rfc3339(clock.written_ms),
        }),
        RestoreEvent::Damaged { heads, unchecked } => json!({
            "event": "damaged", "heads": heads,
            "from": unchecked.map(|gap| rfc3339(gap.from_ms)),
            "to": unchecked.map(|gap| rfc3339(gap.to_ms)),
        }),
        RestoreEvent::HeadLeft(head) => json!({ "event": "headleft", "head": head.to_string() }),
        RestoreEvent::Later => json!({ "event": "later" }),
        RestoreEvent::NotThere { bucket } => json!({ "event": "notthere", "bucket": bucket }),
        RestoreEvent::Removed { bucket } => json!({ "event": "removed", "bucket": bucket }),
        RestoreEvent::Rotated { bucket, key_count } => json!({
            "event": "rotated", "bucket": bucket, "key_count": key_count,
        }),
        RestoreEvent::Missing { bucket, name, what } => json!({
            "event": "missing", "bucket": bucket,
            "name": name.as_ref().map(|name| name.expose()), "what": what,
        }),
        RestoreEvent::Done(restored) => restored_as_json(restored),
    };
    value.to_string()
}

fn restored_as_json(restored: &Restored) -> Value {
    let lacks = |end: fn(Gap) -> i64| restored.lacks.map(|lacks| rfc3339(end(lacks)));
    json!({
        "event": "done", "head": restored.head.to_string(),
        "as_of": rfc3339(restored.as_of_ms), "until": rfc3339(restored.until_ms),
        "lacks_from": lacks(|gap| gap.from_ms), "lacks_to": lacks(|gap| gap.to_ms),
        "bucket_count": restored.bucket_count, "left_out_count": restored.left_out_count,
        "blob_count": restored.blob_count, "fetched_bytes": restored.fetched_bytes,
        "missing_count": restored.missing_count,
    })
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
        RestoreEvent::Gap(gap) => {
            let (from, to) = (moment(&rfc3339(gap.from_ms)), moment(&rfc3339(gap.to_ms)));
            Some(format!(
                "the copy has no state of the time between {from} and {to}: what was acknowledged \
                 in it before the moment that you asked for is missing"
            ))
        }
        RestoreEvent::Clock(clock) => Some(wrong_clock(clock)),
        RestoreEvent::Damaged { heads, unchecked } => Some(damaged(heads, *unchecked)),
        RestoreEvent::HeadLeft(head) => Some(format!(
            "head {} is out of the window of the copy: its hash could not be compared, only that \
             the copy goes on beyond it",
            head.number
        )),
        RestoreEvent::Later => Some(
            "the moment that you asked for is yet to come: the newest state is restored".to_owned(),
        ),
        RestoreEvent::NotThere { bucket } => Some(not_there(bucket)),
        RestoreEvent::Removed { bucket } => Some(format!(
            "bucket {bucket} is left out: it was deleted or erased after that moment, and removed \
             from the copy"
        )),
        RestoreEvent::Rotated { bucket, key_count } => Some(rotated(bucket, *key_count)),
        RestoreEvent::Missing { bucket, name, what } => {
            let name = name.as_ref().map(|name| printable(name.expose()));
            let object = name.map_or("an object".to_owned(), |name| format!("object {name}"));
            Some(format!("MISSING: {object} of bucket {bucket}: {what}"))
        }
        RestoreEvent::Done(restored) => Some(done(restored, data)),
    }
}

/// What was restored.
fn done(restored: &Restored, data: &Path) -> String {
    let Restored {
        as_of_ms,
        until_ms,
        lacks,
        bucket_count,
        left_out_count,
        blob_count,
        fetched_bytes,
        missing_count,
        ..
    } = restored;
    let (as_of, fetched) = (moment(&rfc3339(*as_of_ms)), size(*fetched_bytes));
    let data = data.display();
    let left_out = match left_out_count {
        0 => String::new(),
        count => format!("; {count} buckets were not asked for, and are not there"),
    };
    let missing = match missing_count {
        0 => String::new(),
        count => format!("; {count} BLOBS ARE MISSING in the copy"),
    };
    let lacks = lacks.map_or(String::new(), |lacks| {
        let (from, to) = (rfc3339(lacks.from_ms), rfc3339(lacks.to_ms));
        format!(", and what was changed between {from} and {to} may be missing")
    });
    let until = rfc3339(*until_ms);
    format!(
        "{data}, as of {as_of}, when its last change was made: {bucket_count} buckets, \
         {blob_count} blobs ({fetched} fetched){left_out}{missing}. Nothing is there from after \
         {until}{lacks}. `coffer verify --data {data}` opens all of it; \
         `coffer serve --accept-rollback --data {data}` goes on from there"
    )
}

fn wrong_clock(clock: &WrongClock) -> String {
    let shown = |at_ms: i64| moment(&rfc3339(at_ms));
    let (from, to) = (shown(clock.time.from_ms), shown(clock.time.to_ms));
    let (number, written) = (clock.head.number, shown(clock.written_ms));
    format!(
        "NOT CERTAIN: the clock of who wrote the copy was put back from {to} to {from}: it was \
         ahead before, or behind after. Which state is of a moment between those can't be told. \
         What is restored was before it in either case, and may be much older. If the clock was \
         ahead, the state of that moment is head {number}, written at {written}: `--at-head \
         {number}` restores it, and other numbers the states beside it"
    )
}

fn not_there(bucket: &str) -> String {
    format!(
        "bucket {bucket} is missing: it could not be opened where the copy was made, and the copy \
         has nothing of it"
    )
}

fn rotated(bucket: &str, key_count: u64) -> String {
    format!(
        "NOT READABLE: {key_count} blobs of bucket {bucket}, which are objects of more than 16 KiB \
         or parts of such: a rotation after that moment destroyed what wrapped their keys, or the \
         keystore is older than the copy"
    )
}

fn damaged(heads: &[u64], unchecked: Option<Gap>) -> String {
    let numbers: Vec<_> = heads.iter().map(u64::to_string).collect();
    let passed = format!(
        "DAMAGED: heads of the copy do not open or are gone, and were passed over: {}",
        numbers.join(", ")
    );
    let Some(gap) = unchecked else {
        return passed;
    };
    let (from, to) = (moment(&rfc3339(gap.from_ms)), moment(&rfc3339(gap.to_ms)));
    format!(
        "{passed}. What was acknowledged between {from} and {to}, before the moment that you asked \
         for, may be missing, and that the store withholds no state of that time was not checked"
    )
}

const EXAMPLES: &str = "\
The data folder holds `keystore` and what opens it, and nothing else; or only what opens it, where
the keystore goes along with the copy (`coffer replica add --with-keystore`); or nothing, with
--identity, where it does so for recipients of age, or with --root-key, of an engine whose gateways
share a passphrase or a token. An interrupted restore goes on when it is asked for again. The first
start on it takes `--accept-rollback`.

--at goes back to any second that the copy keeps (`coffer replica add --keep`): to the newest state
that holds nothing from after it. Up to when that has all, and what of the time before the moment it
may lack, is told. Where the moment lies in a time of which the copy has no state, what was at the
beginning of that is restored. Where the clock of who wrote the copy was put back, it is told which
state was before the moment for certain, and --at-head restores another.
Of buckets whose keys were rotated after that moment, objects of more than 16 KiB can't be read any
more (`coffer level rotate`, `coffer bucket rotate`): how many, is told.

--bucket fetches the catalog and blobs of these buckets only. system.db and the audit log come
whole: all subjects, access keys, roles and quotas, and the names and settings of all buckets. Of
the other buckets nothing else comes: they are listed, and refused as missing. `coffer offline`
reads what is there without a server.

--head is compared with that very head as long as the copy keeps it, and told where it does not.

Exit codes: 0; 1 where it can't be restored; 3 where all is restored but blobs that are missing in
the copy (each is told with its object), or that a rotation since has left without a key, or what
heads that do not open had of that moment, or where a clock does not tell which state is of it;
else 4 where all is restored but buckets that the keystore has no key for (each is told by its id):
they were erased since, as they are to be, or the keystore is too old, or leaves their level out.
With --accept-missing-keys that is 0.

Examples:
  coffer restore --from file:///mnt/disk/copies/coffer --data /srv/restored
  coffer restore --from 's3://copies/coffer?endpoint=https://s3.example&credentials=/root/far' \\
      --data /srv/restored --root-key file:/root/kept-apart/root.key
  coffer restore --from file:///mnt/disk/copies/coffer --data /srv/monday --at '2026-11-23 08:00' \\
      --bucket photos
  coffer restore --from file:///mnt/disk/copies/coffer --data /srv/restored --identity key.txt
  coffer restore --from 's3://log/coffer' --data /srv/restored --root-key passphrase
  coffer verify --data /srv/restored
  coffer serve --data /srv/restored --accept-rollback";
