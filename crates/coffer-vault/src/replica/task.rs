//! The task of one copy: rounds, retries, and sweeps.

use std::pin::pin;
use std::time::Instant;

use coffer_durable::now_ms;
use coffer_replica::CopyWriter;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::is_passing;
use super::round::Round;
use crate::copies::CopyState;
use crate::error::Result;
use crate::limits::{
    COPY_LAST_ROUND, COPY_LOOKS_EVERY, COPY_RETRY_FIRST, COPY_RETRY_MAX, COPY_SWEEPS_EVERY,
};

/// Keeps a copy up until it is told to stop, or must not go on.
pub(super) async fn run(mut round: Round, writer: Option<CopyWriter>, stop: CancellationToken) {
    let name = round.name().to_owned();
    let mut writer = writer;
    let mut retry = COPY_RETRY_FIRST;
    let mut swept: Option<Instant> = None;
    loop {
        let done = {
            let mut work = pin!(go_on(&mut round, &mut writer, &mut swept));
            tokio::select! {
                done = &mut work => done,
                // Not cut off and begun anew: what it took would be missing in the next head.
                () = stop.cancelled() => match timeout(COPY_LAST_ROUND, work).await {
                    Ok(done) => done,
                    Err(_) => return tell_incomplete(&name),
                },
            }
        };
        let wait = match done {
            Ok(()) => {
                retry = COPY_RETRY_FIRST;
                COPY_LOOKS_EVERY
            }
            Err(error) if is_passing(&error) => {
                tracing::warn!(copy = round.name(), %error, "a copy falls behind");
                round.progress.failed(CopyState::Failing, error.to_string());
                let wait = retry;
                retry = (retry * 2).min(COPY_RETRY_MAX);
                wait
            }
            Err(error) => {
                tracing::error!(copy = round.name(), %error, "a copy is given up");
                round.progress.failed(CopyState::Stopped, error.to_string());
                stop.cancelled().await;
                return;
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(wait) => {}
        }
    }
    // What was acknowledged last, if that is soon done. Where it failed before, the next start has
    // it all to do anyhow.
    if retry == COPY_RETRY_FIRST && round.is_served() {
        let last = go_on(&mut round, &mut writer, &mut swept);
        let last = timeout(COPY_LAST_ROUND, last).await;
        if !matches!(last, Ok(Ok(()))) {
            tell_incomplete(&name);
        }
    }
}

fn tell_incomplete(name: &str) {
    tracing::info!(copy = name, "a copy is not complete by the stop");
}

async fn go_on(
    round: &mut Round,
    writer: &mut Option<CopyWriter>,
    swept: &mut Option<Instant>,
) -> Result<()> {
    let writer = match writer {
        Some(writer) => writer,
        None => writer.insert(round.resume().await?),
    };
    let (began_ms, began) = (now_ms(), Instant::now());
    let is_new = round.run(writer, began_ms).await?;
    round.progress.complete(began_ms, began, round.problem());
    let is_due = swept.is_none_or(|swept| swept.elapsed() > COPY_SWEEPS_EVERY);
    if is_due || is_new && round.has_lost_buckets() {
        round.sweep(writer).await?;
        *swept = Some(Instant::now());
    }
    Ok(())
}
