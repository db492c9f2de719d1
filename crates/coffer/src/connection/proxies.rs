//! Proxies in front of the server, which tell whose a connection or a request is.
//!
//! Only a proxy whose address the operator has named is believed; what others send counts for
//! nothing. A proxy that passes TLS through says it in a PROXY header before the handshake
//! (versions 1 and 2 of haproxy.org's `proxy-protocol.txt`); one that ends TLS says it in a header
//! of each request.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use ppp::{HeaderResult, v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::config::proxy_rules::{ForwardHeader, Listener, ProxyRules};
use crate::limits::{FORWARDED_HOPS_MAX, PROXY_HEADER_BYTES, PROXY_LINE_BYTES};

/// The proxies of one listener.
#[derive(Debug, Clone)]
pub struct Proxies {
    trusted: Arc<[IpNet]>,
    protocol: bool,
    header: Option<ForwardHeader>,
}

impl Proxies {
    /// None: every client speaks for itself.
    pub fn none() -> Self {
        Self::of(&ProxyRules::default(), Listener::S3)
    }

    /// Those that speak to this listener.
    pub fn of(rules: &ProxyRules, listener: Listener) -> Self {
        Self {
            trusted: rules.trusted.clone().into(),
            protocol: rules.protocol.contains(&listener),
            header: rules.header,
        }
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Whose a connection is: the peer's, unless that is a proxy, which must say it first. Reads no
    /// byte beyond the proxy's header.
    ///
    /// # Errors
    /// When a proxy sends something else.
    pub async fn client_of<S>(&self, stream: &mut S, peer: IpAddr) -> io::Result<IpAddr>
    where
        S: AsyncRead + Unpin,
    {
        if self.protocol && self.trusts(peer) {
            Ok(proxied(stream).await?.unwrap_or(peer).to_canonical())
        } else {
            Ok(peer)
        }
    }

    /// Whether a peer tells by a header whose its requests are.
    pub fn forwards(&self, peer: IpAddr) -> bool {
        self.header.is_some() && self.trusts(peer)
    }

    /// Whose a request is that came from `peer`: of the addresses that were passed on, the last one
    /// that is no proxy of ours, for what stands before it is said by a stranger.
    pub fn client_of_request(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let Some(header) = self.header else {
            return peer;
        };
        let values = headers.get_all(header.name()).iter().rev();
        let hops = values.flat_map(|value| parts(value.as_bytes(), b',', header.has_quotes()));
        let mut client = peer;
        for hop in hops.take(FORWARDED_HOPS_MAX) {
            if !self.trusts(client) {
                break;
            }
            match header.address(hop) {
                Some(address) => client = address.to_canonical(),
                None => break,
            }
        }
        client
    }
}

impl ForwardHeader {
    fn name(self) -> HeaderName {
        HeaderName::from_static(match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        })
    }

    /// Whether a separator between quotation marks is none (RFC 7239, section 4).
    fn has_quotes(self) -> bool {
        matches!(self, Self::Forwarded)
    }

    /// The address that one hop passes on. Of a hop that names two, neither is believed.
    fn address(self, hop: &[u8]) -> Option<IpAddr> {
        let text = match self {
            Self::XForwardedFor => hop,
            Self::Forwarded => {
                let mut clients = parts(hop, b';', true).filter_map(|pair| {
                    let (name, value) = pair.trim_ascii().split_at_checked(b"for=".len())?;
                    name.eq_ignore_ascii_case(b"for=").then_some(value)
                });
                match (clients.next(), clients.next()) {
                    (Some(client), None) => client,
                    _ => return None,
                }
            }
        };
        let text = str::from_utf8(text.trim_ascii()).ok()?.trim_matches('"');
        let bare = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?.0,
            // An IPv4 address may bring a port; one of IPv6 can't without brackets.
            None if text.matches(':').count() == 1 => text.split_once(':')?.0,
            None => text,
        };
        bare.parse().ok()
    }
}

/// What stands between separators, from the end: what a proxy has appended is cut off alone,
/// whatever bytes and unpaired quotation marks a stranger has sent before it.
fn parts(value: &[u8], separator: u8, has_quotes: bool) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut is_quoted = false;
        let separates = |&at: &usize| {
            is_quoted ^= has_quotes && is_quotation_mark(text, at);
            !is_quoted && text[at] == separator
        };
        let cut = (0..text.len()).rev().find(separates);
        rest = cut.map(|at| &text[..at]);
        Some(cut.map_or(text, |at| &text[at + 1..]))
    })
}

/// Whether a quotation mark stands there that no backslash takes the meaning from.
fn is_quotation_mark(text: &[u8], at: usize) -> bool {
    let backslashes = text[..at].iter().rev().take_while(|byte| **byte == b'\\');
    text[at] == b'"' && backslashes.count() % 2 == 0
}

/// How version 2 begins; version 1 never does.
const VERSION_2: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The address in a PROXY header; none where the proxy speaks for itself.
async fn proxied<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<IpAddr>> {
    let mut header = vec![0; VERSION_2.len()];
    stream.read_exact(&mut header).await?;
    if header == VERSION_2 {
        header.resize(16, 0);
        stream.read_exact(&mut header[12..]).await?;
        let length = usize::from(u16::from_be_bytes([header[14], header[15]]));
        if length > PROXY_HEADER_BYTES {
            return Err(malformed());
        }
        header.resize(16 + length, 0);
        stream.read_exact(&mut header[16..]).await?;
    } else {
        while header.last() != Some(&b'\n') {
            if header.len() == PROXY_LINE_BYTES || !header.starts_with(b"PROXY ") {
                return Err(malformed());
            }
            header.push(stream.read_u8().await?);
        }
    }
    match HeaderResult::parse(&header) {
        HeaderResult::V1(Ok(found)) => Ok(match found.addresses {
            v1::Addresses::Tcp4(pair) => Some(pair.source_address.into()),
            v1::Addresses::Tcp6(pair) => Some(pair.source_address.into()),
            v1::Addresses::Unknown => None,
        }),
        HeaderResult::V2(Ok(found)) if found.command == v2::Command::Local => Ok(None),
        HeaderResult::V2(Ok(found)) => match found.addresses {
            v2::Addresses::IPv4(pair) => Ok(Some(pair.source_address.into())),
            v2::Addresses::IPv6(pair) => Ok(Some(pair.source_address.into())),
            v2::Addresses::Unspecified | v2::Addresses::Unix(_) => Ok(None),
        },
        _ => Err(malformed()),
    }
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a proxy sent something else than a PROXY header",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> ProxyRules {
        toml::from_str(text).unwrap()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 4000 443\r\n";

    fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut header = VERSION_2.to_vec();
        header.extend([0x20 | command, family]);
        header.extend((body.len() as u16).to_be_bytes());
        header.extend(body);
        header
    }

    async fn heard(sent: &[u8], peer: &str) -> (io::Result<IpAddr>, usize) {
        let rules = rules("trusted = ['10.0.0.0/8', '::1']\nprotocol = ['s3']");
        let mut stream = sent;
        let client = Proxies::of(&rules, Listener::S3)
            .client_of(&mut stream, address(peer))
            .await;
        (client, stream.len())
    }

    #[tokio::test]
    async fn a_proxy_tells_whose_a_connection_is_and_nothing_more_is_read() {
        let ipv4 = [192, 0, 2, 7, 10, 0, 0, 1, 0, 1, 0, 2];
        let mut with_more = ipv4.to_vec();
        with_more.extend([4, 0, 1, 9]); // a NOOP
        let mut ipv6 = address("2001:db8::7").to_string().into_bytes();
        ipv6.clear();
        ipv6.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        ipv6.extend([0; 20]);
        for (header, told) in [
            (V1.to_vec(), "192.0.2.7"),
            (
                b"PROXY TCP6 2001:db8::7 ::1 1 2\r\n".to_vec(),
                "2001:db8::7",
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), "10.1.2.3"),
            (v2(1, 0x11, &ipv4), "192.0.2.7"),
            (v2(1, 0x11, &with_more), "192.0.2.7"),
            (v2(1, 0x21, &ipv6), "2001:db8::7"),
            (v2(0, 0x11, &ipv4), "10.1.2.3"),
            (v2(0, 0, &[]), "10.1.2.3"),
        ] {
            let mut sent = header.clone();
            sent.extend(b"\x16\x03\x01hello");
            let (client, left) = heard(&sent, "10.1.2.3").await;
            assert_eq!(client.unwrap(), address(told), "{header:?}");
            assert_eq!(left, 8, "what follows is left to TLS: {header:?}");
        }
    }

    #[tokio::test]
    async fn strangers_are_not_believed_and_proxies_must_speak() {
        let (client, left) = heard(V1, "192.0.2.200").await;
        assert_eq!(client.unwrap(), address("192.0.2.200"));
        assert_eq!(left, V1.len(), "not even read");
        let endless = [b"PROXY TCP4 ".to_vec(), vec![b'1'; 200]].concat();
        for bad in [
            b"\x16\x03\x01 a TLS hello".to_vec(),
            endless,
            b"PROXY TCP4 192.0.2.7 10.0.0.1 4000\r\n".to_vec(),
            b"PROXY TCP4 ::1 ::1 1 2\r\n".to_vec(),
            v2(1, 0x11, &[1, 2, 3]),
            v2(1, 0x11, &[0; 4096]),
            v2(7, 0x11, &[0; 12]),
        ] {
            let (client, _) = heard(&bad, "10.1.2.3").await;
            assert!(client.is_err(), "{bad:?}");
        }
        let (cut_short, _) = heard(&V1[..20], "10.1.2.3").await;
        assert_eq!(cut_short.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_header_is_believed_as_far_as_proxies_pass_it_on() {
        let of = |header: &str, name: &'static str, values: &[&str], peer: &str| {
            let text = format!("trusted = ['10.0.0.0/8']\nheader = '{header}'");
            let proxies = Proxies::of(&rules(&text), Listener::S3);
            let mut headers = HeaderMap::new();
            for value in values {
                // As one byte each, also those that are no ASCII.
                let bytes: Vec<u8> = value.chars().map(|char| char as u8).collect();
                headers.append(name, bytes.try_into().unwrap());
            }
            proxies
                .client_of_request(&headers, address(peer))
                .to_string()
        };
        let xff = |values: &[&str], peer| of("x-forwarded-for", "x-forwarded-for", values, peer);
        assert_eq!(xff(&["192.0.2.7"], "10.0.0.1"), "192.0.2.7");
        assert_eq!(
            xff(&["6.6.6.6, 192.0.2.7, 10.0.0.9"], "10.0.0.1"),
            "192.0.2.7"
        );
        assert_eq!(
            xff(&["6.6.6.6, 192.0.2.7", "10.0.0.9"], "10.0.0.1"),
            "192.0.2.7"
        );
        assert_eq!(xff(&["192.0.2.7"], "192.0.2.200"), "192.0.2.200");
        assert_eq!(xff(&["6.6.6.6, nonsense"], "10.0.0.1"), "10.0.0.1");
        assert_eq!(xff(&["192.0.2.7:4000"], "10.0.0.1"), "192.0.2.7");
        assert_eq!(xff(&["[2001:db8::7]:1"], "10.0.0.1"), "2001:db8::7");
        assert_eq!(xff(&["::ffff:192.0.2.7"], "10.0.0.1"), "192.0.2.7");
        assert_eq!(xff(&[], "10.0.0.1"), "10.0.0.1");
        // What a stranger sends hides nothing of what a proxy appends to it.
        for sent in ["\u{ff}", "\"", "\"a", "?", ""] {
            let line = format!("{sent}, 192.0.2.7");
            assert_eq!(xff(&[&line], "10.0.0.1"), "192.0.2.7", "{sent}");
        }
        assert_eq!(xff(&["192.0.2.7, \u{ff}"], "10.0.0.1"), "10.0.0.1");
        let rfc = |values: &[&str]| of("forwarded", "forwarded", values, "10.0.0.1");
        assert_eq!(
            rfc(&["for=6.6.6.6, For=\"[2001:db8::7]:4711\";proto=https"]),
            "2001:db8::7"
        );
        for sent in ["\u{ff}", "for=\"", "for=\"a\\\"", "for=\u{e9}\";x"] {
            let line = format!("{sent}, for=192.0.2.7");
            assert_eq!(rfc(&[&line]), "192.0.2.7", "{sent}");
        }
        // A proxy passes on, between quotation marks, what a stranger calls the host.
        for host in ["a, for=6.6.6.6", "a;for=6.6.6.6", "a\\\";for=6.6.6.6, \\\\"] {
            for element in ["host=\"H\";for=192.0.2.7", "for=192.0.2.7;host=\"H\""] {
                let element = element.replace('H', host);
                assert_eq!(rfc(&[&element]), "192.0.2.7", "{element}");
            }
        }
        assert_eq!(rfc(&["for=6.6.6.6;for=192.0.2.7"]), "10.0.0.1");
        assert_eq!(rfc(&["for=_hidden"]), "10.0.0.1");
        assert_eq!(rfc(&["proto=https"]), "10.0.0.1");
    }
}
