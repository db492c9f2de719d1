//! Who takes part with networks, asked of this machine.

use crate::contender::TLS_SETTINGS;
use crate::contender::{Availability, Contender, Placement};
use crate::host::kernel_crypto::Config;
use crate::host::kernel_tls;
use crate::host::peers::remedy;
use crate::host::programs::{command, find, run, version};
use crate::net::link::{Kind, add_namespace};
use crate::net::session::Session;

/// One that takes part.
pub(super) struct Entry {
    pub(super) contender: Contender,
    pub(super) kind: Kind,
    pub(super) session: Session,
}

/// All of them, those that can't run among them.
pub(super) fn entries() -> Vec<Entry> {
    let entry = |contender: Contender, kind, session| {
        let missing = if contender.availability.runs() {
            missing(kind)
        } else {
            None
        };
        Entry {
            contender: match missing {
                Some(missing) => contender.available(missing),
                None => contender,
            },
            kind,
            session,
        }
    };
    let one = |name: &str, placement, runs_on: &str| Contender::new(name, placement, runs_on);
    let openssl = openssl::version::version();
    let wireguard_go = version("wireguard-go", "--version").unwrap_or("wireguard-go".into());
    let ssh = version("ssh", "-V").unwrap_or("ssh".into());
    vec![
        entry(
            one("none, TCP", Placement::None, "TCP"),
            Kind::Wire,
            Session::Plain,
        ),
        entry(
            one("TLS, rustls", Placement::User, "rustls over aws-lc-rs").set(TLS_SETTINGS),
            Kind::Wire,
            Session::Rustls,
        ),
        entry(
            one("TLS, OpenSSL", Placement::User, openssl).set(TLS_SETTINGS),
            Kind::Wire,
            Session::OpenSsl,
        ),
        entry(kernel_tls(), Kind::Wire, Session::KernelTls),
        entry(by_card(), Kind::Wire, Session::KernelTls),
        entry(
            one("IPsec", Placement::Kernel, "the kernel's ESP")
                .set("transport mode, rfc4106(gcm(aes)) with 256 bits, tag of 128"),
            Kind::Ipsec,
            Session::Plain,
        ),
        entry(
            one("WireGuard", Placement::Kernel, "the kernel's wireguard")
                .set("ChaCha20-Poly1305, MTU 1420"),
            Kind::WireGuard,
            Session::Plain,
        ),
        entry(
            one("WireGuard in a program", Placement::User, &wireguard_go)
                .set("ChaCha20-Poly1305, MTU 1420, over a TUN device"),
            Kind::WireGuardGo,
            Session::Plain,
        ),
        entry(
            one("SSH tunnel", Placement::User, &ssh)
                .set("a forwarded port, aes256-gcm@openssh.com, no compression"),
            Kind::Ssh,
            Session::Plain,
        ),
    ]
}

fn kernel_tls() -> Contender {
    Contender::new("kernel TLS", Placement::Kernel, "the kernel's tls")
        .set(kernel_tls::SETTINGS)
        .available(kernel_tls::availability())
}

/// What the lab has not.
fn by_card() -> Contender {
    let missing = Availability::cannot(
        "the lab's links are virtual Ethernet, which encrypts nothing in hardware",
        "a card whose ethtool -k tells tls-hw-tx-offload, and a lab between two machines: this \
         one measures within one",
    );
    Contender::new(
        "kernel TLS by a network card",
        Placement::Kernel,
        "tls-hw-tx-offload",
    )
    .available(missing)
}

/// What this machine lacks for a link.
pub(super) fn missing(kind: Kind) -> Option<Availability> {
    if !rustix::process::geteuid().is_root() {
        let why = "network namespaces need root";
        return Some(Availability::cannot(why, "run the lab as root"));
    }
    let programs: &[&str] = match kind {
        Kind::Wire | Kind::Ipsec => &["ip"],
        Kind::WireGuard => &["ip", "wg"],
        Kind::WireGuardGo => &["ip", "wg", "wireguard-go"],
        Kind::Ssh => &["ip", "ss", "ssh", "ssh-keygen", "sshd", "unshare"],
    };
    if let Some(missing) = programs.iter().find(|program| find(program).is_none()) {
        let why = format!("the program {missing} is missing");
        let here = "make lab, which unpacks it; or apt install iproute2, wireguard-tools, \
                    wireguard-go, openssh-server";
        return Some(Availability::cannot(why, remedy(missing, here)));
    }
    let (option, arguments): (&str, &[&str]) = match kind {
        Kind::Ipsec => (
            "CONFIG_INET_ESP",
            &[
                "xfrm",
                "state",
                "add",
                "src",
                "10.0.0.1",
                "dst",
                "10.0.0.2",
                "proto",
                "esp",
                "spi",
                "0x100",
                "mode",
                "transport",
                "aead",
                "rfc4106(gcm(aes))",
                "0x000102030405060708090a0b0c0d0e0f10111213",
                "128",
            ],
        ),
        Kind::WireGuard => (
            "CONFIG_WIREGUARD",
            &["link", "add", "wg0", "type", "wireguard"],
        ),
        Kind::WireGuardGo if !std::path::Path::new("/dev/net/tun").exists() => {
            return Some(Availability::cannot(
                "there is no /dev/net/tun",
                "modprobe tun",
            ));
        }
        Kind::Wire | Kind::WireGuardGo | Kind::Ssh => return None,
    };
    if works_in_a_namespace(arguments) {
        return None;
    }
    let remedy = "a kernel that has it, as Debian's; try coffer-lab kernel";
    Some(Availability::cannot(Config::read().lacks(option), remedy))
}

/// Tries an `ip` command in a namespace that is gone afterwards.
fn works_in_a_namespace(arguments: &[&str]) -> bool {
    let name = format!("coffer-lab-{}-probe", std::process::id());
    let Ok(_undo) = add_namespace(&name) else {
        return false;
    };
    run(command("ip").args(["-n", &name]).args(arguments)).is_ok()
}
