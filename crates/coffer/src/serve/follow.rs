//! Serving as a standby: one state of the copy after another, until it is promoted.

use std::sync::Arc;
use std::time::Duration;

use coffer_admin::Status;
use coffer_keys::ExportIdentity;
use coffer_replica::Place;
use coffer_vault::{
    FollowOptions, FollowerReads, FormerStates, LeaseKeeper, ServedState, Standby, StandbyLink,
    StandbyTurn, TakenLog, Turn, VaultOptions, WrittenEnd,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::config::args::DataListen;
use crate::connection::listen::local_address;
use crate::error::Error;
use crate::gateways::ask::{ReadAsker, serves};
use crate::gateways::authority::share_authority;
use crate::gateways::forward::Forwarder;
use crate::gateways::identity::GatewayIdentity;
use crate::limits::{
    ENDED_ENGINE_LOOKS_EVERY, GATEWAY_PATIENCE, GATEWAY_RETRY, PROMOTION_ANSWER_WAIT,
};
use crate::serve::folder_watch;
use crate::serve::gateway::Gateway;
use crate::serve::gateway::retries::Retries;
use crate::serve::listeners::Listeners;
use crate::serve::signals::closing::{close_in_time, patience_of};
use crate::serve::signals::{Reloads, Signals};
use crate::serve::{Server, service_manager};

/// How serving as a standby ended.
pub enum Ended {
    /// It was told to stop.
    Stopped,
    /// The folder is a data folder now, to be served at the same addresses.
    Promoted,
    /// So it is, of the log of an engine.
    TakenOver(TakenLog),
    /// It is to be begun anew.
    Again,
}

/// What is followed.
pub struct Following {
    /// The copy.
    pub from: Place,
    /// What opens its keystore.
    pub identity: Option<ExportIdentity>,
    /// How states are served.
    pub vault: VaultOptions,
    /// The lease of the engine whose log is followed, if it is one's.
    pub engine: Option<Arc<LeaseKeeper>>,
    /// What this gateway wrote last into that log, when it served.
    pub written: Option<WrittenEnd>,
    /// Whether it is tried once more after a failure: that it begins was told.
    pub is_again: bool,
}

/// What follows, beside what is served.
struct Follower {
    turns: mpsc::Receiver<StandbyTurn>,
    link: StandbyLink,
    /// Whether reads may be answered by the states.
    reads: FollowerReads,
    /// Whose turn it is to serve the engine whose log is followed, if it is one's.
    serving: Option<watch::Receiver<Turn>>,
    task: JoinHandle<()>,
}

impl Follower {
    async fn begin(following: Following) -> Result<Self, Error> {
        let serving = following.engine.as_ref().map(|keeper| keeper.turns());
        let mut standby = Standby::begin(FollowOptions {
            from: following.from,
            identity: following.identity,
            vault: following.vault,
            is_of_engine: following.engine.is_some(),
            written: following.written,
        })
        .await?;
        standby.when_folder_is_another(folder_watch::end);
        let link = standby.link().clone();
        let (told, turns) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            loop {
                let turn = standby.next().await;
                let goes_on = matches!(turn, StandbyTurn::State(_));
                if !goes_on {
                    // The folder is free when this is heard.
                    drop(standby);
                    let _ = told.send(turn).await;
                    return;
                }
                if told.send(turn).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            turns,
            link,
            reads: FollowerReads::default(),
            serving,
            task,
        })
    }

    async fn next(&mut self) -> Result<StandbyTurn, Error> {
        let stopped = || std::io::Error::other("what follows the copy has ended");
        self.turns.recv().await.ok_or_else(|| Error::System {
            doing: "following the copy",
            source: stopped(),
        })
    }

    /// Whether the next state waits until fewer are in use: what is behind is forwarded, so nothing
    /// has to be cut off for it, unless this gateway is to serve.
    fn holds_back(&self, former: &FormerStates) -> bool {
        let serving = self.serving.as_ref();
        former.is_full() && serving.is_some_and(|turn| *turn.borrow() != Turn::Mine)
    }

    async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Serves until a signal asks for the end, or the standby was promoted. `config` gets the addresses
/// that were taken.
pub async fn serve_standby(
    config: &mut Config,
    following: Following,
    listeners: Listeners,
    (signals, reloads): (&mut Signals, &mut Reloads),
) -> Result<Ended, Error> {
    // Data keys are released by the original alone.
    let data_listen = config.data_listen.replace(DataListen::Off);
    config.listen = local_address(&listeners.s3)?;
    config.admin_listen = local_address(&listeners.administration)?;
    let (engine, is_again) = (following.engine.clone(), following.is_again);
    let mut follower = Follower::begin(following).await?;
    if !is_again {
        tell_begun(engine.is_some());
    }
    let first = tokio::select! {
        turn = follower.next() => turn?,
        _ = signals.next() => {
            follower.stop().await;
            return Ok(Ended::Stopped);
        }
    };
    let first = match first {
        StandbyTurn::State(state) => state,
        StandbyTurn::Failed(error) => return Err(error.into()),
        StandbyTurn::Promoted(_) => return Ok(Ended::Promoted),
        StandbyTurn::TakenOver(log) => return Ok(Ended::TakenOver(log)),
    };
    let listeners = Listeners {
        data: None,
        ..listeners
    };
    follower.reads.turn_to(first.position.clone());
    let gateway = match &engine {
        Some(keeper) => follower_gateway(config, &first, keeper, &follower)?,
        None => Gateway::None,
    };
    let server = Server::start(config, &first.vault, listeners, gateway)?;
    say_ready(&server, &first, engine.as_deref());
    let taking = Taking::begin(engine.clone(), &first, &follower, &server)?;
    let watched = (&mut *signals, reloads, taking.refused);
    let (ended, current, former) = serve_turns(&server, &mut follower, first, watched).await;
    if let Some(taking) = taking.task {
        taking.abort();
    }
    let goes_on = matches!(ended, Ok(Ended::Promoted | Ended::TakenOver(_)));
    if let Some(keeper) = engine.filter(|_| !goes_on) {
        // The lease of one that ends is another's to take.
        keeper.wants(false);
    }
    let patience = config.limits.shutdown_timeout();
    stop(server, &ended, patience, signals).await;
    config.data_listen = data_listen;
    let closing = async move {
        follower.stop().await;
        former.close().await;
        current.vault.close().await;
    };
    if goes_on {
        closing.await;
    } else {
        let is_again = matches!(ended, Ok(Ended::Again));
        let patience = (!is_again).then(|| patience_of(patience));
        if close_in_time(closing, signals, patience).await? {
            return Ok(Ended::Stopped);
        }
    }
    ended
}

/// Says that the first state is served, and by which gateway all else is.
fn say_ready(server: &Server, first: &ServedState, engine: Option<&LeaseKeeper>) {
    server.turn_to(first);
    if let Some(keeper) = engine {
        let serves = address_of(&keeper.turns().borrow());
        server.status.follows_gateway(serves);
    }
    server.say_ready();
}

/// Stops what is served.
async fn stop(
    server: Server,
    ended: &Result<Ended, Error>,
    patience: Duration,
    signals: &mut Signals,
) {
    match ended {
        Ok(Ended::Promoted) => {
            // Who asked for it is to be answered first.
            tokio::time::sleep(PROMOTION_ANSWER_WAIT).await;
            server.stop(patience.min(PROMOTED_PATIENCE)).await;
        }
        Ok(Ended::TakenOver(_)) => server.stop(GATEWAY_PATIENCE).await,
        _ => {
            service_manager::stopping();
            tokio::select! {
                () = server.stop(patience) => {}
                name = signals.next() => tracing::warn!(signal = name, "stopping at once"),
            }
        }
    }
}

fn tell_begun(is_gateway: bool) {
    if is_gateway {
        tracing::info!(
            "this gateway follows the engine's log: it answers when it has the first state"
        );
    } else {
        tracing::info!("a standby: it serves when it has the first state");
    }
}

/// How long requests under way may go on that a standby still serves when it was promoted.
const PROMOTED_PATIENCE: Duration = Duration::from_secs(5);

/// Serves one state after another.
async fn serve_turns(
    server: &Server,
    follower: &mut Follower,
    first: ServedState,
    (signals, reloads, mut refused): (&mut Signals, &mut Reloads, mpsc::Receiver<Error>),
) -> (Result<Ended, Error>, ServedState, FormerStates) {
    let former = FormerStates::counted_by(follower.reads.former_count());
    let (mut current, mut former) = (first, former);
    let ended = loop {
        let holds_back = follower.holds_back(&former);
        let turn = tokio::select! {
            turn = follower.next(), if !holds_back => turn,
            () = tokio::time::sleep(GATEWAY_RETRY), if holds_back => continue,
            () = reloads.next() => {
                server.certificate.reload();
                continue;
            }
            name = signals.next() => {
                tracing::info!(signal = name, "stopping");
                break Ok(Ended::Stopped);
            }
            Some(error) = refused.recv() => break Err(error),
        };
        match turn {
            Ok(StandbyTurn::State(state)) => {
                follower.reads.turn_away();
                server.turn_to(&state);
                let old = std::mem::replace(&mut current, state);
                old.cut_off_by(&current);
                former.add(old);
                // Last: the one before is counted by then as one that may be in use.
                follower.reads.turn_to(current.position.clone());
            }
            Ok(StandbyTurn::Promoted(promoted)) => {
                let as_of = coffer_durable::rfc3339(promoted.as_of_ms);
                tracing::warn!(as_of, head = %promoted.head, "PROMOTED: this server takes over");
                break Ok(Ended::Promoted);
            }
            Ok(StandbyTurn::TakenOver(log)) => break Ok(Ended::TakenOver(log)),
            Ok(StandbyTurn::Failed(error)) => break Err(error.into()),
            Err(error) => break Err(error),
        }
    };
    (ended, current, former)
}

/// A gateway that follows answers reads that it may answer, and forwards the rest.
fn follower_gateway(
    config: &Config,
    state: &ServedState,
    keeper: &LeaseKeeper,
    follower: &Follower,
) -> Result<Gateway, Error> {
    share_authority(config, &state.vault)?;
    let identity = GatewayIdentity::of(&state.vault.gateway_key())?;
    let forwarder = Forwarder::new(&identity, keeper.turns(), follower.link.clone())?;
    let reads = (follower.reads.clone(), follower.link.clone());
    let asker = ReadAsker::begin(&identity, keeper.turns(), reads)?;
    Ok(Gateway::Follower(Box::new(forwarder), Arc::new(asker)))
}

/// What takes the log of an engine over in its turn, beside what is served.
struct Taking {
    task: Option<JoinHandle<()>>,
    /// Why it never will.
    refused: mpsc::Receiver<Error>,
}

impl Taking {
    fn begin(
        engine: Option<Arc<LeaseKeeper>>,
        first: &ServedState,
        follower: &Follower,
        server: &Server,
    ) -> Result<Self, Error> {
        let (refuses, refused) = mpsc::channel(1);
        let mut task = None;
        if let Some(keeper) = engine {
            let identity = GatewayIdentity::of(&first.vault.gateway_key())?;
            let link = follower.link.clone();
            let told = tell_who_serves(keeper.turns(), server.status.clone(), link.clone());
            task = Some(tokio::spawn(async move {
                tokio::select! {
                    taken = take_over_in_turn(&keeper, &identity, link) => {
                        if let Err(error) = taken {
                            let _ = refuses.send(error).await;
                        }
                    }
                    () = told => {}
                }
            }));
        }
        Ok(Self { task, refused })
    }
}

/// Wants the lease, now that there is a state to go on from, and takes the log over when it has it.
async fn take_over_in_turn(
    keeper: &LeaseKeeper,
    identity: &GatewayIdentity,
    link: StandbyLink,
) -> Result<(), Error> {
    // The gateway that has the lease may serve elsewhere: then this log is a copy of that one's.
    if let Some(address) = keeper.silent_owner().await
        && serves(identity, &address).await?
    {
        return Err(Error::CopiedLog { address });
    }
    keeper.wants(true);
    let (mut turns, mut retries) = (keeper.turns(), Retries::default());
    while turns.wait_for(|turn| *turn == Turn::Mine).await.is_ok() {
        match link.take_over(keeper.right()).await {
            Ok(()) => break,
            Err(error) if error.is_lasting() => return Err(error.into()),
            Err(error) if retries.are_told() => {
                tracing::warn!(%error, "the engine's log could not be taken over yet");
            }
            Err(_) => {}
        }
        // Only a store that is put back as it was changes that.
        let wait = if link.is_ended() {
            ENDED_ENGINE_LOOKS_EVERY
        } else {
            retries.next_wait()
        };
        tokio::time::sleep(wait).await;
    }
    Ok(())
}

/// Where another gateway serves.
fn address_of(turn: &Turn) -> Option<String> {
    match turn {
        Turn::Other { address } => Some(address.clone()),
        Turn::Mine | Turn::Unknown => None,
    }
}

async fn tell_who_serves(mut turns: watch::Receiver<Turn>, status: Status, link: StandbyLink) {
    loop {
        let address = address_of(&turns.borrow_and_update());
        link.follows_gateway(address.clone());
        status.follows_gateway(address);
        if turns.changed().await.is_err() {
            return;
        }
    }
}
