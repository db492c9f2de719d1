//! A link between two network namespaces: a pair of virtual Ethernet devices, and perhaps a tunnel.
//!
//! The namespaces are called `coffer-lab-PID-Na` (who connects) and `…b` (who listens).

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use coffer_seal::random_bytes;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Doing, LabError, Result};
use crate::kernel_tls;
use crate::net::session::{Session, Stream};
use crate::programs::{Running, command, run};
use crate::tls::Tls;
use crate::undo::Undo;

/// Where the receiver listens, in its namespace.
const PORT: u16 = 7000;

/// Where the SSH tunnel begins, in the sender's namespace.
const TUNNEL_PORT: u16 = 7001;

const WIREGUARD_PORT: &str = "51820";

const WIREGUARD_SOCKETS: &str = "/var/run/wireguard";

/// How long a tunnel may take to come up, and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(15);

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
    // Tunnels go before the namespaces that they run in.
    _tunnels: Vec<Running>,
    _namespaces: Vec<Undo>,
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
        let mut namespaces = Vec::new();
        for namespace in [&a, &b] {
            run(command("ip").args(["netns", "add", namespace]))?;
            let gone = namespace.clone();
            namespaces.push(Undo::by(move || {
                drop(run(command("ip").args(["netns", "del", &gone])));
            }));
        }
        let pair = [
            "v0", "netns", &a, "type", "veth", "peer", "name", "v1", "netns", &b,
        ];
        run(command("ip").args(["link", "add"]).args(pair))?;
        for (namespace, device, address) in [(&a, "v0", "10.99.0.1/24"), (&b, "v1", "10.99.0.2/24")]
        {
            ip(namespace, &["addr", "add", address, "dev", device])?;
            ip(namespace, &["link", "set", device, "up"])?;
            ip(namespace, &["link", "set", "lo", "up"])?;
        }
        let mut link = Self {
            _tunnels: Vec::new(),
            _namespaces: namespaces,
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
        stream.set_nodelay(true).doing(|| "listening".into())?;
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
        stream.set_nodelay(true).doing(|| "connecting".into())?;
        if session == Session::KernelTls {
            let receiver = wait_for("the receiver", || take(&self.accepted))?;
            let enabled = kernel_tls::enable(&stream, &receiver);
            put(&self.keyed, ());
            enabled.doing(|| "kernel TLS".into())?;
        }
        session.connect(stream, tls)
    }

    fn ipsec(&self) -> Result<()> {
        let key = format!("0x{}", hex::encode(random_bytes::<36>()));
        let (first, second) = ("10.99.0.1", "10.99.0.2");
        for namespace in [&self.a, &self.b] {
            for (from, to, index) in [(first, second, "0x100"), (second, first, "0x101")] {
                ip(
                    namespace,
                    &[
                        "xfrm",
                        "state",
                        "add",
                        "src",
                        from,
                        "dst",
                        to,
                        "proto",
                        "esp",
                        "spi",
                        index,
                        "mode",
                        "transport",
                        "aead",
                        "rfc4106(gcm(aes))",
                        &key,
                        "128",
                    ],
                )?;
            }
        }
        for (namespace, out, back) in [(&self.a, first, second), (&self.b, second, first)] {
            for (from, to, direction) in [(out, back, "out"), (back, out, "in")] {
                ip(
                    namespace,
                    &[
                        "xfrm",
                        "policy",
                        "add",
                        "src",
                        from,
                        "dst",
                        to,
                        "dir",
                        direction,
                        "tmpl",
                        "proto",
                        "esp",
                        "mode",
                        "transport",
                    ],
                )?;
            }
        }
        Ok(())
    }

    fn wireguard(&mut self, kind: Kind, folder: &Path, number: usize) -> Result<()> {
        // wireguard-go makes the folder of its sockets, and leaves it; another's is not empty.
        self._namespaces
            .push(Undo::by(|| drop(fs::remove_dir(WIREGUARD_SOCKETS))));
        let ends = [(self.a.clone(), "a", "1"), (self.b.clone(), "b", "2")];
        let mut public_keys = Vec::new();
        for (namespace, letter, _) in &ends {
            let private_key = folder.join(letter);
            let made = run(command("wg").arg("genkey"))?;
            fs::write(&private_key, made).doing(|| "writing a key".into())?;
            // The program's control socket lies in one folder for all namespaces: names differ.
            let device = format!("clw{}n{number}{letter}", std::process::id() % 10_000_000);
            if kind == Kind::WireGuard {
                ip(namespace, &["link", "add", &device, "type", "wireguard"])?;
            } else {
                let mut program = command("ip");
                program.args(["netns", "exec", namespace, "wireguard-go", "-f", &device]);
                program
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                self._tunnels.push(Running::start(&mut program)?);
                let socket = PathBuf::from(format!("{WIREGUARD_SOCKETS}/{device}.sock"));
                wait_for("wireguard-go", || socket.exists().then_some(()))?;
            }
            let inside = |arguments: &[&str]| {
                let mut wg = command("ip");
                wg.args(["netns", "exec", namespace, "wg"]).args(arguments);
                run(&mut wg)
            };
            let path = private_key.to_string_lossy().into_owned();
            inside(&[
                "set",
                &device,
                "listen-port",
                WIREGUARD_PORT,
                "private-key",
                &path,
            ])?;
            let public_key = inside(&["show", &device, "public-key"])?.trim().to_owned();
            public_keys.push((device, public_key));
        }
        for (index, (namespace, _, address)) in ends.iter().enumerate() {
            let (device, peer) = (&public_keys[index].0, &public_keys[1 - index].1);
            let (other, own) = (ends[1 - index].2, format!("10.98.0.{address}/24"));
            let endpoint = format!("10.99.0.{other}:{WIREGUARD_PORT}");
            let mut wg = command("ip");
            wg.args([
                "netns", "exec", namespace, "wg", "set", device, "peer", peer,
            ]);
            run(wg.args(["allowed-ips", "10.98.0.0/24", "endpoint", &endpoint]))?;
            ip(namespace, &["addr", "add", &own, "dev", device])?;
            ip(namespace, &["link", "set", device, "mtu", "1420", "up"])?;
        }
        self.target = SocketAddr::from(([10, 98, 0, 2], PORT));
        Ok(())
    }

    /// A server that only this link can reach, with keys made for it, in a mount namespace of its
    /// own: it wants a user and a folder that a machine without an SSH server lacks.
    fn ssh(&mut self, folder: &Path) -> Result<()> {
        for key in ["host", "client"] {
            let arguments = ["-q", "-t", "ed25519", "-N", "", "-f"];
            run(command("ssh-keygen").args(arguments).arg(folder.join(key)))?;
        }
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        fs::copy(path("client.pub"), path("authorized")).doing(|| "writing keys".into())?;
        let mut users = fs::read_to_string("/etc/passwd").doing(|| "reading users".into())?;
        users += "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n";
        fs::write(path("passwd"), users).doing(|| "writing users".into())?;
        let sshd = crate::programs::find("sshd").unwrap_or_else(|| "sshd".into());
        let script = format!(
            "mount --bind {} /etc/passwd && mount -t tmpfs none /run && mkdir -m 755 /run/sshd && \
             exec {} -D -q -f /dev/null -p 22 -h {} -o AuthorizedKeysFile={} -o StrictModes=no \
             -o PermitRootLogin=prohibit-password -o PidFile=none -o UsePAM=no",
            path("passwd"),
            sshd.display(),
            path("host"),
            path("authorized"),
        );
        let mut server = command("ip");
        server.args([
            "netns", "exec", &self.b, "unshare", "--mount", "sh", "-c", &script,
        ]);
        crate::programs::show_libraries(&mut server);
        server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self._tunnels.push(Running::start(&mut server)?);
        let namespace = self.b.clone();
        wait_for("sshd", || {
            let listening = run(command("ip").args(["netns", "exec", &namespace, "ss", "-ltnH"]));
            listening.ok().filter(|text| text.contains(":22 "))
        })?;
        let forward = format!("{TUNNEL_PORT}:127.0.0.1:{PORT}");
        let mut client = command("ip");
        client.args([
            "netns", "exec", &self.a, "ssh", "-N", "-q", "-F", "none", "-L", &forward,
        ]);
        client.args(["-i", &path("client"), "-o", "StrictHostKeyChecking=no"]);
        client.args([
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "IdentitiesOnly=yes",
        ]);
        client.args(["-c", "aes256-gcm@openssh.com", "root@10.99.0.2"]);
        client
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self._tunnels.push(Running::start(&mut client)?);
        let namespace = self.a.clone();
        wait_for("ssh", || {
            let listening = run(command("ip").args(["netns", "exec", &namespace, "ss", "-ltnH"]));
            listening
                .ok()
                .filter(|text| text.contains(&format!(":{TUNNEL_PORT} ")))
        })?;
        self.target = SocketAddr::from(([127, 0, 0, 1], TUNNEL_PORT));
        Ok(())
    }
}

fn ip(namespace: &str, arguments: &[&str]) -> Result<String> {
    run(command("ip").args(["-n", namespace]).args(arguments))
}

/// Moves the calling thread, and it alone, into a namespace.
fn enter(namespace: &str) -> Result<()> {
    let doing = || format!("entering the network namespace {namespace}");
    let file = File::open(Path::new("/run/netns").join(namespace)).doing(doing)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).doing(doing)
}

fn put<T>(place: &Mutex<Option<T>>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn accept_within(listener: &TcpListener, patience: Duration) -> Result<TcpStream> {
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).doing(|| "listening".into())?;
                return Ok(stream);
            }
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                return Err(error).doing(|| "listening".into());
            }
            Err(_) if start.elapsed() > patience => return Err(never("a connection")),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn wait_for<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = there() {
            return Ok(found);
        }
        if start.elapsed() > PATIENCE {
            return Err(never(what));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn never(what: &str) -> LabError {
    LabError::Data {
        file: "the link".into(),
        what: format!("waited in vain for {what}"),
    }
}
