//! What lies between the two besides the wire: IPsec, WireGuard, SSH.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use coffer_seal::random_bytes;

use crate::error::{Doing, Result};
use crate::host::programs::{Running, command, find, run, show_libraries};
use crate::host::undo::Undo;
use crate::net::link::{Kind, Link, PORT, ip, wait_for};

/// Where the SSH tunnel begins, in the sender's namespace.
const TUNNEL_PORT: u16 = 7001;

const WIREGUARD_PORT: &str = "51820";

const WIREGUARD_SOCKETS: &str = "/var/run/wireguard";

impl Link {
    pub(super) fn ipsec(&self) -> Result<()> {
        let key = format!("0x{}", hex::encode(random_bytes::<36>()));
        let (first, second) = ("10.99.0.1", "10.99.0.2");
        for namespace in [&self.a, &self.b] {
            for (from, to, index) in [(first, second, "0x100"), (second, first, "0x101")] {
                let state = format!(
                    "xfrm state add src {from} dst {to} proto esp spi {index} mode transport \
                     aead rfc4106(gcm(aes)) {key} 128"
                );
                ip(namespace, &state)?;
            }
        }
        for (namespace, out, back) in [(&self.a, first, second), (&self.b, second, first)] {
            for (from, to, direction) in [(out, back, "out"), (back, out, "in")] {
                let policy = format!(
                    "xfrm policy add src {from} dst {to} dir {direction} tmpl proto esp mode \
                     transport"
                );
                ip(namespace, &policy)?;
            }
        }
        Ok(())
    }

    /// Starts what serves the tunnel until the link goes.
    fn serve(&mut self, program: &mut Command) -> Result<()> {
        program
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.foundation.add(Running::start(program)?);
        Ok(())
    }

    pub(super) fn wireguard(&mut self, kind: Kind, folder: &Path, number: usize) -> Result<()> {
        // wireguard-go makes the folder of its sockets, and leaves it; another's is not empty.
        self.foundation
            .add(Undo::by(|| drop(fs::remove_dir(WIREGUARD_SOCKETS))));
        let ends = [(self.a.clone(), "a", "1"), (self.b.clone(), "b", "2")];
        let mut public_keys = Vec::new();
        for (namespace, letter, _) in &ends {
            let private_key = folder.join(letter);
            let made = run(command("wg").arg("genkey"))?;
            fs::write(&private_key, made).doing(|| "writing a key".into())?;
            // The program's control socket lies in one folder for all namespaces: names differ.
            let device = format!("clw{}n{number}{letter}", std::process::id() % 10_000_000);
            if kind == Kind::WireGuard {
                ip(namespace, &format!("link add {device} type wireguard"))?;
            } else {
                let mut program = command("ip");
                program.args(["netns", "exec", namespace, "wireguard-go", "-f", &device]);
                self.serve(&mut program)?;
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
            ip(namespace, &format!("addr add {own} dev {device}"))?;
            ip(namespace, &format!("link set {device} mtu 1420 up"))?;
        }
        self.target = SocketAddr::from(([10, 98, 0, 2], PORT));
        Ok(())
    }

    /// A server that only this link can reach, with keys made for it, in a mount namespace of its
    /// own: it wants a user and a folder that a machine without an SSH server lacks.
    pub(super) fn ssh(&mut self, folder: &Path) -> Result<()> {
        for key in ["host", "client"] {
            let arguments = ["-q", "-t", "ed25519", "-N", "", "-f"];
            run(command("ssh-keygen").args(arguments).arg(folder.join(key)))?;
        }
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        fs::copy(path("client.pub"), path("authorized")).doing(|| "writing keys".into())?;
        let mut users = fs::read_to_string("/etc/passwd").doing(|| "reading users".into())?;
        users += "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n";
        fs::write(path("passwd"), users).doing(|| "writing users".into())?;
        let sshd = find("sshd").unwrap_or_else(|| "sshd".into());
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
        show_libraries(&mut server);
        self.serve(&mut server)?;
        wait_for("sshd", || listens(&self.b, 22))?;
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
        self.serve(&mut client)?;
        wait_for("ssh", || listens(&self.a, TUNNEL_PORT))?;
        self.target = SocketAddr::from(([127, 0, 0, 1], TUNNEL_PORT));
        Ok(())
    }
}

/// Whether a program listens on a port inside.
pub(in crate::net) fn listens(namespace: &str, port: u16) -> Option<()> {
    let all = run(command("ip").args(["netns", "exec", namespace, "ss", "-ltnH"]));
    let port = format!(":{port} ");
    all.is_ok_and(|text| text.contains(&port)).then_some(())
}
