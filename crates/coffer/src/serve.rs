//! `coffer serve`: puts the parts together, and takes them apart at the end.

use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coffer_admin::{Admin, LocalSocket, Routes, S3Metrics, S3Time, Status, Traffic};
use coffer_keys::SourceSecrets;
use coffer_s3::{RequestCount, RequestTime, S3Options, S3Service, TIME_BOUNDS};
use coffer_vault::{ServedState, SignInFailures, Vault, VaultOptions};
use futures::future::OptionFuture;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::config::args::DataTlsBy;
use crate::connection::activity::Activity;
use crate::connection::listen::local_address;
use crate::connection::shutdown::Shutdown;
use crate::error::Error;
use crate::hardening::warn_of_exposed_keys;
use crate::limits::{Limits, READY_WAIT};
use crate::tls::server_config::server_config;

pub mod administration;

pub mod clock_watch;

pub mod data;

pub mod folder_watch;

pub mod standing;

pub mod connection_count;

pub mod served_certificate;

pub mod request_body;

pub mod permits;

pub mod request_limit;

pub mod service_manager;

pub mod signals;

pub mod startup_message;

pub mod listeners;

pub mod gateway;

pub mod follow;

pub mod engine;

use self::administration::AdministrationService;
use self::connection_count::connections;
use self::data::{data_tls, serve_data, usual_data_listener};
use self::engine::serve_engine;
use self::follow::{Ended, Following, serve_standby};
use self::gateway::front::Front;
use self::gateway::{ForwardedService, Gateway, Limit, Refuse, here};
use self::listeners::{Listeners, gateway_listener, tls_listeners};
use self::request_limit::RequestLimit;
use self::served_certificate::ServedCertificate;
use self::signals::closing::{close_in_time, patience_of};
use self::signals::{Reloads, Signals};
use self::standing::{How, vault_options};
use self::startup_message::{StartupMessage, plain_url, url};

/// Serves until a signal asks for the end: as a standby first, if it is to follow a copy.
///
/// Addresses are taken first: a start that fails there has not made a data folder. The vault comes
/// next, for it holds the folder's lock under which all else in the folder is made.
pub async fn serve(mut config: Config, secrets: SourceSecrets, how: How) -> Result<(), Error> {
    let mut signals = Signals::catch()?;
    let mut reloads = Reloads::catch()?;
    let mut listeners = Listeners::take(&config)?;
    let mut options = vault_options(&config, secrets, &how);
    let watched = (&mut signals, &mut reloads);
    if let Some(how) = how.engine {
        return serve_engine(config, how, options, listeners, watched).await;
    }
    if let Some((from, identity)) = how.follow {
        let following = Following {
            from,
            identity,
            vault: options.clone(),
            engine: None,
            written: None,
            is_again: false,
        };
        let watched = (&mut signals, &mut reloads);
        match serve_standby(&mut config, following, listeners, watched).await? {
            Ended::Stopped => return Ok(()),
            Ended::Promoted => options.accept_rollback = true,
            // Of engines alone.
            Ended::TakenOver(_) | Ended::Again => return Ok(()),
        }
        listeners = Listeners::take(&config)?;
    }
    serve_folder(&config, options, listeners, (&mut signals, &mut reloads)).await
}

/// Serves a data folder.
async fn serve_folder(
    config: &Config,
    options: VaultOptions,
    listeners: Listeners,
    (signals, reloads): (&mut Signals, &mut Reloads),
) -> Result<(), Error> {
    let vault = Vault::open(options).await?;
    let server = Server::start(config, &vault, listeners, Gateway::None);
    let server = begun(server, &vault).await?;
    let name = loop {
        tokio::select! {
            name = signals.next() => break name,
            () = reloads.next() => server.certificate.reload(),
        }
    };
    service_manager::stopping();
    tracing::info!(
        signal = name,
        "stopping: requests under way may end; again to stop at once"
    );
    tokio::select! {
        () = server.stop(config.limits.shutdown_timeout()) => {}
        name = signals.next() => tracing::warn!(signal = name, "stopping at once"),
    }
    let patience = patience_of(config.limits.shutdown_timeout());
    close_in_time(async move { vault.close().await }, signals, Some(patience)).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Says that the server serves; where it could not be started, the vault is closed.
async fn begun(server: Result<Server, Error>, vault: &Vault) -> Result<Server, Error> {
    match server {
        Ok(server) => {
            warn_of_exposed_keys();
            server.say_ready();
            Ok(server)
        }
        Err(error) => {
            tell_what_to_keep(vault);
            vault.close().await;
            Err(error)
        }
    }
}

/// A first start that fails has made keys all the same, and no later one says that it did.
fn tell_what_to_keep(vault: &Vault) {
    if vault.first_start()
        && let Some(advice) = vault.to_keep()
    {
        let data = vault.data().display();
        tracing::warn!("this start made keys and credentials in {data}: {advice}");
    }
}

/// All that runs while the server serves.
pub struct Server {
    service: S3Service,
    routes: Routes,
    startup_message: StartupMessage,
    status: Status,
    certificate: Arc<ServedCertificate>,
    shutdown: Shutdown,
    s3: JoinHandle<()>,
    /// What goes on answering while S3 requests end: administration tells how far that is.
    aside: Vec<JoinHandle<()>>,
    aside_shutdown: Shutdown,
}

impl Server {
    fn start(
        config: &Config,
        vault: &Vault,
        mut listeners: Listeners,
        mut gateway: Gateway,
    ) -> Result<Self, Error> {
        let status = Status::default();
        let certificate = Arc::new(ServedCertificate::load(config, status.clone())?);
        let tls = server_config(certificate.certificate())?;
        let socket = LocalSocket::bind(&config.data)?;
        // Last, so that a start that fails says only why.
        listeners.data = listeners.data.or_else(|| usual_data_listener(config));
        let (shutdown, aside_shutdown) = (Shutdown::default(), Shutdown::default());
        let traffic = Arc::<Traffic>::default();
        let data_tls = data_tls(config, listeners.data.as_ref(), certificate.certificate())?;
        let startup_message = startup_message(config, vault, &certificate, &listeners)?;
        let service = coffer_s3::service(vault.clone(), s3_options(config));
        let admin = admin_of(config, vault, (&status, &traffic), &service);
        let stops = [shutdown.clone(), aside_shutdown.clone()];
        let connections = connections(&config.limits);
        let [s3_tls, admin_tls] = tls_listeners(config, connections, tls, &traffic, stops);
        let served = service.clone();
        let (request_limit, forwarded) = limited(&service, vault, &config.limits, traffic);
        let proxies = s3_tls.proxies.clone();
        let (gateway, fronts) = (gateway.taken(), gateway);
        let s3_service = move |client: IpAddr, activity: &Activity| {
            let front = fronts.front(&service, client, &proxies, activity);
            request_limit.before(front, client, proxies.clone())
        };
        let routes = Routes::new(admin);
        let (remote, answering) = (routes.clone(), routes.clone());
        let proxies = admin_tls.proxies.clone();
        let admin_service = move |client: IpAddr, activity: &Activity| {
            let (routes, proxies) = (remote.clone(), proxies.clone());
            AdministrationService::new(routes, client, activity.is_reserved(), proxies)
        };
        let mut aside = vec![
            tokio::spawn(admin_tls.serve(listeners.administration, admin_service)),
            tokio::spawn(socket.serve(move |peer| routes.for_peer(peer))),
            tokio::spawn(certificate.clone().watch()),
        ];
        // A state of a standby comes and goes, and nothing is written there.
        if vault.standby_now().is_none() {
            aside.push(tokio::spawn(folder_watch::watch(vault.clone())));
        }
        let gateways = gateway.map(|(listener, tls)| {
            let gateways = gateway_listener(config, connections, tls, shutdown.clone());
            let service = move |_: IpAddr, _: &Activity| forwarded.clone();
            gateways.serve(listener, service)
        });
        let s3 = s3_tls.serve(listeners.s3, s3_service);
        let data = (listeners.data, data_tls, connections);
        let data = serve_data(config, vault, data, &shutdown)?;
        let gateways = OptionFuture::from(gateways);
        let s3 = tokio::spawn(async move { tokio::join!(s3, data, gateways).0 });
        Ok(Self {
            service: served,
            routes: answering,
            startup_message,
            status,
            certificate,
            shutdown,
            s3,
            aside,
            aside_shutdown,
        })
    }

    /// Serves another state from now on.
    fn turn_to(&self, state: &ServedState) {
        let (vault, lease) = (&state.vault, &state.lease);
        self.service.turn_to(vault.clone(), lease.clone());
        self.routes.turn_to(vault.clone(), lease.clone());
    }

    /// A standard output that is closed, full or without a reader does not keep us from serving. A
    /// process whose part changes, as a gateway's does, goes on at its addresses, and says it once.
    fn say_ready(&self) {
        static IS_SAID: AtomicBool = AtomicBool::new(false);

        self.status.serves_s3_at(url(self.startup_message.s3));
        if let Some(data) = &self.startup_message.data_port {
            self.status.serves_data_at(data.clone());
        }
        self.status.serves();
        let ready_line = self.startup_message.ready_line();
        service_manager::ready(ready_line.trim_end());
        if IS_SAID.swap(true, Ordering::Relaxed) {
            return;
        }
        let text = self.startup_message.paste_lines() + &ready_line;
        let (said, is_said) = std::sync::mpsc::channel();
        let say = move || {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            let _ = said.send(());
        };
        let speaker = std::thread::Builder::new().name("ready".to_owned());
        if speaker.spawn(say).is_ok() {
            let _ = is_said.recv_timeout(READY_WAIT);
        }
    }

    /// Lets what is under way end for as long as `patience`, then cuts it off.
    async fn stop(mut self, patience: Duration) {
        self.status.stops();
        self.shutdown.drain.cancel();
        if tokio::time::timeout(patience, &mut self.s3).await.is_err() {
            tracing::warn!(
                seconds = patience.as_secs(),
                "requests did not end in time and are cut off"
            );
            self.shutdown.abort.cancel();
            let _ = self.s3.await;
        }
        self.aside_shutdown.abort.cancel();
        for task in self.aside {
            task.abort();
            let _ = task.await;
        }
    }
}

/// How many requests may be under way at once, and what of them comes from other gateways.
fn limited(
    service: &S3Service,
    vault: &Vault,
    limits: &Limits,
    traffic: Arc<Traffic>,
) -> (
    Arc<Limit<impl Refuse + use<>>>,
    ForwardedService<impl Refuse + use<>>,
) {
    let busy = service.clone();
    let refuse = move || here(busy.slow_down());
    let front = Front::Here(service.clone());
    let limit = RequestLimit::new(front, refuse, Front::claimed, limits, traffic);
    let limit = Arc::new(limit);
    let forwarded = ForwardedService {
        service: service.clone(),
        limit: limit.clone(),
        vault: vault.clone(),
    };
    (limit, forwarded)
}

fn s3_options(config: &Config) -> S3Options {
    S3Options {
        domains: config.domains.clone(),
        sign_in_failures: Some(config.limits.sign_in_failures),
    }
}

/// What administration answers from.
fn admin_of(
    config: &Config,
    vault: &Vault,
    (status, traffic): (&Status, &Arc<Traffic>),
    s3: &S3Service,
) -> Admin {
    let (counters, data) = (s3.clone(), config.data.clone());
    let count = move || requests(&counters);
    Admin::new(vault.clone(), data, status.clone(), traffic.clone(), count)
        .with_sign_in_throttle(SignInFailures::new(config.limits.sign_in_failures))
}

fn startup_message(
    config: &Config,
    vault: &Vault,
    certificate: &ServedCertificate,
    listeners: &Listeners,
) -> Result<StartupMessage, Error> {
    let data = absolute(&config.data)?;
    let credentials = data.join("credentials");
    let data_port = listeners.data.as_ref().map(local_address).transpose()?;
    let url_of_data = match config.data_tls {
        DataTlsBy::Off => plain_url,
        DataTlsBy::Kernel => url,
    };
    Ok(StartupMessage {
        data,
        credentials: credentials.exists().then_some(credentials),
        ca_cert: certificate.authority().map(absolute).transpose()?,
        s3: local_address(&listeners.s3)?,
        admin: local_address(&listeners.administration)?,
        data_port: data_port.map(url_of_data),
        first_start: vault.first_start(),
        to_keep: vault.to_keep(),
    })
}

fn requests(service: &S3Service) -> S3Metrics {
    let counters = service.counters();
    let answered = |row: &RequestCount| (row.operation, row.status, row.count);
    let time = |row: &RequestTime| S3Time {
        operation: row.operation,
        total: row.total,
        within: TIME_BOUNDS.into_iter().zip(row.within).collect(),
        count: row.count,
    };
    S3Metrics {
        answered: counters.requests.iter().map(answered).collect(),
        times: counters.times.iter().map(time).collect(),
        in_flight_count: counters.in_flight,
        received_bytes: counters.received_bytes,
        sent_bytes: counters.sent_bytes,
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::System {
        doing: "looking up the current folder",
        source,
    };
    std::path::absolute(path).map_err(failed)
}
