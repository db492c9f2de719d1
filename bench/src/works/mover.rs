//! One client and one large file, there and back: `coffer put` and `coffer get`, and the programs
//! that people have, each at its best settings, with the same server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::bench::Bench;
use crate::contenders::coffer::{Coffer, run};
use crate::error::{BenchError, Doing, Result};
use crate::load_client::content::Content;
use crate::report::figures::{Quantity, Sample, Series, Target, Work};
use crate::works::rounds::{Entrant, interleave};

/// 1 GiB, and less in a quick run.
const BYTES: (u64, u64) = (1 << 30, 1 << 28);

/// Faster than each of the others.
const MOST: f64 = 1.0;

const BUCKET: &str = Coffer::BUCKET;

/// A program, and how it moves a file.
struct Program {
    name: &'static str,
    put: fn(&Coffer, &Path, &str) -> Command,
    get: fn(&Coffer, &Path, &str) -> Command,
}

/// The first is measured against each of the others.
const PROGRAMS: [Program; 4] = [
    Program {
        name: "coffer put and get",
        put: |coffer, file, name| coffer_moves(coffer, "put", path(file), object(name)),
        get: |coffer, file, name| coffer_moves(coffer, "get", object(name), path(file)),
    },
    Program {
        name: "rclone",
        put: |coffer, file, name| rclone(coffer, path(file), format!("c:{BUCKET}/{name}")),
        get: |coffer, file, name| rclone(coffer, format!("c:{BUCKET}/{name}"), path(file)),
    },
    Program {
        name: "aws s3 cp",
        put: |coffer, file, name| aws(coffer, path(file), object(name)),
        get: |coffer, file, name| aws(coffer, object(name), path(file)),
    },
    Program {
        name: "s3cmd",
        put: |coffer, file, name| s3cmd(coffer, "put", path(file), object(name)),
        get: |coffer, file, name| s3cmd(coffer, "get", object(name), path(file)),
    },
];

/// Wall time of one file, both ways; programs that are not installed are left out, and said so.
pub fn mover(bench: &Bench) -> Result<Vec<Work>> {
    let folder = bench.folder("mover")?;
    let coffer = &Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
    let content = Content::new(bench.effort.of(BYTES), 1);
    let (file, back) = (&folder.join("file"), &folder.join("back"));
    let writing = || format!("writing {}", file.display());
    content.write_to(file).doing(writing)?;
    let programs: Vec<&Program> = PROGRAMS
        .iter()
        .filter(|program| is_there(program))
        .collect();
    let (mut puts, mut gets) = (Vec::new(), Vec::new());
    for program in programs {
        let name = program.name;
        puts.push(Entrant {
            name,
            measure: Box::new(move |round| {
                let object = object_of(program, round);
                bench.prepare_disk(content.length_bytes)?;
                timed(content, (program.put)(coffer, file, &object))
            }),
        });
        gets.push(Entrant {
            name,
            measure: Box::new(move |round| {
                let object = object_of(program, round);
                bench.prepare_disk(content.length_bytes)?;
                let sample = timed(content, (program.get)(coffer, back, &object))?;
                compare(content, back)?;
                Ok(sample)
            }),
        });
    }
    let (key, rounds) = (Quantity::Seconds, bench.effort.rounds);
    let mut works = Vec::new();
    // What was put in a round is what is fetched in the round of that number.
    for (way, entrants) in [("put", puts), ("get", gets)] {
        let title = format!(
            "one client, {way} of one file of {} MiB",
            content.length_bytes >> 20
        );
        let all = interleave(&title, key, None, rounds, entrants)?;
        works.extend(against_each(&all));
    }
    Ok(works)
}

fn object_of(program: &Program, round: usize) -> String {
    format!(
        "{}-{round}",
        program.name.split(' ').next().unwrap_or_default()
    )
}

fn against_each(all: &Work) -> Vec<Work> {
    let Some((ours, peers)) = all.series.split_first() else {
        return Vec::new();
    };
    let work = |peer: &Series| Work {
        title: all.title.clone(),
        key: all.key,
        series: vec![ours.clone(), peer.clone()],
        target: Some(Target::RatioAtMost(MOST)),
    };
    peers.iter().map(work).collect()
}

fn is_there(program: &Program) -> bool {
    let Some(command) = program
        .name
        .split(' ')
        .next()
        .filter(|name| *name != "coffer")
    else {
        return true;
    };
    let asked = Command::new(command)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let is_there = asked.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("{command} is not installed, and left out");
    }
    is_there
}

fn timed(content: Content, mut command: Command) -> Result<Sample> {
    let begun = Instant::now();
    run(command.stdout(Stdio::null()))?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Sample::from([
        (Quantity::Seconds, seconds),
        (
            Quantity::MegabytesPerSecond,
            content.length_bytes as f64 / 1e6 / seconds,
        ),
    ]))
}

fn compare(content: Content, back: &PathBuf) -> Result<()> {
    let reading = || format!("reading {}", back.display());
    if !content.is_in(back).doing(reading)? {
        let request = back.display().to_string();
        return Err(BenchError::WrongContents { request, offset: 0 });
    }
    // Each program fetches to a file that is not there yet.
    fs::remove_file(back).doing(|| format!("removing {}", back.display()))
}

fn path(file: &Path) -> String {
    file.display().to_string()
}

fn object(name: &str) -> String {
    format!("s3://{BUCKET}/{name}")
}

fn coffer_moves(coffer: &Coffer, way: &str, from: String, to: String) -> Command {
    let mut command = coffer.client_command();
    command.args([way, &from, &to]);
    command
}

/// Parts of 64 MiB, eight at once, both ways. Its own MD5 of the whole file is left out: the others
/// form none, and it would be a pass over the file before the first byte goes out.
fn rclone(coffer: &Coffer, from: String, to: String) -> Command {
    let mut command = coffer.as_aws("rclone");
    // rclone reads this variable otherwise than AWS's programs do.
    command.env_remove("AWS_CA_BUNDLE");
    for (name, value) in [
        ("RCLONE_CONFIG_C_TYPE", "s3"),
        ("RCLONE_CONFIG_C_PROVIDER", "Other"),
        ("RCLONE_CONFIG_C_ENV_AUTH", "true"),
    ] {
        command.env(name, value);
    }
    command.env("RCLONE_CONFIG_C_ENDPOINT", coffer.url());
    command.arg("--ca-cert").arg(coffer.authority());
    command.args(["copyto", "--s3-no-check-bucket", "--s3-disable-checksum"]);
    command.args(["--s3-chunk-size", "64M", "--s3-upload-concurrency", "8"]);
    command.args([
        "--multi-thread-streams",
        "8",
        "--multi-thread-cutoff",
        "64M",
    ]);
    command.args([from, to]);
    command
}

/// Parts of 64 MiB and ten requests at once, in a configuration file of its own.
fn aws(coffer: &Coffer, from: String, to: String) -> Command {
    let mut command = coffer.as_aws("aws");
    let config = coffer.data().with_file_name("aws.config");
    let settings = "[default]\ns3 =\n  multipart_threshold = 64MB\n  multipart_chunksize = 64MB\n  \
                    max_concurrent_requests = 10\n";
    // Without it the program works as well, on its defaults.
    if fs::write(&config, settings).is_ok() {
        command.env("AWS_CONFIG_FILE", config);
    }
    command.args(["--endpoint-url", &coffer.url(), "s3", "cp", "--no-progress"]);
    command.args([from, to]);
    command
}

/// Parts of 64 MiB, one after the other, for it knows nothing else.
fn s3cmd(coffer: &Coffer, way: &str, from: String, to: String) -> Command {
    let mut command = Command::new("s3cmd");
    let host = coffer.endpoint().address.to_string();
    let (id, secret) = coffer.access_key();
    // It reads no credentials files; the access key is that of a server that soon is gone.
    command
        .env("AWS_ACCESS_KEY_ID", id)
        .env("AWS_SECRET_ACCESS_KEY", secret);
    command.args([
        "--config",
        "/dev/null",
        "--host",
        &host,
        "--host-bucket",
        &host,
    ]);
    command.arg("--ca-certs").arg(coffer.authority());
    command.args([
        "--no-progress",
        "--multipart-chunk-size-mb",
        "64",
        "--no-check-md5",
    ]);
    command.args([way, &from, &to]);
    command
}
