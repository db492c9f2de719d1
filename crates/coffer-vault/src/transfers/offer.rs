//! Where clients find the data port.

/// The data port as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPort {
    /// Its TCP port, at the host of the server.
    pub port: u16,
    /// The URL that it is reached by from elsewhere, where that is another, without a `/` at its
    /// end.
    pub url: Option<String>,
    /// Whether it is spoken to by TLS.
    pub speaks_tls: bool,
}

impl DataPort {
    /// The URL of a ticket, where one must be told.
    pub fn url_of(&self, ticket: &str) -> Option<String> {
        let url = self.url.as_ref()?;
        Some(format!("{url}/transfer/{ticket}"))
    }
}
