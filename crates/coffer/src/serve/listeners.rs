//! Where the server listens, and how.

use std::sync::Arc;

use coffer_admin::Traffic;
use rustls::ServerConfig;
use tokio::net::TcpListener;

use crate::config::Config;
use crate::config::proxy_rules::Listener;
use crate::connection::listen::listen;
use crate::connection::proxies::Proxies;
use crate::connection::read_ahead::Pool;
use crate::connection::shutdown::Shutdown;
use crate::connection::slots::Slots;
use crate::connection::tls_listener::TlsListener;
use crate::error::Error;
use crate::limits::{ADMIN_CONNECTIONS, ADMIN_PROBES};
use crate::serve::data::asked_data_listener;

/// The addresses that were taken.
pub struct Listeners {
    /// Of S3.
    pub s3: TcpListener,
    /// Of administration.
    pub administration: TcpListener,
    /// Of the data port.
    pub data: Option<TcpListener>,
}

impl Listeners {
    /// Takes them.
    pub fn take(config: &Config) -> Result<Self, Error> {
        Ok(Self {
            s3: listen(config.listen, "--listen")?,
            administration: listen(config.admin_listen, "--admin-listen")?,
            data: asked_data_listener(config)?,
        })
    }
}

/// The listeners of S3 and of administration.
pub fn tls_listeners(
    config: &Config,
    connections: usize,
    tls: Arc<ServerConfig>,
    traffic: &Arc<Traffic>,
    [s3_stop, admin_stop]: [Shutdown; 2],
) -> [TlsListener; 2] {
    let s3 = TlsListener {
        name: "s3",
        tls: tls.clone(),
        limits: config.limits,
        slots: Slots::shared(connections, 0, config.limits.per_address()),
        per_subject: config.limits.per_subject(connections),
        proxies: Proxies::of(&config.proxies, Listener::S3),
        refusal: Some(coffer_s3::unread_head),
        traffic: traffic.clone(),
        stop: s3_stop,
        pool: Arc::<Pool>::default(),
    };
    let administration = TlsListener {
        name: "administration",
        tls,
        limits: config.limits,
        slots: Slots::new(ADMIN_CONNECTIONS, ADMIN_PROBES),
        // Who works over S3 with many is still to get in here.
        per_subject: usize::MAX,
        proxies: Proxies::of(&config.proxies, Listener::Administration),
        refusal: None,
        traffic: Arc::default(),
        stop: admin_stop,
        pool: Arc::default(),
    };
    [s3, administration]
}

/// The listener for what other gateways of an engine forward.
pub fn gateway_listener(
    config: &Config,
    connections: usize,
    tls: Arc<ServerConfig>,
    stop: Shutdown,
) -> TlsListener {
    TlsListener {
        name: "gateways",
        tls,
        limits: config.limits,
        slots: Slots::new(connections, 0),
        // What comes over one connection is of many subjects.
        per_subject: usize::MAX,
        proxies: Proxies::none(),
        refusal: None,
        traffic: Arc::default(),
        stop,
        pool: Arc::default(),
    }
}
