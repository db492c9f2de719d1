//! `coffer standby`: how a standby stands, and its promotion.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{Promotion, Standby};
use coffer_client::AdminClient;
use coffer_keys::SourceSpec;
use coffer_replica::Place;
use coffer_vault::{FencedBy, VaultError};
use http::Method;
use serde_json::Value;

use crate::commands::storage::restore::identity_of;
use crate::config::GATEWAY_LISTEN_DEFAULT;
use crate::config::args::{ServeArgs, StandingArgs};
use crate::error::Error;
use crate::limits::CACHE_BYTES_DEFAULT;
use crate::output::printable::size;
use crate::output::table::{AnswerArgs, moment, sheet, show, show_done};
use crate::serve::standing::{EngineHow, EngineKey, How};

/// `coffer standby`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct StandbyArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: StandbyCommand,
}

/// What can be done with a standby.
#[derive(Debug, Subcommand)]
pub enum StandbyCommand {
    /// Show which copy it follows, and how far it has come; 1 if anything is wrong
    #[command(after_help = EXAMPLES)]
    Status,
    /// Have it serve in the original's place, which is to be stopped, or runs with --fenced-by
    #[command(after_help = EXAMPLES)]
    Promote {
        /// Don't ask
        #[arg(long)]
        yes: bool,
        /// Where the copy is lost with the original: go on from what the standby has
        #[arg(long)]
        without_copy: bool,
    },
}

/// How a server is to be started: as a standby, or fenced off by a copy, if that was asked for.
///
/// # Errors
/// When the URL or the identity is none, or there is nothing that opens an engine.
pub fn how_asked(args: &ServeArgs, root_key: Option<&SourceSpec>) -> Result<How, Error> {
    let standing = &args.standing;
    let follow = match &standing.follow {
        Some(url) => {
            let place = Place::parse(url).map_err(VaultError::from)?;
            let identity = standing.identity.as_deref().map(identity_of).transpose()?;
            Some((place, identity))
        }
        None => None,
    };
    if standing.identity.is_some() && standing.follow.is_none() && standing.engine.is_none() {
        return Err(Error::Option {
            option: "--identity",
            problem: "it opens the keystore of a copy or an engine: name that, --follow URL or \
                      --engine URL"
                .to_owned(),
        });
    }
    let engine = match &standing.engine {
        Some(url) => Some(EngineHow {
            from: Place::parse(url).map_err(VaultError::from)?,
            key: engine_key(args, root_key)?,
            listen: standing.gateway_listen.unwrap_or(GATEWAY_LISTEN_DEFAULT),
            advertise: advertised(standing)?,
            cache_bytes: standing.cache_size.unwrap_or(CACHE_BYTES_DEFAULT),
        }),
        None => None,
    };
    Ok(How {
        accept_rollback: args.accept_rollback,
        follow,
        engine,
        fenced_by: standing.fenced_by.clone().map(|copy| FencedBy {
            copy,
            after: standing.fenced_after,
        }),
        ends_fence: standing.end_fence,
    })
}

/// Where other gateways find this one, if that was said; it is to be, where it listens everywhere.
fn advertised(standing: &StandingArgs) -> Result<Option<String>, Error> {
    let listen = standing.gateway_listen.unwrap_or(GATEWAY_LISTEN_DEFAULT);
    if listen.ip().is_unspecified() && standing.gateway_advertise.is_none() {
        return Err(Error::Option {
            option: "--gateway-advertise",
            problem: format!(
                "missing; other gateways do not find this one at {listen}: say where, \
                 HOST:PORT, or listen at an address of this machine"
            ),
        });
    }
    Ok(standing.gateway_advertise.clone())
}

/// What all gateways of an engine have: an identity, or a source that opens the one in its store.
fn engine_key(args: &ServeArgs, root_key: Option<&SourceSpec>) -> Result<EngineKey, Error> {
    let identity = args.standing.identity.as_deref();
    let (option, problem) = match (identity, root_key) {
        (Some(identity), None) => return Ok(EngineKey::Given(identity_of(identity)?)),
        (None, Some(source)) if source.is_shared() => {
            let (source, passphrase) = (source.clone(), args.passphrase.clone());
            return Ok(EngineKey::Shared(source, passphrase));
        }
        (Some(_), Some(_)) => (
            "--root-key",
            "the gateways of an engine have this or --identity, not both".to_owned(),
        ),
        (None, Some(source)) => (
            "--root-key",
            format!(
                "gateways on several machines don't share what {source} holds: write passphrase \
                 or a PKCS#11 URI, or give all the same --identity FILE"
            ),
        ),
        (None, None) => (
            "--engine",
            "all gateways share what opens its keystore: name that, --root-key passphrase, \
             --root-key pkcs11:…, or --identity FILE"
                .to_owned(),
        ),
    };
    Err(Error::Option { option, problem })
}

/// Asks, and shows the answer.
pub async fn standby(server: &AdminClient, args: &StandbyArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    let status: Standby = server.get("/v1/standby").await?;
    match &args.command {
        StandbyCommand::Status => {
            show(json, &status, one)?;
            let is_wrong = status.state == "failing" || status.problem.is_some();
            return Ok(ExitCode::from(u8::from(is_wrong)));
        }
        StandbyCommand::Promote { yes, without_copy } => {
            if !yes {
                confirm(&status, *without_copy)?;
            }
            let path = if *without_copy {
                "/v1/standby/promote?without_copy=true"
            } else {
                "/v1/standby/promote"
            };
            let promotion: Promotion = server.call(Method::POST, path, None::<&Value>).await?;
            show_done(json, &promotion, promoted)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn one(standby: &Standby) -> String {
    let mut pairs = vec![
        ("follows", standby.url.clone()),
        ("state", standby.state.clone()),
        ("serves as of", moment(&standby.as_of)),
        ("behind the copy", format!("{:.1} s", standby.lag_seconds)),
        ("fetched since start", size(standby.fetched_bytes)),
    ];
    if standby.missing_blob_count > 0 {
        pairs.push(("missing blobs", standby.missing_blob_count.to_string()));
    }
    pairs.extend(standby.problem.clone().map(|problem| ("problem", problem)));
    pairs.extend(standby.head.clone().map(|head| ("head", head)));
    sheet(pairs)
}

fn promoted(promotion: &Promotion) -> String {
    let mut pairs = vec![
        ("promoted as of", moment(&promotion.as_of)),
        ("head", promotion.head.clone()),
    ];
    if promotion.missing_blob_count > 0 {
        pairs.push(("missing blobs", promotion.missing_blob_count.to_string()));
    }
    sheet(pairs)
}

/// Asks the user whether this is meant. Without a terminal there is no answer to be had.
fn confirm(standby: &Standby, without_copy: bool) -> Result<(), Error> {
    let then = if without_copy {
        "It goes on from that. What was acknowledged since is LOST.\nNothing fences the original \
         off, nor another standby: they must be lost for good, or stopped for good."
    } else {
        "It takes what the copy has once more. What the original acknowledged and had not put \
         there by then is LOST.\nThe original must be stopped, or started with --fenced-by: it may \
         go on answering otherwise."
    };
    let told = format!(
        "The newest state that this standby has seen is as of {}; it is {:.1} s since it looked \
         into the copy.\n{then}\nType `promote` to go on: ",
        moment(&standby.as_of),
        standby.lag_seconds
    );
    let unsure = || Error::Option {
        option: "--yes",
        problem: "missing; without a terminal to ask, say that the promotion is meant".to_owned(),
    };
    if !io::stdin().is_terminal() {
        return Err(unsure());
    }
    let ask = || -> io::Result<String> {
        let mut errors = io::stderr();
        errors.write_all(told.as_bytes())?;
        errors.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer)
    };
    match ask() {
        Ok(answer) if answer.trim() == "promote" => Ok(()),
        _ => Err(Error::Option {
            option: "--yes",
            problem: "not given, and `promote` was not typed: nothing was done".to_owned(),
        }),
    }
}

const EXAMPLES: &str = "\
A standby is a server that was started with `coffer serve --follow URL`: it serves reads of a sealed
copy that the keystore goes along with, within seconds of the original. `status` ends with 1 where
it is `failing`, or has a `problem`, such as a blob that the copy lacks.

`promote` takes what the copy has once more, fences the original off by an entry in the copy, makes
the folder a data folder and serves it, in the same process. What the original acknowledged and had
not put into the copy is lost. An original that was started with --fenced-by finds the entry and
changes nothing any more; another one has to be stopped. A promotion that was interrupted is asked
for again. If it was interrupted after the folder was made: `coffer serve --accept-rollback`.

With --without-copy it goes on from the state that it serves, where the copy is lost with the
original. Nothing fences the original off then: it must never be started again.

Examples:
  coffer standby status --data /srv/standby
  coffer standby status --data /srv/standby --json
  coffer standby promote --data /srv/standby
  coffer standby promote --data /srv/standby --yes --json";
