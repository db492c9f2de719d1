//! Serving as a gateway of an engine: following and forwarding, until the lease is this one's; then
//! serving, until it is not any more; and so on, until a signal asks for the end.

use std::pin::pin;
use std::sync::Arc;

use coffer_keys::ExportIdentity;
use coffer_vault::{
    EngineSeat, FoundLog, LeaseKeeper, ServingRight, TakenLog, Turn, Vault, VaultError,
    VaultOptions, WrittenEnd, check_own_log, has_log, take_over_begun,
};
use tokio::net::TcpListener;

use crate::config::Config;
use crate::config::args::DataListen;
use crate::connection::listen::{listen, local_address};
use crate::error::Error;
use crate::gateways::authority::share_authority;
use crate::gateways::identity::GatewayIdentity;
use crate::limits::{GATEWAY_PATIENCE, GATEWAY_RETRY, GATEWAY_UNFIT_AFTER};
use crate::secrets::engine_identity::gateway_identity;
use crate::serve::follow::{Ended, Following, serve_standby};
use crate::serve::gateway::Gateway;
use crate::serve::gateway::disk::Disk;
use crate::serve::gateway::folder;
use crate::serve::gateway::retries::Retries;
use crate::serve::gateway::tending::Tending;
use crate::serve::listeners::Listeners;
use crate::serve::signals::closing::{close_in_time, patience_of};
use crate::serve::signals::{Reloads, Signals};
use crate::serve::standing::{EngineHow, EngineKey};
use crate::serve::{Server, begun, service_manager};

/// What names the address for other gateways.
const GATEWAY_OPTION: &str = "--gateway-listen";

/// Serves until a signal asks for the end.
pub async fn serve_engine(
    mut config: Config,
    how: EngineHow,
    options: VaultOptions,
    listeners: Listeners,
    (signals, reloads): (&mut Signals, &mut Reloads),
) -> Result<(), Error> {
    // Data keys are released by who serves, and clients reach its data port at no other gateway.
    config.data_listen = Some(DataListen::Off);
    folder::put_back(&config.data).await?;
    config.listen = local_address(&listeners.s3)?;
    config.admin_listen = local_address(&listeners.administration)?;
    let listeners = Listeners {
        data: None,
        ..listeners
    };
    let gateways = listen(how.listen, GATEWAY_OPTION)?;
    let listen_at = local_address(&gateways)?;
    let address = how.advertise.clone();
    let address = address.unwrap_or_else(|| listen_at.to_string());
    let keeper = Arc::new(LeaseKeeper::begin(&how.from, address).await?);
    let identity = tokio::select! {
        identity = identity_of(&config, &how) => identity?,
        _ = signals.next() => return Ok(()),
    };
    let mut gateway = EngineGateway {
        config,
        how: EngineHow {
            listen: listen_at,
            ..how
        },
        identity,
        options,
        keeper: keeper.clone(),
        taken: Some((listeners, gateways)),
        tending: Tending::default(),
        disk: Disk::default(),
        retries: Retries::default(),
        written: None,
    };
    let ended = loop {
        let turned = tokio::select! {
            turned = gateway.turn(signals, reloads) => turned,
            () = keeper.stopped() => break Err(stopped("what keeps the lease has failed")),
        };
        let turned = turned.map_err(|error| error.of_folder(&gateway.config.data));
        // However it ended: the lease of one that does not serve is another's to take.
        keeper.wants(false);
        let is_told = turned.is_err() && gateway.retries.are_told();
        folder::put_back_after(turned.as_ref().err(), &gateway.config.data, is_told).await;
        match turned {
            Ok(Ended::Stopped) => break Ok(()),
            Ok(_) => gateway.retries.succeeded(),
            Err(error) if error.is_lasting() || gateway.retries.are_none_yet() => break Err(error),
            Err(error) => {
                if is_told {
                    tracing::warn!(%error, "this gateway takes no part now, and tries again");
                }
                if gateway.retries.are_ended_by(signals).await {
                    break Ok(());
                }
            }
        }
    };
    drop(gateway);
    if let Some(keeper) = Arc::into_inner(keeper) {
        keeper.end().await;
    }
    ended
}

/// A gateway, from one turn to the next.
struct EngineGateway {
    config: Config,
    how: EngineHow,
    /// What opens the engine's keystore.
    identity: ExportIdentity,
    options: VaultOptions,
    keeper: Arc<LeaseKeeper>,
    /// Addresses that were taken, and nothing listens at yet.
    taken: Option<(Listeners, TcpListener)>,
    tending: Tending,
    disk: Disk,
    /// Once it has served or followed, it tries again where the store is away, the disk fails, the
    /// turn before goes on, or a command has the folder.
    retries: Retries,
    /// What it wrote last into the log, once it has served: it follows no log that lacks it.
    written: Option<WrittenEnd>,
}

impl EngineGateway {
    /// Follows, and serves when it is this one's turn.
    async fn turn(&mut self, signals: &mut Signals, reloads: &mut Reloads) -> Result<Ended, Error> {
        let has_log = self.has_log().await?;
        let (data, from) = (&self.config.data, &self.how.from);
        if has_log {
            check_own_log(data, from).await?;
        }
        let cache = (self.options.cache.clone(), self.how.cache_bytes);
        if let Some(cache) = folder::prepare(data, from, has_log, cache).await? {
            self.tending.begin(cache.clone(), self.keeper.hesitation());
            self.options.cache = Some(cache);
        }
        let log = if has_log {
            match self.follow((signals, reloads)).await? {
                Ended::TakenOver(log) => Some(log),
                ended => return Ok(ended),
            }
        } else {
            match self.wait_to_found(signals).await? {
                Ended::Promoted => None,
                ended => return Ok(ended),
            }
        };
        self.serve(log, (signals, reloads)).await
    }

    async fn follow(&mut self, watched: (&mut Signals, &mut Reloads)) -> Result<Ended, Error> {
        let (listeners, gateways) = self.take()?;
        let following = Following {
            from: self.how.from.clone(),
            identity: Some(self.identity.clone()),
            vault: self.options.clone(),
            engine: Some(self.keeper.clone()),
            written: self.written.clone(),
            is_again: self.retries.are_under_way(),
        };
        let ended = serve_standby(&mut self.config, following, listeners, watched).await?;
        self.retries.succeeded();
        if let Ended::TakenOver(_) = ended {
            self.taken = Some((Listeners::take(&self.config)?, gateways));
        }
        Ok(ended)
    }

    /// Where there is no log, who has the lease makes it; the others wait until there is one.
    /// [`Ended::Promoted`]: this one has it.
    async fn wait_to_found(&mut self, signals: &mut Signals) -> Result<Ended, Error> {
        tracing::info!("the store holds no log yet: who has the lease makes it");
        self.keeper.wants(true);
        let mut turns = self.keeper.turns();
        loop {
            tokio::select! {
                mine = turns.wait_for(|turn| *turn == Turn::Mine) => {
                    mine.map_err(stopped)?;
                    // Another may have made it, and ended.
                    let is_made = self.has_log().await?;
                    return Ok(if is_made { Ended::Again } else { Ended::Promoted });
                }
                () = tokio::time::sleep(GATEWAY_RETRY) => {
                    if self.has_log().await? {
                        return Ok(Ended::Again);
                    }
                }
                _ = signals.next() => return Ok(Ended::Stopped),
            }
        }
    }

    /// Serves for as long as the lease holds.
    async fn serve(
        &mut self,
        log: Option<TakenLog>,
        (signals, reloads): (&mut Signals, &mut Reloads),
    ) -> Result<Ended, Error> {
        let (listeners, gateways) = self.take()?;
        let right = match &log {
            Some(log) => log.right.clone(),
            None => self.keeper.right(),
        };
        let vault = match self.open(log, right.clone()).await {
            Ok(Some(vault)) => vault,
            Ok(None) => {
                tracing::info!("another gateway completed the log meanwhile: it is followed");
                return Ok(Ended::Again);
            }
            Err(error) if !right.holds() => {
                tracing::warn!(%error, "the lease was lost before this gateway served");
                return Ok(Ended::Again);
            }
            Err(error) => return Err(error.into()),
        };
        self.written = vault.engine_end().or(self.written.take());
        let server = begun(self.start(&vault, listeners, gateways), &vault).await?;
        self.disk.begin();
        let mut turns = self.keeper.turns();
        let ended = {
            // Beside the rest: a disk that hangs holds up no signal, nor the loss of the lease.
            let mut fails = pin!(self.disk.fails(&vault, self.options.cache.as_ref()));
            loop {
                tokio::select! {
                    _ = turns.wait_for(|turn| *turn != Turn::Mine) => break Ended::Again,
                    () = tokio::time::sleep(GATEWAY_RETRY) => {
                        // Another time of the lease may have begun by now: it is not this one's.
                        if !right.holds() || !vault.engine_goes_on() {
                            tracing::warn!("this gateway serves no more, and follows");
                            break Ended::Again;
                        }
                    }
                    // What was acknowledged is in the log, which the next goes on with.
                    why = &mut fails => {
                        tracing::warn!(why, "this gateway leaves serving to another, and follows");
                        break Ended::Again;
                    }
                    () = reloads.next() => server.certificate.reload(),
                    name = signals.next() => {
                        service_manager::stopping();
                        tracing::info!(signal = name, "stopping: requests under way may end");
                        break Ended::Stopped;
                    }
                }
            }
        };
        let is_stopping = self.end(server, &vault, &ended, signals).await?;
        match ended {
            Ended::Again if is_stopping => Ok(Ended::Stopped),
            Ended::Again if !right.holds() => self.wait_for_store(&vault, signals).await,
            ended => Ok(ended),
        }
    }

    /// Ends what is served. A disk that hangs may keep it from ending for as long as it does: then
    /// the lease is given back meanwhile, with which the right ends, and so nothing is acknowledged
    /// or answered here any more, as where the lease is lost. Gives whether a signal has asked for
    /// the end.
    async fn end(
        &self,
        server: Server,
        vault: &Vault,
        ended: &Ended,
        signals: &mut Signals,
    ) -> Result<bool, Error> {
        let leaves = !matches!(ended, Ended::Stopped);
        let patience = if leaves {
            vault.give_up_engine();
            GATEWAY_PATIENCE
        } else {
            self.config.limits.shutdown_timeout()
        };
        let mut ending = pin!(async {
            let is_asked = tokio::select! {
                () = server.stop(patience) => false,
                name = signals.next() => {
                    tracing::warn!(signal = name, "stopping at once");
                    true
                }
            };
            let is_stopping = is_asked || !leaves;
            let patience = is_stopping.then(|| patience_of(patience));
            let vault = vault.clone();
            let closed = close_in_time(async move { vault.close().await }, signals, patience).await;
            closed.map(|is_asked| is_asked || is_stopping)
        });
        if leaves {
            let in_time = tokio::time::timeout(GATEWAY_UNFIT_AFTER, &mut ending).await;
            if let Ok(ended) = in_time {
                return ended;
            }
            tracing::warn!("what this gateway served does not end: another takes the lease");
            self.keeper.wants(false);
        }
        ending.await
    }

    /// Opens what the log holds that was taken over; without one, makes a log, or goes on with what
    /// a gateway left there that was ended as it made it. None, where there is a log by now.
    async fn open(
        &self,
        log: Option<TakenLog>,
        right: ServingRight,
    ) -> Result<Option<Vault>, VaultError> {
        let (from, data) = (&self.how.from, &self.config.data);
        let log = match log {
            Some(log) => Some(log),
            None => match take_over_begun(from, &self.identity, data, right.clone()).await? {
                FoundLog::None => None,
                FoundLog::Begun(log) => Some(log),
                FoundLog::Whole => return Ok(None),
            },
        };
        let seat = EngineSeat::new(
            from.clone(),
            &self.identity,
            (self.keeper.address().to_owned(), right),
            log,
        );
        let options = VaultOptions {
            engine: Some(seat),
            ..self.options.clone()
        };
        Vault::open(options).await.map(Some)
    }

    async fn has_log(&self) -> Result<bool, VaultError> {
        has_log(&self.how.from, &self.identity).await
    }

    /// Where the store is away, nothing can be followed: until it is there again, clients are told
    /// to ask again, and who looks how this gateway is finds it alive and not ready. The vault is
    /// closed, and answers nothing.
    async fn wait_for_store(&self, vault: &Vault, signals: &mut Signals) -> Result<Ended, Error> {
        self.keeper.wants(false);
        let looked = tokio::time::timeout(GATEWAY_RETRY, self.has_log()).await;
        match looked {
            Ok(Ok(_)) => return Ok(Ended::Again),
            Ok(Err(error)) => tracing::warn!(%error, "a gateway waits for the engine's store"),
            Err(_) => tracing::warn!("a gateway waits for the engine's store, which is silent"),
        }
        let listeners = Listeners::take(&self.config)?;
        let server = Server::start(&self.config, vault, listeners, Gateway::None)?;
        server.status.waits();
        let is_back = async {
            while self.has_log().await.is_err() {
                tokio::time::sleep(GATEWAY_RETRY).await;
            }
        };
        let ended = tokio::select! {
            () = is_back => Ended::Again,
            _ = signals.next() => Ended::Stopped,
        };
        server.stop(GATEWAY_PATIENCE).await;
        Ok(ended)
    }

    fn start(
        &self,
        vault: &Vault,
        listeners: Listeners,
        gateways: TcpListener,
    ) -> Result<Server, Error> {
        let tls = GatewayIdentity::of(&vault.gateway_key())?.server()?;
        share_authority(&self.config, vault)?;
        let gateway = Gateway::Owner(Some((gateways, tls)));
        Server::start(&self.config, vault, listeners, gateway)
    }

    fn take(&mut self) -> Result<(Listeners, TcpListener), Error> {
        match self.taken.take() {
            Some(taken) => Ok(taken),
            None => Ok((
                Listeners::take(&self.config)?,
                listen(self.how.listen, GATEWAY_OPTION)?,
            )),
        }
    }
}

/// What opens the engine's keystore: as it was given, or as it lies in the store.
async fn identity_of(config: &Config, how: &EngineHow) -> Result<ExportIdentity, Error> {
    match &how.key {
        EngineKey::Given(identity) => Ok(identity.clone()),
        EngineKey::Shared(source, args) => {
            gateway_identity(&how.from, source, args, &config.data).await
        }
    }
}

fn stopped(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::System {
        doing: "taking part in the engine",
        source: std::io::Error::other(error),
    }
}
