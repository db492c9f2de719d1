//! Whole servers: the file mover of A in several models, asked by 1 to 100 clients.

pub mod model;

mod protocol;

mod dispatch;

mod client;
mod s3;

mod process;

mod clients;

use std::path::Path;
use std::time::Duration;

use crate::contender::{Availability, Contender};
use crate::error::Result;
use crate::host::folder::Folder;
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::record::{Axis, Experiment};
use crate::server::clients::measure;
use crate::server::model::Model;
use crate::server::process::Server;

pub use dispatch::serve;
pub use protocol::answer_on_standard_output;

const CLIENTS: [usize; 4] = [1, 4, 20, 100];
const QUICK_CLIENTS: [usize; 2] = [1, 100];

/// Bytes of a request, and the experiment that asks for so many.
const REQUESTS: [(u32, &str, &str); 3] = [
    (1_000, "server/1-kb", "1 KB"),
    (16_000, "server/16-kb", "16 KB"),
    (1_000_000, "server/1-mb", "1 MB"),
];

/// As few rounds as give an interval of 95 %, since each sample is long.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 5;

/// Who takes part.
pub fn contenders() -> Vec<Contender> {
    let models = Model::ALL.map(Model::contender);
    models.into_iter().chain([model::coffer()]).collect()
}

/// Starts a server of each kind, and asks all of them in turn; coffer's data lies below `folder`.
pub fn server(effort: Effort, folder: &Path) -> Result<Vec<Experiment>> {
    let folder = Folder::new(folder, "server")?;
    let mut contenders = contenders();
    let mut servers = Vec::new();
    for (index, contender) in contenders.iter_mut().enumerate() {
        if !contender.availability.runs() {
            continue;
        }
        match start(index, &folder.path.join("data")) {
            Ok(server) => servers.push((index, server)),
            Err(error) => contender.availability = Availability::from_failure(error)?,
        }
    }
    let counts: &[usize] = if effort.quick {
        &QUICK_CLIENTS
    } else {
        &CLIENTS
    };
    let duration = Duration::from_millis(if effort.quick { 60 } else { 500 });
    let effort = effort.with_usual_rounds(ROUNDS, QUICK_ROUNDS);
    let mut experiments = Vec::new();
    for (bytes, id, size) in REQUESTS {
        let entrants = counts.iter().flat_map(|&clients| {
            servers.iter().map(move |(contender, server)| Entrant {
                contender: *contender,
                x: clients as u64,
                measure: Box::new(move || measure(server, clients, bytes, duration)),
            })
        });
        let plan = Plan {
            id: id.into(),
            title: format!("The file mover of A, asked for {size} at a time"),
            axis: Axis::Clients,
            how:
                "Each client has a connection, asks again when it has been answered, and decrypts \
                  and compares all that comes, on the same machine. The sum over all clients, and \
                  the mean of each. CPU seconds are the server's processes' alone. The models send \
                  from memory what they encrypt once; coffer checks a signature, opens what lies \
                  sealed in the page cache, and speaks HTTP and TLS."
                    .into(),
            contenders: contenders.clone(),
            entrants: entrants.collect(),
            figure: Figure::Speed,
            whole_machine: true,
        };
        experiments.push(run(plan, effort)?);
    }
    Ok(experiments)
}

/// Starts one of the contenders, and tries it: coffer comes after the models.
fn start(contender: usize, data: &Path) -> Result<Server> {
    let server = match Model::ALL.get(contender) {
        Some(model) => Server::start(*model)?,
        None => Server::start_coffer(data)?,
    };
    let (least, ..) = REQUESTS[0];
    server.connect()?.ask(least)?;
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LabError;
    use crate::server::client::{Client, MoverClient};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers with the plaintext, or stops in the middle.
    #[test]
    fn planted_faults_are_caught() {
        for (kept, expected) in [(16_016_usize, "tag"), (9_000, "receiving")] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let faulty = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 4]).unwrap();
                let plain = protocol::content(16_016);
                stream.write_all(&plain[..kept]).unwrap();
            });
            let mut client = MoverClient::connect(Model::Pool, address).unwrap();
            let error = client.ask(16_000).unwrap_err();
            faulty.join().unwrap();
            let text = match error {
                LabError::Tag => "tag".to_owned(),
                other => other.to_string(),
            };
            assert!(text.contains(expected), "{text}");
        }
    }
}
