//! What the post-quantum key exchange costs the server: handshakes with it and without.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use coffer_measure::tls::client_exchanging;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::error::{Doing, Result};
use crate::report::figures::{Quantity, Sample, Work};
use crate::works::rounds::{Entrant, interleave};

/// Handshakes of a round, and of a quick one.
const HANDSHAKES: (usize, usize) = (3_000, 1_000);

const EXCHANGES: [(&str, &dyn SupportedKxGroup); 2] = [
    ("X25519MLKEM768", kx_group::X25519MLKEM768),
    ("X25519", kx_group::X25519),
];

/// Full handshakes, one after the other, each on a connection of its own. A ratio of 1.2 means that
/// a handshake with the post-quantum exchange costs a fifth more.
pub fn handshakes(bench: &Bench) -> Result<Vec<Work>> {
    if !bench.wants("coffer") {
        return Ok(Vec::new());
    }
    let folder = bench.folder("handshakes")?;
    let coffer = &Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
    let count = if bench.effort.quick {
        HANDSHAKES.1
    } else {
        HANDSHAKES.0
    };
    let mut entrants = Vec::new();
    for (name, exchange) in EXCHANGES {
        let config = client_exchanging(&folder.join(Coffer::AUTHORITY), exchange)?;
        let config = Arc::new(config);
        let measure = Box::new(move |_| measure(coffer, &config, count));
        entrants.push(Entrant { name, measure });
    }
    let key = Quantity::ServerCpuMicrosecondsPerRequest;
    let work = interleave("TLS handshakes", key, None, bench.effort.rounds, entrants)?;
    Ok(vec![work])
}

fn measure(coffer: &Coffer, config: &Arc<ClientConfig>, count: usize) -> Result<Sample> {
    let endpoint = coffer.endpoint();
    let (cpu_before, start) = (endpoint.process.cpu_seconds()?, Instant::now());
    for _ in 0..count {
        shake_hands(endpoint.address, config)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = endpoint.process.cpu_seconds()? - cpu_before;
    Ok(Sample::from([
        (
            Quantity::ServerCpuMicrosecondsPerRequest,
            cpu_seconds * 1e6 / count as f64,
        ),
        (Quantity::PerSecond, count as f64 / seconds),
    ]))
}

fn shake_hands(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<()> {
    let connecting = || format!("connecting to {address}");
    let mut stream = TcpStream::connect(address).doing(connecting)?;
    stream.set_nodelay(true).doing(connecting)?;
    let mut tls = ClientConnection::new(config.clone(), ServerName::from(address.ip()))?;
    while tls.is_handshaking() {
        tls.complete_io(&mut stream).doing(connecting)?;
    }
    tls.send_close_notify();
    tls.complete_io(&mut stream).doing(connecting)?;
    Ok(())
}
