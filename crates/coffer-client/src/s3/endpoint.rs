//! The address of an S3 service.

use http::Uri;

use crate::address::decoded;
use crate::error::{ClientError, ENDPOINT_BY};
use crate::https::{HttpsServer, has_odd_port};

/// An S3 service's address: a scheme, a host, perhaps a port.
#[derive(Debug, Clone)]
pub struct Endpoint {
    text: String,
    pub(super) reached: Reached,
    /// As in a `Host` header: without the port where that is the usual one, as it is signed.
    pub(super) authority: String,
}

/// How it is reached.
#[derive(Debug, Clone)]
pub(super) enum Reached {
    /// Over TLS.
    Https(HttpsServer),
    /// In the clear: a host, without brackets, and a port.
    Http { host: String, port: u16 },
}

impl Endpoint {
    /// The service at an address such as `https://127.0.0.1:9000`, or `http://…` for servers that
    /// have no TLS.
    ///
    /// # Errors
    /// [`ClientError::Endpoint`], also for one with more than a host and a port.
    pub fn parse(text: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::Endpoint {
            option: ENDPOINT_BY,
            problem: "write an address such as https://coffer.example.org:9000, without a path"
                .to_owned(),
        };
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        // A secret may stand there, and the address is told in errors.
        if { uri.authority() }.is_some_and(|it| decoded(it.as_str()).contains('@')) {
            return Err(ClientError::Endpoint {
                option: ENDPOINT_BY,
                problem: "an address takes no name and secret before the host: give them with \
                          --credentials, a profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                    .to_owned(),
            });
        }
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(wrong)?.to_owned();
        let has_more = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        if has_more || has_odd_port(&uri) {
            return Err(wrong());
        }
        let (reached, usual) = match uri.scheme_str() {
            Some("https") => {
                let server = HttpsServer::parse(text).map_err(|_| wrong())?;
                (Reached::Https(server), 443)
            }
            Some("http") => {
                let port = uri.port_u16().unwrap_or(80);
                let host = host.trim_matches(['[', ']']).to_owned();
                (Reached::Http { host, port }, 80)
            }
            _ => {
                return Err(ClientError::Endpoint {
                    option: ENDPOINT_BY,
                    problem: "write https:// or http:// before the host, as in \
                              https://coffer.example.org:9000"
                        .to_owned(),
                });
            }
        };
        let authority = match uri.port_u16() {
            Some(port) if port != usual => format!("{host}:{port}"),
            _ => host,
        };
        Ok(Self {
            text: text.trim_end_matches('/').to_owned(),
            reached,
            authority,
        })
    }

    /// The address as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether TLS guards what goes there.
    pub fn is_https(&self) -> bool {
        matches!(self.reached, Reached::Https(_))
    }

    /// The host alone, an address of IPv6 without brackets.
    pub fn host(&self) -> &str {
        let authority = self.authority.as_str();
        match authority
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((address, _)) => address,
            None => authority.split(':').next().unwrap_or(authority),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, authority, host, is_https) in [
            ("https://h", "h", "h", true),
            ("https://h:443/", "h", "h", true),
            ("https://h:9000", "h:9000", "h", true),
            ("http://127.0.0.1:80", "127.0.0.1", "127.0.0.1", false),
            ("http://[::1]:8333", "[::1]:8333", "::1", false),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.authority, authority, "{text}");
            assert_eq!((endpoint.host(), endpoint.is_https()), (host, is_https));
        }
        for wrong in ["h:9000", "127.0.0.1:27100", "ftp://h"] {
            let told = Endpoint::parse(wrong).unwrap_err().to_string();
            assert!(told.contains("write https:// or http:// before"), "{told}");
        }
        for wrong in [
            "https://h/p",
            "https://",
            "http://h/?a",
            "https://h:99999",
            "http://[::1]:65536",
        ] {
            let told = Endpoint::parse(wrong).unwrap_err().to_string();
            assert!(told.starts_with("--endpoint: write"), "{wrong}: {told}");
        }
        for wrong in [
            "https://user:hidden@h:9000",
            "http://hidden@h",
            "https://:hidden@h/",
        ] {
            let told = Endpoint::parse(wrong).unwrap_err().to_string();
            assert!(told.contains("takes no name and secret"), "{told}");
            assert!(!told.contains("hidden"), "{told}");
        }
    }
}
