//! What a gigabyte costs client and server together: `coffer get` by sealed transfer, and curl
//! with nginx over HTTPS. Both give the bytes to `/dev/null`.

use std::process::{Command, Stdio};
use std::time::Instant;

use coffer_measure::process::cpu_seconds_with_ended;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::{Coffer, run};
use crate::contenders::nginx::Nginx;
use crate::contenders::{Endpoint, Object, Serves};
use crate::error::Result;
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::rounds::{Entrant, interleave};
use crate::works::sealed::{SEALED, start};

/// 1 GiB, and less in a quick run.
const BYTES: (u64, u64) = (1 << 30, 1 << 28);

const MOST: f64 = 0.75;

/// One object, by both pairs of programs.
pub fn together(bench: &Bench) -> Result<Vec<Work>> {
    let coffer = &start(bench, "together-coffer", "")?;
    let folder = bench.folder("together-nginx")?;
    let nginx = &Nginx::start(bench.nginx.as_deref(), &folder, bench.pinned)?;
    let length_bytes = bench.effort.of(BYTES);
    let object = move |round: usize| Object::series(&format!("one-{round}"), 1, length_bytes);
    let curl = move |objects: &[Object]| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--cacert"]);
        curl.arg(nginx.authority()).args(["-o", "/dev/null"]);
        curl.arg(format!(
            "https://{}/{}",
            nginx.endpoint().address,
            objects[0].name
        ));
        curl
    };
    let entrants = vec![
        Entrant {
            name: "coffer get and coffer, sealed",
            measure: Box::new(move |round| {
                let (bucket, objects) = (Bucket::of(coffer, SEALED), object(round));
                fetch(bench, &bucket, &objects, sealed(coffer, &objects[0]))
            }),
        },
        Entrant {
            name: "curl and nginx https",
            measure: Box::new(move |round| {
                let objects = object(round);
                fetch(bench, nginx, &objects, curl(&objects))
            }),
        },
    ];
    let key = Quantity::BothCpuSecondsPerGigabyte;
    let target = Some(Target::RatioAtMost(MOST));
    let title = format!(
        "client and server, one object of {} MiB",
        length_bytes >> 20
    );
    let work = interleave(&title, key, target, bench.effort.rounds, entrants)?;
    Ok(vec![work])
}

fn sealed(coffer: &Coffer, object: &Object) -> Command {
    let mut command = coffer.client_command();
    let from = format!("s3://{SEALED}/{}", object.name);
    command.args(["get", &from, "-", "--transfer", "sealed"]);
    command
}

fn fetch(
    bench: &Bench,
    server: &dyn Serves,
    objects: &[Object],
    mut command: Command,
) -> Result<Sample> {
    server.store(&bench.client, objects)?;
    disk::settle();
    let Endpoint { process, .. } = server.endpoint();
    let ended = || cpu_seconds_with_ended(std::process::id());
    let (server_before, client_before) = (process.cpu_seconds()?, ended());
    let begun = Instant::now();
    run(command.stdout(Stdio::null()))?;
    let seconds = begun.elapsed().as_secs_f64();
    let client = ended() - client_before;
    let servers = process.cpu_seconds()? - server_before;
    server.discard(&bench.client, objects)?;
    let bytes: u64 = objects
        .iter()
        .map(|object| object.content.length_bytes)
        .sum();
    let gigabytes = bytes as f64 / 1e9;
    Ok(Sample::from([
        (
            Quantity::BothCpuSecondsPerGigabyte,
            (client + servers) / gigabytes,
        ),
        (Quantity::ServerCpuSecondsPerGigabyte, servers / gigabytes),
        (Quantity::MegabytesPerSecond, bytes as f64 / 1e6 / seconds),
    ]))
}
