//! Handshakes of TLS 1.3: what a new connection costs the server, by the exchange of keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_measure::cpu_time::thread_cpu_seconds;
use coffer_measure::tls::Tls;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, X25519, X25519MLKEM768};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ServerConnection};

use crate::contender::{Availability, Contender, Placement};
use crate::error::{LabError, Result};
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::record::{Axis, Counts, Experiment, Sample};

/// The experiment.
pub(super) const ID: &str = "raw/handshakes";

/// Both ends derive so many bytes from what they agreed on, which must be the same.
const DERIVED_BYTES: usize = 32;

/// The most of what an end says at once.
const FLIGHT_BYTES: usize = 16 << 10;

/// How keys are exchanged.
fn exchanges() -> [(&'static str, &'static dyn SupportedKxGroup); 3] {
    [
        ("X25519", X25519),
        ("X25519MLKEM768", X25519MLKEM768),
        ("P-256", SECP256R1),
    ]
}

/// Who takes part.
pub fn contenders() -> Vec<Contender> {
    let ours = exchanges().map(|(name, _)| {
        Contender::new(
            format!("{name}, rustls"),
            Placement::User,
            "rustls over aws-lc-rs",
        )
        .set("TLS 1.3, AES-256-GCM, ECDSA P-256, in full: nothing is resumed")
    });
    // The kernel does no handshakes.
    let kernel = Contender::new("kernel TLS", Placement::Kernel, "the kernel's tls").available(
        Availability::cannot(
            "the kernel only seals and opens records: a program shakes hands",
            "nothing: it is so by design",
        ),
    );
    ours.into_iter().chain([kernel]).collect()
}

/// Measures all exchanges, once both ends were seen to agree.
pub(super) fn handshakes(effort: Effort) -> Result<Experiment> {
    let tls = Tls::new()?;
    let clients: Result<Vec<_>> = exchanges()
        .into_iter()
        .map(|(_, exchange)| Ok(Arc::new(tls.client_exchanging(exchange)?)))
        .collect();
    let clients = clients?;
    for ((name, exchange), client) in exchanges().into_iter().zip(&clients) {
        check(name, exchange, Pair::new(&tls, client)?)?;
    }
    let duration = effort.last(if effort.quick { 50 } else { 300 });
    let entrants = clients
        .iter()
        .enumerate()
        .map(|(contender, client)| Entrant {
            contender,
            x: 0,
            measure: Box::new(|| measure(&tls, client, duration)),
        });
    let plan = Plan {
        id: ID.into(),
        title: "Handshakes of TLS 1.3, by the exchange of keys".into(),
        axis: Axis::Single,
        how: "Client and server in one thread, without a network. CPU time is the server’s \
              share alone. Before, both ends were seen to have exchanged keys in that way, and to \
              derive the same from them."
            .into(),
        figure: Figure::Handshakes,
        whole_machine: false,
        contenders: contenders(),
        entrants: entrants.collect(),
    };
    run(plan, effort)
}

/// Both ends of a connection that begins.
struct Pair {
    client: ClientConnection,
    server: ServerConnection,
    /// What the server took so far.
    server_seconds: f64,
    bytes: usize,
}

fn failed(what: impl ToString) -> LabError {
    LabError::Cipher {
        contender: "rustls".into(),
        what: what.to_string(),
    }
}

impl Pair {
    fn new(tls: &Tls, client: &Arc<ClientConfig>) -> Result<Self> {
        let named = ClientConnection::new(client.clone(), tls.name.clone());
        let start = thread_cpu_seconds();
        let server = ServerConnection::new(tls.server.clone()).map_err(failed)?;
        Ok(Self {
            client: named.map_err(failed)?,
            server,
            server_seconds: thread_cpu_seconds() - start,
            bytes: 0,
        })
    }

    /// Shakes hands to the end.
    fn shake(&mut self) -> Result<()> {
        let mut flight = Vec::with_capacity(FLIGHT_BYTES);
        while self.client.is_handshaking() || self.server.is_handshaking() {
            flight.clear();
            while self.client.wants_write() {
                self.client.write_tls(&mut flight).map_err(failed)?;
            }
            let asked = flight.len();
            let start = thread_cpu_seconds();
            let mut said = &flight[..];
            while !said.is_empty() {
                self.server.read_tls(&mut said).map_err(failed)?;
                self.server.process_new_packets().map_err(failed)?;
            }
            flight.clear();
            while self.server.wants_write() {
                self.server.write_tls(&mut flight).map_err(failed)?;
            }
            self.server_seconds += thread_cpu_seconds() - start;
            if asked + flight.len() == 0 {
                return Err(failed("neither end goes on with the handshake"));
            }
            self.bytes += asked + flight.len();
            let mut said = &flight[..];
            while !said.is_empty() {
                self.client.read_tls(&mut said).map_err(failed)?;
                self.client.process_new_packets().map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn check(name: &str, exchange: &dyn SupportedKxGroup, mut pair: Pair) -> Result<()> {
    pair.shake()?;
    let used = pair.server.negotiated_key_exchange_group();
    if used.map(SupportedKxGroup::name) != Some(exchange.name()) {
        return Err(failed(format!("{name}: keys were exchanged otherwise")));
    }
    if pair.server.handshake_kind() != Some(HandshakeKind::Full) {
        return Err(failed(format!("{name}: not a whole handshake")));
    }
    let derived =
        |keys: std::result::Result<[u8; DERIVED_BYTES], rustls::Error>| keys.map_err(failed);
    let label = b"coffer-lab";
    let (client, server) = (&pair.client, &pair.server);
    let ours = derived(client.export_keying_material([0; DERIVED_BYTES], label, None))?;
    let theirs = derived(server.export_keying_material([0; DERIVED_BYTES], label, None))?;
    if ours == theirs {
        return Ok(());
    }
    Err(LabError::Disagree {
        contender: name.to_owned(),
        case: "what both ends derive from a handshake".into(),
        expected: hex::encode(ours),
        found: hex::encode(theirs),
    })
}

fn measure(tls: &Tls, client: &Arc<ClientConfig>, duration: Duration) -> Result<Sample> {
    let start = Instant::now();
    let (mut transfers, mut bytes, mut cpu_seconds) = (0, 0, 0.0);
    while start.elapsed() < duration {
        let mut pair = Pair::new(tls, client)?;
        pair.shake()?;
        transfers += 1;
        bytes += pair.bytes as u64;
        cpu_seconds += pair.server_seconds;
    }
    let mut sample = Sample::new(bytes, start.elapsed().as_secs_f64(), cpu_seconds);
    sample.counts = Some(Counts {
        transfers,
        context_switches: None,
    });
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Unit;

    #[test]
    fn both_ends_agree_in_the_way_that_was_asked_for_and_no_other() {
        let tls = Tls::new().unwrap();
        for (name, exchange) in exchanges() {
            let client = Arc::new(tls.client_exchanging(exchange).unwrap());
            check(name, exchange, Pair::new(&tls, &client).unwrap()).unwrap();
            let other: &dyn SupportedKxGroup = if name == "X25519" { SECP256R1 } else { X25519 };
            let error = check(name, other, Pair::new(&tls, &client).unwrap()).unwrap_err();
            assert!(error.to_string().contains("exchanged otherwise"), "{error}");
            let sample = measure(&tls, &client, Duration::from_millis(5)).unwrap();
            let figure = sample.value(Unit::HandshakesPerCpuSecond);
            assert!(figure > 1.0 && figure.is_finite(), "{figure}");
            // It is the server's share.
            assert!(sample.cpu_seconds < sample.wall_seconds, "{sample:?}");
        }
    }
}
