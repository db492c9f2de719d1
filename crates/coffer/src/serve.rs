//! `coffer serve`: puts the parts together, and takes them apart at the end.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coffer_admin::{Admin, LocalSocket, Routes, S3Metrics, Status, Traffic};
use coffer_keys::SourceSecrets;
use coffer_s3::{RequestCount, S3Options, S3Service};
use coffer_vault::{EtagStyle, SignInFailures, Vault, VaultOptions};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::config::proxy_rules::Listener;
use crate::config::{Config, Etag};
use crate::connection::activity::Activity;
use crate::connection::listen::listen;
use crate::connection::proxies::Proxies;
use crate::connection::read_ahead::Pool;
use crate::connection::shutdown::Shutdown;
use crate::connection::slots::Slots;
use crate::connection::tls_listener::TlsListener;
use crate::error::Error;
use crate::hardening::{open_files_max, warn_of_exposed_keys};
use crate::limits::{
    ADMIN_CONNECTIONS, ADMIN_PROBES, CERTIFICATE_CHECK, CLOCK_LOOK, Limits, OTHER_FILES, READY_WAIT,
};
use crate::tls::authority::constrains_addresses;
use crate::tls::certificates::Ensured;
use crate::tls::folder::Files;
use crate::tls::server_config::{Certificate, Source, server_config};
use crate::tls::server_names::names;

pub mod administration;

pub mod clock_watch;

pub mod request_body;

pub mod permits;

pub mod request_limit;

pub mod signals;

pub mod startup_message;

use self::administration::AdministrationService;
use self::clock_watch::ClockWatch;
use self::request_limit::RequestLimit;
use self::signals::Signals;
use self::startup_message::StartupMessage;

/// Serves until a signal asks for the end.
///
/// Addresses are taken first: a start that fails there has not made a data folder. The vault comes
/// next, for it holds the folder's lock under which all else in the folder is made.
///
/// `accept_rollback`: for this start only, so it is neither in the configuration nor remembered.
pub async fn serve(
    config: Config,
    secrets: SourceSecrets,
    accept_rollback: bool,
) -> Result<(), Error> {
    let mut signals = Signals::catch()?;
    let s3_listener = listen(config.listen)?;
    let admin_listener = listen(config.admin_listen)?;
    let vault = Vault::open(VaultOptions {
        data: config.data.clone(),
        etag: match config.etag {
            Etag::Random => EtagStyle::Random,
            Etag::Md5 => EtagStyle::Md5,
        },
        source: config.root_key.clone(),
        secrets,
        accept_rollback,
        settle_after: config
            .settle_after_hours
            .map(|hours| Duration::from_secs(u64::from(hours.get()) * 3600)),
    })
    .await?;
    warn_of_exposed_keys();
    let server = match Server::start(&config, &vault, s3_listener, admin_listener) {
        Ok(server) => server,
        Err(error) => {
            vault.close().await;
            return Err(error);
        }
    };
    server.say_ready();
    let name = signals.next().await;
    tracing::info!(
        signal = name,
        "stopping: requests under way may end; again to stop at once"
    );
    tokio::select! {
        () = server.stop(config.limits.shutdown_timeout()) => {}
        name = signals.next() => tracing::warn!(signal = name, "stopping at once"),
    }
    vault.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// All that runs while the server serves.
struct Server {
    startup_message: StartupMessage,
    status: Status,
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
        s3_listener: TcpListener,
        admin_listener: TcpListener,
    ) -> Result<Self, Error> {
        let (certificate, ca_cert) = certificate(config)?;
        let tls = server_config(certificate.clone())?;
        let socket = LocalSocket::bind(&config.data)?;
        let (shutdown, aside_shutdown) = (Shutdown::default(), Shutdown::default());
        let status = Status::default();
        let traffic = Arc::<Traffic>::default();
        let startup_message =
            startup_message(config, vault, ca_cert, [&s3_listener, &admin_listener])?;
        let service = coffer_s3::service(
            vault.clone(),
            S3Options {
                domains: config.domains.clone(),
                sign_in_failures: Some(config.limits.sign_in_failures),
            },
        );
        let counters = service.clone();
        let admin = Admin::new(vault.clone(), status.clone(), traffic.clone(), move || {
            requests(&counters)
        })
        .with_sign_in_throttle(SignInFailures::new(config.limits.sign_in_failures));
        let stops = [shutdown.clone(), aside_shutdown.clone()];
        let [s3_tls, admin_tls] = tls_listeners(config, tls, traffic.clone(), stops);
        let busy = service.clone();
        let refuse = move || busy.slow_down();
        let request_limit = RequestLimit::new(service.clone(), refuse, &config.limits, traffic);
        let proxies = s3_tls.proxies.clone();
        let s3_service = move |client: IpAddr, _: &Activity| {
            let told_by = proxies.clone();
            let service = match proxies.forwards(client) {
                true => {
                    service.for_proxy(move |headers| told_by.client_of_request(headers, client))
                }
                false => service.for_peer(client),
            };
            request_limit.before(service, client, proxies.clone())
        };
        let routes = Routes::new(admin);
        let (remote, proxies) = (routes.clone(), admin_tls.proxies.clone());
        let admin_service = move |client: IpAddr, activity: &Activity| {
            let (routes, proxies) = (remote.clone(), proxies.clone());
            AdministrationService::new(routes, client, activity.is_reserved(), proxies)
        };
        let aside = vec![
            tokio::spawn(admin_tls.serve(admin_listener, admin_service)),
            tokio::spawn(socket.serve(move |peer| routes.for_peer(peer))),
            tokio::spawn(watch_certificate(certificate)),
        ];
        let s3 = tokio::spawn(s3_tls.serve(s3_listener, s3_service));
        Ok(Self {
            startup_message,
            status,
            shutdown,
            s3,
            aside,
            aside_shutdown,
        })
    }

    /// A standard output that is closed, full or without a reader does not keep us from serving.
    fn say_ready(&self) {
        self.status.serves();
        let text = self.startup_message.paste_lines() + &self.startup_message.ready_line();
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

/// The listeners of S3 and of administration.
fn tls_listeners(
    config: &Config,
    tls: Arc<ServerConfig>,
    traffic: Arc<Traffic>,
    [s3_stop, admin_stop]: [Shutdown; 2],
) -> [TlsListener; 2] {
    let s3 = TlsListener {
        name: "s3",
        tls: tls.clone(),
        limits: config.limits,
        slots: Slots::new(connections(&config.limits), 0),
        proxies: Proxies::of(&config.proxies, Listener::S3),
        traffic,
        stop: s3_stop,
        pool: Arc::<Pool>::default(),
    };
    let administration = TlsListener {
        name: "administration",
        tls,
        limits: config.limits,
        slots: Slots::new(ADMIN_CONNECTIONS, ADMIN_PROBES),
        proxies: Proxies::of(&config.proxies, Listener::Administration),
        traffic: Arc::default(),
        stop: admin_stop,
        pool: Arc::default(),
    };
    [s3, administration]
}

fn startup_message(
    config: &Config,
    vault: &Vault,
    ca_cert: Option<PathBuf>,
    [s3, admin]: [&TcpListener; 2],
) -> Result<StartupMessage, Error> {
    Ok(StartupMessage {
        data: absolute(&config.data)?,
        ca_cert: ca_cert.map(|path| absolute(&path)).transpose()?,
        s3: local_address(s3)?,
        admin: local_address(admin)?,
        first_start: vault.first_start(),
        root_key: vault.root_source(),
    })
}

/// The certificate, and the authority that clients should trust if it is the local one.
fn certificate(config: &Config) -> Result<(Arc<Certificate>, Option<PathBuf>), Error> {
    if let Some(files) = &config.tls {
        let (certificate, _) = Certificate::load(Source::Operator(files.clone()))?;
        return Ok((certificate, None));
    }
    let files = Files::of(&config.data);
    let tls_files = files.clone();
    let ca_cert = files.ca_cert();
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let listen = [config.listen.ip(), config.admin_listen.ip()];
    let names = names(&host, &listen, &config.domains);
    let domains = config.domains.clone();
    let (certificate, ensured) = Certificate::load(Source::Local {
        files,
        names,
        domains,
    })?;
    match ensured {
        Ensured::Kept => {}
        Ensured::KeptUnderWrongClock => tracing::warn!(
            "the clock is wrong: it shows a time before the server's certificate begins, which is \
             kept; signatures of clients are refused until the clock is set"
        ),
        Ensured::KeptDespite { problem } => tracing::error!(
            %problem,
            "the server's certificate, which is still valid, can't be renewed"
        ),
        Ensured::Completed => tracing::warn!(
            path = %ca_cert.display(),
            "the authority's certificate was missing and was made again, for the same key"
        ),
        Ensured::Renewed => tracing::info!("renewed the server's certificate"),
        Ensured::Founded => tracing::info!(
            path = %ca_cert.display(),
            "made a local certificate authority: clients need this file"
        ),
    }
    if let Ok(true) = constrains_addresses(&tls_files, SystemTime::now()) {
        tracing::warn!(
            "the local authority constrains addresses, which clients on BoringSSL refuse: \
             `coffer tls renew-authority` makes way for another, whose ca.pem clients need"
        );
    }
    Ok((certificate, Some(ca_cert)))
}

/// Renews or reloads the certificate of a server that runs for long, or whose clock was set: what
/// was made under the old time may not be valid under the new.
async fn watch_certificate(certificate: Arc<Certificate>) {
    let mut watched = ClockWatch::now();
    loop {
        tokio::time::sleep(CLOCK_LOOK).await;
        let was_set = watched.was_set();
        if !was_set && watched.since() < CERTIFICATE_CHECK {
            continue;
        }
        watched = ClockWatch::now();
        if was_set {
            tracing::info!("the clock was set: looking at the certificate");
        }
        // It makes files at most once in months: short enough for this thread.
        match certificate.refresh() {
            Ok(true) => tracing::info!("new connections get a new certificate"),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "the certificate could not be renewed"),
        }
    }
}

/// As many connections as configured, but no more than the system lets us open: requests under way
/// need files of blobs besides, and catalogs and listeners need some too.
fn connections(limits: &Limits) -> usize {
    let configured = limits.connections;
    let files = usize::try_from(open_files_max()).unwrap_or(usize::MAX);
    let needed = limits
        .requests
        .saturating_mul(2)
        .saturating_add(OTHER_FILES);
    let possible = files.saturating_sub(needed).max(files / 3).max(16);
    if possible < configured {
        tracing::warn!(
            configured,
            possible,
            "fewer connections: the limit of open files is low"
        );
    }
    configured.min(possible)
}

fn requests(service: &S3Service) -> S3Metrics {
    let counters = service.counters();
    let answered = |row: &RequestCount| (row.operation, row.status, row.count);
    S3Metrics {
        answered: counters.requests.iter().map(answered).collect(),
        time: counters
            .times
            .iter()
            .map(|row| (row.operation, row.total))
            .collect(),
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

fn local_address(listener: &TcpListener) -> Result<SocketAddr, Error> {
    let failed = |source| Error::System {
        doing: "looking up a listener's address",
        source,
    };
    listener.local_addr().map_err(failed)
}
