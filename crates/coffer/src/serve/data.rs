//! The data port: where it is, and what serves it.

use std::net::SocketAddr;
use std::sync::Arc;

use coffer_vault::{DataPort, Vault};
use tokio::net::TcpListener;

use crate::config::args::{DataListen, DataTlsBy, Verify};
use crate::config::{Config, DATA_PORT_DEFAULT};
use crate::connection::listen::{listen, local_address};
use crate::connection::shutdown::Shutdown;
use crate::connection::slots::Slots;
use crate::data_port::handshake::DataTls;
use crate::data_port::listener::DataListener;
use crate::error::Error;
use crate::limits::{DATA_CONNECTIONS_MIN, DATA_CONNECTIONS_SHARE};
use crate::tls::server_config::Certificate;

/// What names the address of the data port.
const OPTION: &str = "--data-listen";

/// The data port that was asked for.
pub fn asked_data_listener(config: &Config) -> Result<Option<TcpListener>, Error> {
    match config.data_listen {
        Some(DataListen::At(address)) => listen(address, OPTION).map(Some),
        Some(DataListen::Off) | None => Ok(None),
    }
}

/// The usual data port, where none was asked for. A start does not fail for it.
pub fn usual_data_listener(config: &Config) -> Option<TcpListener> {
    if config.data_listen.is_some() {
        return None;
    }
    let address = SocketAddr::new(config.listen.ip(), DATA_PORT_DEFAULT);
    listen(address, OPTION)
        .inspect_err(|error| {
            tracing::warn!(
                %error,
                "no sealed transfer, for its port can't be opened: name another with \
                 --data-listen, or `off`"
            );
        })
        .ok()
}

/// The TLS of the data port, if it is asked for and there is one.
pub fn data_tls(
    config: &Config,
    listener: Option<&TcpListener>,
    certificate: Arc<Certificate>,
) -> Result<Option<DataTls>, Error> {
    match (config.data_tls, listener) {
        (DataTlsBy::Kernel, Some(_)) => DataTls::new(certificate).map(Some),
        _ => Ok(None),
    }
}

/// Serves the data port, if there is one, and has the vault know of it.
pub fn serve_data(
    config: &Config,
    vault: &Vault,
    (listener, tls, s3_connections): (Option<TcpListener>, Option<DataTls>, usize),
    stop: &Shutdown,
) -> Result<impl Future<Output = ()> + Send + use<>, Error> {
    let connections = (s3_connections / DATA_CONNECTIONS_SHARE).max(DATA_CONNECTIONS_MIN);
    let limits = config.limits;
    if let Some(listener) = &listener {
        // What stands before the server may speak TLS in its place.
        let is_https = |url: &String| url.starts_with("https:");
        vault.offer_transfers(DataPort {
            port: local_address(listener)?.port(),
            url: config.data_advertise.clone(),
            speaks_tls: tls.is_some() || config.data_advertise.as_ref().is_some_and(is_https),
        });
        if config.verify == Verify::Later {
            vault.verify_transfers_later();
        }
    }
    let data = DataListener {
        vault: vault.clone(),
        limits,
        slots: Slots::shared(connections, 0, limits.per_address()),
        per_subject: limits.per_subject(connections),
        tls,
        stop: stop.clone(),
    };
    Ok(async move {
        if let Some(listener) = listener {
            data.serve(listener).await;
        }
    })
}
