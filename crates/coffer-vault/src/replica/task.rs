//! The task of one copy: rounds, retries, and sweeps.

use std::pin::pin;
use std::time::{Duration, Instant};

use coffer_durable::now_ms;
use coffer_replica::CopyWriter;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::round::Round;
use super::round::fencing::is_of_another;
use super::{is_full, is_gone, is_of_here, is_passing, lacks_record};
use crate::copies::CopyState;
use crate::error::{Result, VaultError};
use crate::limits::{
    COPY_LAST_ROUND, COPY_LOOKS_EVERY, COPY_MAKE_ROOM, COPY_MAKE_ROOM_PART,
    COPY_MAKE_ROOM_WHEN_FULL, COPY_PROBES_EVERY, COPY_RETRY_FIRST, COPY_RETRY_MAX,
    COPY_SWEEPS_AT_MOST_EVERY, COPY_SWEEPS_EVERY,
};

/// Keeps a copy up until it is told to stop, or must not go on.
pub(super) async fn run(mut round: Round, writer: Option<CopyWriter>, stop: CancellationToken) {
    let name = round.name().to_owned();
    let mut writer = writer;
    let mut retry = COPY_RETRY_FIRST;
    let mut times = Times::default();
    loop {
        let done = {
            let mut work = pin!(go_on(&mut round, &mut writer, &mut times));
            tokio::select! {
                done = &mut work => done,
                // Not cut off and begun anew: what it took would be missing in the next head.
                () = stop.cancelled() => match timeout(COPY_LAST_ROUND, work).await {
                    Ok(done) => done,
                    Err(_) => return tell_incomplete(&name),
                },
            }
        };
        let is_up = done.is_ok();
        round.tell_gate(&done);
        round.round_ended();
        let wait = match done {
            Ok(()) => {
                retry = COPY_RETRY_FIRST;
                COPY_LOOKS_EVERY
            }
            Err(error) if is_passing(&error) => {
                tracing::warn!(copy = round.name(), %error, "a copy falls behind");
                tell_failing(&round, &error);
                // What was put since the last head may lie where the disk was that went.
                if is_gone(&error) {
                    (writer, times) = (None, Times::default());
                    round.forget_puts();
                }
                let wait = round.retry_after(retry);
                retry = (retry * 2).min(COPY_RETRY_MAX);
                wait
            }
            Err(error) => {
                tell_given_up(&round, &error);
                round.progress.failed(CopyState::Stopped, error.to_string());
                round.give_up();
                round.end_records().await;
                round.end_fence(&stop, &error).await;
                stop.cancelled().await;
                return;
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(wait) => {}
            () = round.one_waits(), if is_up => {}
        }
    }
    round.end_records().await;
    // What was acknowledged last, if that is soon done. Where it failed before, the next start has
    // it all to do anyhow.
    if retry == COPY_RETRY_FIRST && round.is_served() {
        let last = async {
            go_on(&mut round, &mut writer, &mut times).await?;
            match &writer {
                Some(writer) => round.rest(writer).await,
                None => Ok(()),
            }
        };
        let last = timeout(COPY_LAST_ROUND, last).await;
        if !matches!(last, Ok(Ok(()))) {
            tell_incomplete(&name);
        }
    }
}

fn tell_given_up(round: &Round, error: &VaultError) {
    if round.is_of_engine() && is_of_another(error) {
        tracing::warn!(
            %error,
            "another gateway writes the engine's log by now: this one serves no more"
        );
    } else {
        tracing::error!(copy = round.name(), %error, "a copy is given up");
    }
}

fn tell_failing(round: &Round, error: &VaultError) {
    round.progress.failed(CopyState::Failing, error.to_string());
    round.progress.fails_here(is_of_here(error));
}

fn tell_incomplete(name: &str) {
    tracing::info!(copy = name, "a copy is not complete by the stop");
}

/// When what was done last.
#[derive(Default)]
struct Times {
    /// All was removed that is out of the window.
    swept: Option<Instant>,
    /// The copy was there.
    seen: Option<Instant>,
    /// It was looked whether another writes it by now.
    looked: Option<Instant>,
    /// It was looked for what can be removed from a full store, and how long that took.
    room: Option<(Instant, Duration)>,
}

fn is_due(last: Option<Instant>, every: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() > every)
}

/// After a round that failed so: removes what can be, that the next may find room.
async fn give_room(
    round: &mut Round,
    writer: &mut CopyWriter,
    times: &mut Times,
    error: &VaultError,
) {
    if is_full(error) {
        let every = |took: Duration| COPY_SWEEPS_AT_MOST_EVERY.max(took * COPY_MAKE_ROOM_PART);
        let is_due = |(at, took): (Instant, Duration)| at.elapsed() > every(took);
        if times.room.is_none_or(is_due) {
            let began = Instant::now();
            // The copy is to be asked often whether another serves in this one's place.
            let limit = match round.fences() {
                Ok(false) => COPY_MAKE_ROOM_WHEN_FULL,
                _ => COPY_MAKE_ROOM,
            };
            give_room_within(limit, round, writer).await;
            times.room = Some((Instant::now(), began.elapsed()));
        }
    } else if is_due(times.swept, sweeps_every(round.entry.keep_ms)) {
        give_room_within(COPY_MAKE_ROOM, round, writer).await;
        times.swept = Some(Instant::now());
    }
}

async fn give_room_within(limit: Duration, round: &mut Round, writer: &mut CopyWriter) {
    let given = timeout(limit, round.give_room(writer)).await;
    if !matches!(given, Ok(Ok(()))) {
        tracing::debug!(copy = round.name(), "not all room was made in a copy");
    }
}

/// A round; where its store lost what the copy says of itself, that is put again before.
async fn go_on(
    round: &mut Round,
    writer: &mut Option<CopyWriter>,
    times: &mut Times,
) -> Result<()> {
    match go_on_with_record(round, writer, times).await {
        Err(error) if lacks_record(&error) => {
            round.put_record_again(writer.as_ref()).await?;
            go_on_with_record(round, writer, times).await
        }
        done => done,
    }
}

async fn go_on_with_record(
    round: &mut Round,
    writer: &mut Option<CopyWriter>,
    times: &mut Times,
) -> Result<()> {
    let writer = match writer {
        Some(writer) => {
            // Of what does not change nothing else tells that it is not there any more. Where a
            // disk was that is not mounted, nothing is to be put, and a look costs nothing.
            let every = if round.is_in_folder() {
                Duration::ZERO
            } else {
                COPY_PROBES_EVERY
            };
            if is_due(times.seen, every) {
                if !writer.check_end().await? {
                    round.end_is_damaged(writer);
                }
                times.seen = Some(Instant::now());
            }
            writer
        }
        None => match round.resume().await {
            Err(error) if is_full(&error) => {
                if let Err(problem) = round.give_room_before().await {
                    tracing::debug!(copy = round.name(), %problem, "no room was made in a copy");
                }
                return Err(error);
            }
            resumed => writer.insert(resumed?),
        },
    };
    let (began_ms, began) = (now_ms(), Instant::now());
    if round.fences()? {
        writer.check_alone().await?;
        round.is_alone(began)?;
    } else if is_due(times.looked, COPY_PROBES_EVERY) {
        round.look_for_another(writer).await?;
        times.looked = Some(Instant::now());
    }
    if !round.is_head_due()? {
        return Ok(());
    }
    // Before anything is read.
    let covers = round.asked();
    let is_new = match round.run(writer, began_ms).await {
        Err(error) if is_passing(&error) && !is_gone(&error) => {
            give_room(round, writer, times, &error).await;
            return Err(error);
        }
        ran => ran?,
    };
    round.reach(covers).await?;
    round.begin_records(writer);
    if is_new {
        times.seen = Some(Instant::now());
    }
    round.progress.complete(began_ms, began, round.problem());
    let is_due = is_due(times.swept, sweeps_every(round.entry.keep_ms));
    if (is_due || is_new && round.has_lost_buckets()) && round.try_sweep(writer).await? {
        times.swept = Some(Instant::now());
    }
    Ok(())
}

/// A window is not to be much longer than it was said to be.
fn sweeps_every(keep_ms: i64) -> Duration {
    let quarter = Duration::from_millis(keep_ms.unsigned_abs() / 4);
    quarter.clamp(COPY_SWEEPS_AT_MOST_EVERY, COPY_SWEEPS_EVERY)
}
