//! What the server is called.

use std::net::IpAddr;

use rustls_pki_types::ServerName;

/// The names that a server certificate is for: localhost and the loopback addresses, the host's
/// name, an address that the server listens on, and the domains of virtual-host style.
pub fn names(host: &str, listen: &[IpAddr], domains: &[String]) -> Vec<ServerName<'static>> {
    let mut texts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    texts.push(host.to_ascii_lowercase());
    texts.extend(
        listen
            .iter()
            .filter(|ip| !ip.is_unspecified())
            .map(IpAddr::to_string),
    );
    texts.extend(domains.iter().cloned());
    let mut names: Vec<ServerName<'static>> = Vec::new();
    // A host may have a name that is none in DNS: that one is left out.
    for name in texts
        .into_iter()
        .filter_map(|text| ServerName::try_from(text).ok())
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_server() {
        let listen = ["127.0.0.1", "10.0.0.7", "::"].map(|ip| ip.parse().unwrap());
        let texts: Vec<String> = names("Box", &listen, &["s3.example.org".to_owned()])
            .iter()
            .map(|name| name.to_str().into_owned())
            .collect();
        assert_eq!(
            texts,
            [
                "localhost",
                "127.0.0.1",
                "::1",
                "box",
                "10.0.0.7",
                "s3.example.org"
            ]
        );
        assert_eq!(names("not a name", &[], &[]).len(), 3);
    }
}
