//! Rotations under way, as `level rotate` and `bucket rotate` follow them.

use std::process::ExitCode;

use clap::Args;
use coffer_admin::Rotation;
use coffer_client::{AdminClient, segment};
use http::Method;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::sleep;

use crate::commands::approval_outcome::{MayWait, waits};
use crate::error::Error;
use crate::limits::{ROTATION_LOOK, ROTATION_WAIT_LOOKS};
use crate::output::asking::{ask_for, is_attended};
use crate::output::table::{Flush, moment, or_dash, show, show_done, table};

/// What is typed to rotate something.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Its name
    pub name: String,
    /// Don't ask; without a terminal it is not asked for
    #[arg(long)]
    pub yes: bool,
}

/// Begins a rotation of a `level` or a `bucket` and follows it to its end; or tells that it waits
/// for approvals.
pub async fn rotate(
    server: &AdminClient,
    what: &'static str,
    args: &RotateArgs,
    json: bool,
) -> Result<ExitCode, Error> {
    let RotateArgs { name, yes } = args;
    let destroyed = format!(
        "The keys that {what} {name} has now will be destroyed, and the root key replaced. In \
         backups and in moments\nof copies from before, its objects of more than 16 KiB can't be \
         read any more, and copies of the root key\nfrom before open nothing."
    );
    confirm(&destroyed, *yes)?;
    let path = format!("/v1/{what}s/{}/rotate", segment(name));
    match server.call(Method::POST, &path, None::<&()>).await? {
        MayWait::Waits(waiting) => waits(&waiting.request, json),
        MayWait::Done(rotation) => follow(server, rotation, json).await,
    }
}

/// Says what a rotation destroys, and asks whether that is meant, where there is a person to ask:
/// scripts are not held up.
///
/// # Errors
/// When it is not meant.
pub fn confirm(destroyed: &str, waived: bool) -> Result<(), Error> {
    if waived || !is_attended() {
        return Ok(());
    }
    let question = format!("{destroyed}\nType yes to rotate: ");
    ask_for("yes", &question, "rotated", "--yes")
}

/// Follows a rotation to its end, with a bar at a terminal.
pub async fn follow(
    server: &AdminClient,
    mut rotation: Rotation,
    json: bool,
) -> Result<ExitCode, Error> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} keys {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    let mut waiting_looks: u32 = 0;
    while rotation.ended_at.is_none() {
        let is_waiting = !rotation.waits_for.is_empty();
        waiting_looks = waiting_looks.saturating_add(u32::from(is_waiting));
        if waiting_looks == ROTATION_WAIT_LOOKS {
            let copies = rotation.waits_for.join(", ");
            bar.suspend(|| {
                eprintln!(
                    "it waits for copies that the keystore goes along with, to be up to date or \
                     removed: {copies}; it goes on without this command, too"
                );
            });
            // Also where it does not wait at the next look: once is enough.
            waiting_looks += 1;
        }
        bar.set_length(rotation.key_count);
        bar.set_position(rotation.keys_done);
        bar.set_message(format!(
            "{} of {} buckets",
            rotation.buckets_done, rotation.bucket_count
        ));
        sleep(ROTATION_LOOK).await;
        let all: Vec<Rotation> = server.get("/v1/rotations").await?;
        let is_ours = |other: &Rotation| {
            (&other.level, &other.bucket, &other.begun_at)
                == (&rotation.level, &rotation.bucket, &rotation.begun_at)
        };
        let Some(now) = all.into_iter().find(is_ours) else {
            return Err(server
                .misunderstood("does not know of the rotation any more")
                .into());
        };
        rotation = now;
    }
    bar.finish_and_clear();
    let for_people = |rotation: &Rotation| {
        rotations_table(std::slice::from_ref(rotation)) + &destroyed(rotation)
    };
    match rotation.failure {
        None => show_done(json, &rotation, for_people)?,
        Some(_) => show(json, &rotation, for_people)?,
    }
    match &rotation.failure {
        Some(problem) => Err(Error::RotationFailed {
            problem: problem.clone(),
        }),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// What became of the generation that was replaced.
fn destroyed(rotation: &Rotation) -> String {
    let what = whose(rotation);
    let generation = rotation.replaced_generation;
    let is_whole = rotation.buckets_done == rotation.bucket_count;
    let buckets = match (&rotation.bucket, rotation.buckets_done) {
        // The older ones of those that are done may wait for the others.
        (None, _) if !is_whole => {
            "; whether older ones of its buckets' are, `coffer bucket show NAME` tells".to_owned()
        }
        (None, 1) => ", and so is the older one of its bucket's".to_owned(),
        (None, count) if count > 1 => format!(", and so are the older ones of {count} buckets'"),
        _ => String::new(),
    };
    let mut told = if rotation.replaced_destroyed {
        format!("\ngeneration {generation} of the key of {what} is destroyed{buckets}\n")
    } else {
        format!("\ngeneration {generation} of the key of {what} is NOT destroyed yet\n")
    };
    if let Some(keep_apart) = &rotation.keep_apart {
        told.push_str(&format!("{keep_apart}\n"));
    }
    told
}

fn whose(rotation: &Rotation) -> String {
    match &rotation.bucket {
        Some(bucket) => format!("bucket {bucket}"),
        None => format!("level {}", rotation.level),
    }
}

/// Rotations, for people.
pub fn rotations_table(rotations: &[Rotation]) -> String {
    let columns = [
        ("ROTATED", Flush::Left),
        ("BUCKETS", Flush::Right),
        ("KEYS", Flush::Right),
        ("DESTROYED", Flush::Left),
        ("BEGUN (UTC)", Flush::Left),
        ("ENDED (UTC)", Flush::Left),
        ("PROBLEM", Flush::Left),
    ];
    let row = |rotation: &Rotation| {
        let destroyed = if rotation.replaced_destroyed {
            format!("generation {}", rotation.replaced_generation)
        } else {
            String::new()
        };
        let problem = match (&rotation.failure, rotation.waits_for.as_slice()) {
            (Some(failure), _) => failure.clone(),
            (None, []) => String::new(),
            (None, copies) => format!("waits for copies: {}", copies.join(", ")),
        };
        vec![
            whose(rotation),
            format!("{}/{}", rotation.buckets_done, rotation.bucket_count),
            format!("{}/{}", rotation.keys_done, rotation.key_count),
            or_dash(&destroyed),
            moment(&rotation.begun_at),
            or_dash(&rotation.ended_at.as_deref().map(moment).unwrap_or_default()),
            or_dash(&problem),
        ]
    };
    table(&columns, rotations.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(buckets_done: u64) -> String {
        let rotation = serde_json::json!({
            "level": "ord", "begun_at": "", "replaced_generation": 1, "replaced_destroyed": true,
            "bucket_count": 2, "buckets_done": buckets_done, "key_count": 2,
            "keys_done": buckets_done,
        });
        destroyed(&serde_json::from_value(rotation).unwrap())
    }

    #[test]
    fn older_keys_of_buckets_are_told_as_destroyed_only_where_all_are_done() {
        assert!(told(2).contains("so are the older ones of 2 buckets'"));
        assert!(told(1).contains("is destroyed; whether older ones of its buckets' are"));
    }
}
