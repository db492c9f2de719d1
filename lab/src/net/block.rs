//! Links of block devices: a disk in the receiver's memory, written and read from the other end by
//! NBD or iSCSI, with encryption in the protocol or below it.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use coffer_measure::cpu_time::Watch;
use coffer_seal::random_bytes;

use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::host::programs::{Running, find_library, lacking, run, version};
use crate::host::undo::{Foundation, Undo};
use crate::measuring::content::{BLOCK_BYTES, Sink};
use crate::measuring::progress::Progress;
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run as run_rounds};
use crate::net::link::{Kind, Link, listens, wait_for};
use crate::net::roster::missing;
use crate::net::tap::Tap;
use crate::net::{TRIAL_BLOCKS, as_expected, write_source};
use crate::record::{Axis, Experiment, Sample};

const NBD_PORT: u16 = 10_809;
const ISCSI_PORT: u16 = 3260;
const TARGET: &str = "iqn.2026-01.lab:disk";

/// What nbdkit and qemu-img load, below a folder of libraries.
pub(crate) const MEMORY_PLUGIN: &str = "nbdkit/plugins/nbdkit-memory-plugin.so";
/// See [`MEMORY_PLUGIN`].
pub(crate) const ISCSI_DRIVER: &str = "qemu/block-iscsi.so";

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Nbd,
    NbdOverTls,
    Iscsi,
}

/// One that takes part.
struct Entry {
    contender: Contender,
    kind: Kind,
    protocol: Protocol,
}

/// Who can take part, and why the others can't.
pub(super) fn contenders() -> Vec<Contender> {
    entries().into_iter().map(|one| one.contender).collect()
}

fn entries() -> Vec<Entry> {
    let nbd = version("nbdkit", "--version").unwrap_or("nbdkit".into());
    let nbd = format!("{nbd}, and nbdcopy of libnbd");
    let iscsi = "tgt, and libiscsi in qemu-img";
    let wireguard = "the kernel’s WireGuard below it";
    let all = [
        ("NBD", Placement::None, Kind::Wire, Protocol::Nbd, ""),
        (
            "NBD over TLS",
            Placement::User,
            Kind::Wire,
            Protocol::NbdOverTls,
            "TLS by GnuTLS at both ends, keys shared before",
        ),
        (
            "NBD over WireGuard",
            Placement::Kernel,
            Kind::WireGuard,
            Protocol::Nbd,
            wireguard,
        ),
        ("iSCSI", Placement::None, Kind::Wire, Protocol::Iscsi, ""),
        (
            "iSCSI over IPsec",
            Placement::Kernel,
            Kind::Ipsec,
            Protocol::Iscsi,
            "ESP in transport mode, AES-256-GCM",
        ),
        (
            "iSCSI over WireGuard",
            Placement::Kernel,
            Kind::WireGuard,
            Protocol::Iscsi,
            wireguard,
        ),
        (
            "iSCSI over WireGuard in a program",
            Placement::User,
            Kind::WireGuardGo,
            Protocol::Iscsi,
            "wireguard-go below it",
        ),
    ];
    let entry = |(name, placement, kind, protocol, setting): (&str, _, _, _, &str)| {
        let runs_on = match protocol {
            Protocol::Iscsi => iscsi,
            Protocol::Nbd | Protocol::NbdOverTls => &nbd,
        };
        let mut contender = Contender::new(name, placement, runs_on);
        if !setting.is_empty() {
            contender = contender.set(setting);
        }
        if let Some(missing) = missing(kind).or_else(|| without(protocol)) {
            contender = contender.available(missing);
        }
        Entry {
            contender,
            kind,
            protocol,
        }
    };
    all.map(entry).into()
}

/// What this machine lacks for a protocol.
fn without(protocol: Protocol) -> Option<Availability> {
    let (programs, library): (&[&str], _) = match protocol {
        Protocol::Nbd | Protocol::NbdOverTls => (&["ss", "nbdkit", "nbdcopy"], MEMORY_PLUGIN),
        Protocol::Iscsi => (&["ss", "tgtd", "tgtadm", "qemu-img"], ISCSI_DRIVER),
    };
    lacking(programs).or_else(|| {
        let missing = find_library(library).is_none();
        missing.then(|| {
            Availability::cannot(
                format!("{library} is missing"),
                "make lab, which unpacks it; or apt install nbdkit qemu-block-extra",
            )
        })
    })
}

/// Measures every link of a disk that can be had, with what lies in `folder/source`.
pub(super) fn block(effort: Effort, folder: &Path, blocks: u64) -> Result<Vec<Experiment>> {
    let mut entries = entries();
    let progress = Progress::new("Setting up disks at the other end", entries.len());
    let mut volumes = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        progress.say(&entry.contender.name);
        if entry.contender.availability.runs() {
            // Numbers tell these links from those of streams.
            let opened = Volume::open(entry, 100 + index, folder, blocks);
            match opened.and_then(|volume| volume.check(&entry.contender).map(|()| volume)) {
                Ok(volume) => volumes.push((index, volume)),
                Err(error) => entry.contender.availability = Availability::from_failure(error)?,
            }
        }
        progress.step();
    }
    let both = [("write", "written"), ("read", "read")].into_iter();
    let plans = both.map(|(id, word)| {
        let entrants = volumes.iter().map(|(contender, volume)| Entrant {
            contender: *contender,
            x: 0,
            measure: Box::new(move || match id {
                "write" => volume.write(&volume.source, blocks),
                _ => volume.read(blocks),
            }),
        });
        Plan {
            id: format!("net/block-{id}"),
            title: format!("A block device of {blocks} MB at the other end, {word}"),
            axis: Axis::Single,
            how: "Between the same two namespaces, from a file in memory to a disk in the memory \
                  of a server (nbdkit, tgtd), or back; by a program (nbdcopy, qemu-img) whose \
                  start counts. What was read is compared after that. CPU seconds are those of \
                  the whole machine."
                .into(),
            contenders: entries.iter().map(|one| one.contender.clone()).collect(),
            entrants: entrants.collect(),
            figure: Figure::Speed,
            whole_machine: true,
        }
    });
    plans.map(|plan| run_rounds(plan, effort)).collect()
}

/// A disk at the other end of a link. Servers end before the link goes.
struct Volume {
    servers: Foundation,
    memory: Option<File>,
    link: Link,
    protocol: Protocol,
    address: String,
    /// What is shared before by those who speak TLS.
    secret: PathBuf,
    source: PathBuf,
    trial: PathBuf,
    arrived: PathBuf,
}

impl Volume {
    fn open(entry: &Entry, number: usize, folder: &Path, blocks: u64) -> Result<Self> {
        let own = folder.join(number.to_string());
        fs::create_dir(&own).doing(|| format!("making {}", own.display()))?;
        let link = Link::open(entry.kind, number, &own)?;
        let mut volume = Self {
            servers: Foundation::default(),
            memory: None,
            address: link.address(),
            link,
            protocol: entry.protocol,
            secret: own.join("secret"),
            source: folder.join(crate::net::SOURCE),
            trial: own.join("trial"),
            arrived: own.join("arrived"),
        };
        // Disks have whole sectors.
        let bytes = (blocks.max(TRIAL_BLOCKS) * BLOCK_BYTES as u64).next_multiple_of(1 << 20);
        match entry.protocol {
            Protocol::Nbd | Protocol::NbdOverTls => volume.serve_nbd(bytes)?,
            Protocol::Iscsi => volume.serve_iscsi(&own, bytes)?,
        }
        Ok(volume)
    }

    fn serve_nbd(&mut self, bytes: u64) -> Result<()> {
        let mut server = self.link.receivers_command("nbdkit");
        let port = NBD_PORT.to_string();
        server.args(["-f", "-i", &self.address, "-p", &port]);
        if self.protocol == Protocol::NbdOverTls {
            let secret = format!("lab:{}\n", hex::encode(random_bytes::<32>()));
            let doing = || format!("writing {}", self.secret.display());
            fs::write(&self.secret, secret).doing(doing)?;
            let secret = format!("--tls-psk={}", self.secret.display());
            server.args(["--tls=require", &secret]);
        }
        let plugin = find_library(MEMORY_PLUGIN).unwrap_or_else(|| "memory".into());
        server.arg(plugin).arg(bytes.to_string());
        self.serve(&mut server, "nbdkit", NBD_PORT)
    }

    fn serve_iscsi(&mut self, own: &Path, bytes: u64) -> Result<()> {
        let memory = rustix::fs::memfd_create("disk", rustix::fs::MemfdFlags::CLOEXEC);
        let memory = File::from(memory.doing(|| "making a disk in memory".into())?);
        let sized = memory.set_len(bytes);
        sized.doing(|| "making a disk in memory".into())?;
        let disk = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
        let socket = own.join("tgt");
        let mut server = self.link.receivers_command("tgtd");
        let portal = format!("portal={}:{ISCSI_PORT}", self.address);
        server.args(["-f", "--iscsi", &portal]);
        server.env("TGT_IPC_SOCKET", &socket);
        self.serve(&mut server, "tgtd", ISCSI_PORT)?;
        let administer = |link: &Link, arguments: &str| {
            let mut tgtadm = link.receivers_command("tgtadm");
            tgtadm.env("TGT_IPC_SOCKET", &socket);
            tgtadm.args(["--lld", "iscsi"]).args(arguments.split(' '));
            tgtadm
        };
        let logical_unit = format!("--op new --mode logicalunit --tid 1 --lun 1 -b {disk}");
        for arguments in [
            &format!("--op new --mode target --tid 1 -T {TARGET}"),
            &logical_unit,
            "--op bind --mode target --tid 1 -I ALL",
        ] {
            run(&mut administer(&self.link, arguments))?;
        }
        // While it has a target, it does not end when it is told to.
        let mut gone = administer(&self.link, "--op delete --force --mode target --tid 1");
        self.servers.add(Undo::by(move || {
            crate::host::programs::clean_up(&mut gone);
        }));
        self.memory = Some(memory);
        Ok(())
    }

    fn serve(&mut self, server: &mut Command, name: &str, port: u16) -> Result<()> {
        server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.servers.add(Running::start(server)?);
        wait_for(name, || listens(self.link.receiver(), port))
    }

    fn disk(&self) -> String {
        let address = &self.address;
        match self.protocol {
            Protocol::Nbd => format!("nbd://{address}:{NBD_PORT}"),
            Protocol::NbdOverTls => {
                let secret = self.secret.display();
                format!("nbds://lab@{address}:{NBD_PORT}/?tls-psk-file={secret}")
            }
            Protocol::Iscsi => format!("iscsi://{address}:{ISCSI_PORT}/{TARGET}/1"),
        }
    }

    /// What copies from one to the other.
    fn copying(&self, from: &str, to: &str, exists: bool) -> Command {
        if self.protocol == Protocol::Iscsi {
            let mut command = self.link.senders_command("qemu-img");
            if let Some(folder) = find_library(ISCSI_DRIVER).as_deref().and_then(Path::parent) {
                command.env("QEMU_MODULE_DIR", folder);
            }
            command.arg("convert").args(exists.then_some("-n"));
            command.args(["-f", "raw", "-O", "raw", from, to]);
            return command;
        }
        let mut command = self.link.senders_command("nbdcopy");
        command.args(["--flush", from, to]);
        command
    }

    fn write(&self, source: &Path, blocks: u64) -> Result<Sample> {
        let from = source.to_string_lossy().into_owned();
        let mut copying = self.copying(&from, &self.disk(), true);
        timed(blocks, || run(&mut copying))
    }

    /// Reads, and compares.
    fn read(&self, blocks: u64) -> Result<Sample> {
        let to = self.arrived.to_string_lossy().into_owned();
        let mut copying = self.copying(&self.disk(), &to, false);
        let sample = timed(blocks, || run(&mut copying))?;
        let doing = || format!("reading {}", self.arrived.display());
        let file = File::open(&self.arrived).doing(doing)?;
        // The rest of the disk's last sectors says nothing.
        let mut file = file.take(blocks * BLOCK_BYTES as u64);
        let (mut sink, mut buffer) = (Sink::new(blocks), vec![0; BLOCK_BYTES]);
        loop {
            match file.read(&mut buffer).doing(doing)? {
                0 => break,
                count => sink.take(&buffer[..count]),
            }
        }
        let removed = fs::remove_file(&self.arrived);
        removed.doing(|| format!("removing {}", self.arrived.display()))?;
        sink.complete()?;
        Ok(sample)
    }

    /// Tries it, and listens on the wire meanwhile.
    fn check(&self, contender: &Contender) -> Result<()> {
        write_source(&self.trial, TRIAL_BLOCKS)?;
        let tap = Tap::open(&self.link)?;
        self.write(&self.trial, TRIAL_BLOCKS)?;
        let readable = tap.saw_plaintext()?;
        self.read(TRIAL_BLOCKS).map_err(|error| match error {
            LabError::Data { what, .. } => LabError::Data {
                file: contender.name.clone(),
                what,
            },
            other => other,
        })?;
        as_expected(contender, readable)
    }
}

fn timed(blocks: u64, work: impl FnOnce() -> Result<String>) -> Result<Sample> {
    let watch = Watch::new();
    work()?;
    let (bytes, wall_seconds) = (blocks * BLOCK_BYTES as u64, watch.wall_seconds());
    let busy = watch.machine().busy_seconds;
    Ok(Sample::new(bytes, wall_seconds, busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk on a bare wire that is called encrypted, and one that is what it says.
    #[test]
    fn plaintext_on_the_wire_is_caught() {
        let mut entries = entries();
        assert_eq!(entries.len(), 7, "those that can't run among them");
        let folder = std::env::temp_dir().join(format!("coffer-lab-block-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        entries.truncate(2);
        if !entries.iter().all(|one| one.contender.availability.runs()) {
            eprintln!("not tested: {:?}", entries[0].contender.availability);
        } else {
            for (number, entry) in entries.iter().enumerate() {
                let volume = Volume::open(entry, 910 + number, &folder, 4).unwrap();
                volume.check(&entry.contender).unwrap();
                let mut faulty = entry.contender.clone();
                faulty.placement = Placement::Kernel;
                let seen = volume.check(&faulty);
                assert_eq!(seen.is_err(), entry.contender.placement == Placement::None);
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
