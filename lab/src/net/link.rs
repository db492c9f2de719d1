//! A link between two network namespaces: a pair of virtual Ethernet devices, and perhaps a tunnel.
//!
//! The namespaces are called `coffer-lab-PID-Na` (who connects) and `…b` (who listens).

mod tunnel;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Doing, Result};
use crate::host::kernel_tls;
use crate::host::leftovers::NAMESPACES;
use crate::host::note;
use crate::host::programs::{clean_up, command, run, show_libraries};
use crate::host::undo::{Foundation, Undo};
use crate::net::session::{Session, Stream};
use coffer_measure::tls::Tls;

pub(super) use tunnel::listens;

/// Where the receiver listens, in its namespace.
const PORT: u16 = 7000;

/// How long a tunnel may take to come up, and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a connection may stand still before it counts as broken.
const STALL: Duration = Duration::from_secs(60);

/// What lies between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The wire alone.
    Wire,
    /// ESP in transport mode, AES-256-GCM.
    Ipsec,
    /// WireGuard in the kernel.
    WireGuard,
    /// WireGuard in a user program.
    WireGuardGo,
    /// A forwarded port of an SSH connection.
    Ssh,
}

/// A link; taken down when it goes.
pub(super) struct Link {
    /// The namespaces, and the tunnels that run in them.
    foundation: Foundation,
    a: String,
    b: String,
    target: SocketAddr,
    /// The receiver's socket, for the sender that sets kernel TLS's keys on both.
    accepted: Mutex<Option<TcpStream>>,
    /// Set, once that is done: who reads earlier gets the records instead of what is in them.
    keyed: Mutex<Option<()>>,
}

impl Link {
    /// Makes it; `number` tells it from others of this run, `folder` is its own.
    pub(super) fn open(kind: Kind, number: usize, folder: &Path) -> Result<Self> {
        let name = format!("coffer-lab-{}-{number}", std::process::id());
        let (a, b) = (format!("{name}a"), format!("{name}b"));
        let mut foundation = Foundation::default();
        for namespace in [&a, &b] {
            foundation.add(add_namespace(namespace)?);
        }
        let pair = format!("link add v0 netns {a} type veth peer name v1 netns {b}");
        run(command("ip").args(pair.split(' ')))?;
        for (namespace, device, address) in [(&a, "v0", "10.99.0.1/24"), (&b, "v1", "10.99.0.2/24")]
        {
            ip(namespace, &format!("addr add {address} dev {device}"))?;
            ip(namespace, &format!("link set {device} up"))?;
            ip(namespace, "link set lo up")?;
        }
        let mut link = Self {
            foundation,
            target: SocketAddr::from(([10, 99, 0, 2], PORT)),
            accepted: Mutex::new(None),
            keyed: Mutex::new(None),
            a,
            b,
        };
        match kind {
            Kind::Wire => {}
            Kind::Ipsec => link.ipsec()?,
            Kind::WireGuard | Kind::WireGuardGo => link.wireguard(kind, folder, number)?,
            Kind::Ssh => link.ssh(folder)?,
        }
        Ok(link)
    }

    /// Where the receiver is, through whatever lies between; without a port.
    pub(super) fn address(&self) -> String {
        self.target.ip().to_string()
    }

    /// The receiver's namespace.
    pub(super) fn receiver(&self) -> &str {
        &self.b
    }

    /// A program of the receiver.
    pub(super) fn receivers_command(&self, program: &str) -> Command {
        inside(&self.b, program)
    }

    /// A program of the sender.
    pub(super) fn senders_command(&self, program: &str) -> Command {
        inside(&self.a, program)
    }

    /// Works in the receiver's namespace, on a thread of its own.
    pub(super) fn inside_wire<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                enter(&self.b)?;
                work()
            });
            inside
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Listens, says so, and takes the connection. The calling thread stays in the namespace.
    pub(super) fn accept(
        &self,
        session: Session,
        tls: &Tls,
        listening: &mpsc::Sender<()>,
    ) -> Result<Box<dyn Stream>> {
        enter(&self.b)?;
        let listener = TcpListener::bind(("0.0.0.0", PORT)).doing(|| "listening".into())?;
        listener
            .set_nonblocking(true)
            .doing(|| "listening".into())?;
        let _ = listening.send(());
        let stream = accept_within(&listener, PATIENCE)?;
        prepare(&stream).doing(|| "listening".into())?;
        if session == Session::KernelTls {
            let own = stream.try_clone().doing(|| "listening".into())?;
            put(&self.accepted, own);
            wait_for("the keys of kernel TLS", || take(&self.keyed))?;
        }
        session.accept(stream, tls)
    }

    /// Connects. The calling thread stays in the namespace.
    pub(super) fn connect(&self, session: Session, tls: &Tls) -> Result<Box<dyn Stream>> {
        enter(&self.a)?;
        let stream = TcpStream::connect_timeout(&self.target, PATIENCE);
        let stream = stream.doing(|| format!("connecting to {}", self.target))?;
        prepare(&stream).doing(|| "connecting".into())?;
        if session == Session::KernelTls {
            let receiver = wait_for("the receiver", || take(&self.accepted))?;
            let enabled = kernel_tls::enable(&stream, &receiver);
            put(&self.keyed, ());
            enabled.doing(|| "kernel TLS".into())?;
        }
        session.connect(stream, tls)
    }
}

/// Adds a namespace, with a note that it is a lab's, and deletes both when it is dropped. What is
/// in it goes with it.
pub(super) fn add_namespace(namespace: &str) -> Result<Undo> {
    let (gone, note) = (namespace.to_owned(), note::of_namespace(namespace));
    let noted = || note::write(&note, 0).doing(|| format!("writing {}", note.display()));
    let (undo, ()) = Undo::making(move || delete_namespace(&gone), noted)?;
    run(command("ip").args(["netns", "add", namespace]))?;
    Ok(undo)
}

/// Its note last: one that does not go stays a lab's.
fn delete_namespace(namespace: &str) {
    let deleted = clean_up(command("ip").args(["netns", "del", namespace]));
    if deleted || !Path::new(NAMESPACES).join(namespace).exists() {
        let _ = fs::remove_file(note::of_namespace(namespace));
    }
}

/// A program in a namespace, which may be one that was unpacked.
fn inside(namespace: &str, program: &str) -> Command {
    let mut command = command("ip");
    command.args(["netns", "exec", namespace, program]);
    show_libraries(&mut command);
    command
}

/// `arguments`: words with one space between them.
fn ip(namespace: &str, arguments: &str) -> Result<String> {
    run(command("ip")
        .args(["-n", namespace])
        .args(arguments.split(' ')))
}

/// Sends at once, and does not wait for ever.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))
}

/// Moves the calling thread, and it alone, into a namespace.
fn enter(namespace: &str) -> Result<()> {
    let doing = || format!("entering the network namespace {namespace}");
    let file = File::open(Path::new("/run/netns").join(namespace)).doing(doing)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).doing(doing)
}

fn put<T>(place: &Mutex<Option<T>>, value: T) {
    *place.lock() = Some(value);
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().take()
}

fn accept_within(listener: &TcpListener, patience: Duration) -> Result<TcpStream> {
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).doing(|| "listening".into())?;
                return Ok(stream);
            }
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                return Err(error).doing(|| "listening".into());
            }
            Err(_) if start.elapsed() > patience => return never("a connection"),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

pub(super) fn wait_for<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = there() {
            return Ok(found);
        }
        if start.elapsed() > PATIENCE {
            return never(what);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// To wait in vain is a failure, and not something wrong.
fn never<T>(what: &str) -> Result<T> {
    let vain = format!("nothing came within {} s", PATIENCE.as_secs());
    Err(io::Error::new(ErrorKind::TimedOut, vain)).doing(|| format!("waiting for {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Availability;

    #[test]
    fn a_tunnel_that_never_comes_up_can_not_run() {
        let error = never::<()>("sshd").unwrap_err();
        let found = Availability::from_failure(error).unwrap();
        let Availability::CannotRun { why, .. } = found else {
            panic!("it runs");
        };
        assert!(why.contains("waiting for sshd: nothing came"), "{why}");
    }
}
