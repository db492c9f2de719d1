//! Whole servers: the file mover of A in several models, for 1 to 100 clients, which upload
//! plaintext that it encrypts and keeps, as A's did, or ask for it.

pub mod model;
pub mod protocol;

mod memory;

mod dispatch;

mod client;
mod http;
mod s3;

mod process;

mod clients;

use std::path::Path;
use std::time::Duration;

use crate::contender::{Availability, Contender};
use crate::error::Result;
use crate::host::folder::Folder;
use crate::measuring::rounds::{Amounts, Effort, Entrant, Figure, Plan, run};
use crate::record::{Axis, Experiment};
use crate::server::clients::{Enough, STREAMS, Work, measure, upload};
use crate::server::model::Model;
use crate::server::process::Server;
use crate::server::protocol::PLACES;

pub use dispatch::serve;
pub use memory::answer_on_standard_output;

const CLIENTS: [usize; 4] = [1, 4, 20, 100];
const QUICK_CLIENTS: [usize; 2] = [1, 100];

/// From so many requests on it is told what 99 % of them stay within; a quick run may have fewer.
const ENOUGH: Enough = Enough {
    duration: Duration::from_millis(500),
    requests: 100,
    at_most: Duration::from_secs(5),
};
const QUICK_ENOUGH: Enough = Enough {
    duration: Duration::from_millis(60),
    requests: 1,
    at_most: Duration::from_millis(60),
};

/// Bytes of a request, the end of the experiment's id, and how it is told.
const REQUESTS: [(usize, &str, &str); 3] = [
    (1_000, "1-kb", "1 KB"),
    (16_000, "16-kb", "16 KB"),
    (1_000_000, "1-mb", "1 MB"),
];

/// The file that is uploaded whole, in requests of 1 MB.
const FILE_REQUESTS: Amounts<usize> = Amounts {
    full: PLACES,
    quick: 40,
    counted: 4,
    quick_counted: 2,
};

/// What coffer's file is tried with.
const TRIAL_REQUESTS: usize = 3;

/// As few rounds as give an interval of 95 %, since each sample is long.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 5;

/// Who takes part.
pub fn contenders() -> Vec<Contender> {
    let models = Model::ALL.map(Model::contender);
    models.into_iter().chain([model::coffer()]).collect()
}

/// All experiments, in their order.
pub fn ids() -> Vec<String> {
    let file = std::iter::once("server/upload/file".to_owned());
    let each = |work: Work| REQUESTS.map(|(_, size, _)| id(work, size));
    let clients = [Work::Store, Work::Ask].into_iter().flat_map(each);
    file.chain(clients).collect()
}

fn id(work: Work, size: &str) -> String {
    match work {
        Work::Store => format!("server/upload/{size}"),
        Work::Ask => format!("server/{size}"),
    }
}

/// Bytes of a request of an experiment by many clients; None of others.
pub fn request_bytes(experiment: &str) -> Option<u64> {
    let end = experiment.strip_prefix("server/")?;
    let size = end.strip_prefix("upload/").unwrap_or(end);
    let found = REQUESTS.into_iter().find(|(_, name, _)| *name == size)?;
    u64::try_from(found.0).ok()
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
    let effort = effort.with_usual_rounds(ROUNDS, QUICK_ROUNDS);
    let stage = Stage {
        contenders,
        servers,
        effort,
    };
    let mut experiments = vec![run(stage.file_plan(), effort)?];
    for work in [Work::Store, Work::Ask] {
        for request in REQUESTS {
            experiments.push(run(stage.plan(work, request), effort)?);
        }
    }
    Ok(experiments)
}

/// Servers that run, and all who could.
struct Stage {
    contenders: Vec<Contender>,
    servers: Vec<(usize, Server)>,
    effort: Effort,
}

impl Stage {
    /// One file, by one client, as A measured it.
    fn file_plan(&self) -> Plan<'_> {
        let requests = self.effort.choose(FILE_REQUESTS);
        let entrants = self.servers.iter().map(|(contender, server)| Entrant {
            contender: *contender,
            x: 0,
            measure: Box::new(move || upload(server, requests)),
        });
        Plan {
            id: "server/upload/file".into(),
            title: format!("Uploads, a file of {requests} MB from memory to memory"),
            axis: Axis::Single,
            how: format!(
                "One client on the same machine gives plaintext in requests of 1 MB, {STREAMS} of \
                 them at once, over a connection each. Of A’s requests neither size nor number is \
                 known here. The models encrypt what comes and keep it in memory; coffer takes the \
                 file by one PUT over TLS, and seals it onto the disk, durable before it \
                 answers. CPU seconds are the server’s processes’ alone."
            ),
            contenders: self.contenders.clone(),
            entrants: entrants.collect(),
            figure: Figure::Speed,
            whole_machine: true,
        }
    }

    fn plan(&self, work: Work, (bytes, name, size): (usize, &str, &str)) -> Plan<'_> {
        let (counts, enough): (&[usize], _) = if self.effort.quick {
            (&QUICK_CLIENTS, QUICK_ENOUGH)
        } else {
            (&CLIENTS, ENOUGH)
        };
        let entrants = counts.iter().flat_map(|&clients| {
            self.servers.iter().map(move |(contender, server)| Entrant {
                contender: *contender,
                x: clients as u64,
                measure: Box::new(move || measure(server, work, clients, bytes, enough)),
            })
        });
        let (title, how) = match work {
            Work::Store => (
                format!("Uploads, {size} at a time"),
                "Each client has a connection, and gives plaintext again when it has been told \
                 that the last was stored. The models encrypt it and keep it in memory; coffer \
                 checks a signature, speaks HTTP and TLS, and seals an object onto the disk, \
                 durable before it answers.",
            ),
            Work::Ask => (
                format!("The file mover of A, asked for {size} at a time"),
                "Each client has a connection, asks again when it has been answered, and decrypts \
                 and compares all that comes, on the same machine. The models send from memory \
                 what they encrypt once; coffer checks a signature, opens what lies sealed in the \
                 page cache, and speaks HTTP and TLS.",
            ),
        };
        let more = if self.effort.quick {
            String::new()
        } else {
            let (requests, seconds) = (ENOUGH.requests, ENOUGH.at_most.as_secs());
            format!(", and all of them {requests} times, unless that takes {seconds} seconds")
        };
        Plan {
            id: id(work, name),
            title,
            axis: Axis::Clients,
            how: format!(
                "{how} Each goes on until the time is over and it was answered once{more}. The sum \
                 over all clients, and the mean of each. CPU seconds are the server’s processes’ \
                 alone."
            ),
            contenders: self.contenders.clone(),
            entrants: entrants.collect(),
            figure: Figure::Speed,
            whole_machine: true,
        }
    }
}

/// Starts one of the contenders, and tries it: coffer comes after the models. What is stored must
/// come back as it was, and where a model encrypts, must not have lain there as it came.
fn start(contender: usize, data: &Path) -> Result<Server> {
    let server = match Model::ALL.get(contender) {
        Some(model) => Server::start(*model)?,
        None => Server::start_coffer(data)?,
    };
    let mut client = server.connect()?;
    for (place, (bytes, ..)) in REQUESTS.into_iter().enumerate() {
        client.ask(bytes)?;
        client.store(bytes, place)?;
        client.compare_stored(bytes, place)?;
    }
    if let Server::S3(s3) = &server {
        upload(&server, TRIAL_REQUESTS)?;
        s3.connect()?.compare_file(TRIAL_REQUESTS)?;
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LabError;
    use crate::server::client::{Client, MoverClient};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers with the plaintext, gives back what it stored as it came, stops in the
    /// middle, or does not say that it stored.
    #[test]
    fn planted_faults_are_caught() {
        type Act = fn(&mut MoverClient) -> Result<()>;
        let plain = protocol::content(16_016);
        let ask: Act = |client| client.ask(16_000);
        let back: Act = |client| client.compare_stored(16_000, 3);
        let store: Act = |client| client.store(16_000, 3);
        let cases: [(&[u8], Act, &str); 5] = [
            (plain, ask, "tag"),
            (&plain[..9_000], ask, "receiving"),
            (plain, back, "tag"),
            (b"", store, "waiting"),
            (b"?", store, "other bytes"),
        ];
        for (said, act, expected) in cases {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let faulty = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let head = protocol::Request::read(&mut stream).unwrap().unwrap();
                if head.wish == protocol::Wish::Store {
                    stream.read_exact(&mut vec![0; head.bytes]).unwrap();
                }
                stream.write_all(said).unwrap();
            });
            let mut client = MoverClient::connect(Model::Pool, address).unwrap();
            let error = act(&mut client).unwrap_err();
            faulty.join().unwrap();
            let text = match error {
                LabError::Tag => "tag".to_owned(),
                other => other.to_string(),
            };
            assert!(text.contains(expected), "{text}");
        }
    }
}
