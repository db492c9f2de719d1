//! Which proxies the operator names, and how they tell whose a connection or a request is.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

/// What the operator says of proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProxyRules {
    /// Where they are: addresses and networks.
    #[serde(deserialize_with = "networks")]
    pub trusted: Vec<IpNet>,
    /// The listeners to which they send a PROXY header first.
    pub protocol: Vec<Listener>,
    /// The header of requests in which they tell the client's address.
    pub header: Option<ForwardHeader>,
}

/// A listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listener {
    /// That of S3.
    S3,
    /// That of administration.
    Administration,
}

/// A header that tells the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let network = |text: String| {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse::<IpNet>().or_else(|_| address()).map_err(|_| {
            serde::de::Error::custom(format!(
                "{text:?} is neither an address nor a network such as 10.0.0.0/8"
            ))
        })
    };
    texts.into_iter().map(network).collect()
}

impl ProxyRules {
    /// What makes no sense, if anything.
    pub fn nonsense(&self) -> Option<&'static str> {
        let says = !self.protocol.is_empty() || self.header.is_some();
        match (says, self.trusted.is_empty()) {
            (true, true) => Some("proxies.trusted is missing: none but these may tell addresses"),
            (false, false) => Some("proxies.trusted needs proxies.protocol or proxies.header"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> ProxyRules {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn rules_that_make_no_sense_are_named() {
        let nonsense = |text: &str| rules(text).nonsense().unwrap_or("");
        assert!(nonsense("protocol = ['administration']").contains("trusted is missing"));
        assert!(nonsense("header = 'forwarded'").contains("trusted is missing"));
        assert!(nonsense("trusted = ['10.0.0.1']").contains("needs"));
        assert_eq!(nonsense(""), "");
        let error = toml::from_str::<ProxyRules>("trusted = ['proxy.example.org']");
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("neither an address")
        );
    }
}
