//! The certificate of a running server: loaded, looked after and told of.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coffer_admin::Status;

use crate::config::Config;
use crate::error::Error;
use crate::limits::{CERTIFICATE_CHECK, CERTIFICATE_RENEW_DAYS, CLOCK_LOOK};
use crate::serve::clock_watch::ClockWatch;
use crate::tls::authority::{DAY, constrains_addresses};
use crate::tls::certificates::Ensured;
use crate::tls::damage::check_authority;
use crate::tls::folder::Files;
use crate::tls::server_config::{Certificate, Source};
use crate::tls::server_names::names;

/// The certificate of both listeners.
pub struct ServedCertificate {
    certificate: Arc<Certificate>,
    /// Where the local authority's is, if that made it.
    authority: Option<PathBuf>,
    /// Where its expiry is told.
    status: Status,
}

impl ServedCertificate {
    /// Loads it, after making it where the operator has none.
    pub fn load(config: &Config, status: Status) -> Result<Self, Error> {
        let files = Files::of(&config.data);
        let source = match &config.tls {
            Some(files) => Source::Operator(files.clone()),
            None => local(config, &files),
        };
        let (certificate, ensured) = Certificate::load(source)?;
        let is_local = config.tls.is_none();
        if is_local {
            tell_of_authority(&files, ensured);
            tell_of_refused(&certificate);
        }
        tell_of_mark(&certificate);
        let authority = is_local.then(|| files.ca_cert());
        let this = Self {
            certificate,
            authority,
            status,
        };
        this.tell_expiry();
        Ok(this)
    }

    /// What handshakes take it from.
    pub fn certificate(&self) -> Arc<Certificate> {
        self.certificate.clone()
    }

    /// The authority that clients should trust if it is the local one.
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }

    /// Takes over files that the operator has replaced, because they asked for it. What can't be
    /// used is told, and the certificate stays that is there.
    pub fn reload(&self) {
        match self.certificate.refresh() {
            Ok(true) => {
                tracing::info!("SIGHUP: new connections get a new certificate");
                tell_of_mark(&self.certificate);
            }
            Ok(false) => tracing::info!("SIGHUP: the certificate is the same as before"),
            Err(error) => tracing::error!(
                %error,
                "SIGHUP: the certificate could not be replaced; the one before stays in use"
            ),
        }
        self.tell_expiry();
    }

    /// Renews or reloads the certificate of a server that runs for long, or whose clock was set:
    /// what was made under the old time may not be valid under the new.
    pub async fn watch(self: Arc<Self>) {
        let mut watched = ClockWatch::now();
        loop {
            tokio::time::sleep(CLOCK_LOOK).await;
            let was_set = watched.was_set();
            if !was_set && watched.since() < CERTIFICATE_CHECK {
                continue;
            }
            watched = ClockWatch::now();
            if was_set {
                tracing::info!("the clock was set: looking at the certificate");
            }
            // It makes files at most once in months: short enough for this thread.
            match self.certificate.refresh() {
                Ok(true) => tracing::info!("new connections get a new certificate"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "the certificate could not be renewed"),
            }
            self.tell_expiry();
        }
    }

    /// Tells when it expires, to health and metrics; and to the log, when that is soon and not ours
    /// to put off.
    fn tell_expiry(&self) {
        let expiry = self.certificate.expiry();
        self.status.certificate_expires(expiry);
        let Some(left) = expiry.map(|end| end.duration_since(SystemTime::now())) else {
            return;
        };
        let days = left.as_ref().map_or(0, Duration::as_secs) / DAY.as_secs();
        if left.is_err() {
            tracing::error!("the server's certificate has expired: clients refuse it");
        } else if self.authority.is_none() && days < CERTIFICATE_RENEW_DAYS {
            tracing::warn!(
                days,
                "the certificate expires soon: replace its files and send SIGHUP"
            );
        }
    }
}

/// What the local authority makes, and where.
fn local(config: &Config, files: &Files) -> Source {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let listen = [config.listen.ip(), config.admin_listen.ip()];
    let addresses: Vec<_> = { listen.into_iter() }
        .chain(config.addresses.iter().copied())
        .collect();
    Source::Local {
        files: files.clone(),
        names: names(&host, &addresses, &config.domains),
        domains: config.domains.clone(),
    }
}

/// A certificate that is good for some clients and not for others, `coffer` among them.
fn tell_of_mark(certificate: &Certificate) {
    if certificate.is_authoritys() {
        tracing::warn!(
            "the server's certificate is marked as an authority's (CA:TRUE), as `openssl req \
             -x509` makes them: some clients refuse that, among them the commands of coffer. Make \
             one that says basicConstraints=critical,CA:FALSE, and send SIGHUP"
        );
    }
}

/// Names that clients reach the server by, and that no client would accept in the certificate.
fn tell_of_refused(certificate: &Certificate) {
    if let Ok(refused) = certificate.refused()
        && !refused.is_empty()
    {
        tracing::warn!(
            names = refused.join(", "),
            "the local authority, which an earlier version made, signs only for the names of then: \
             these are missing in the certificate. `coffer tls renew-authority` makes way for an \
             authority without that bound, whose ca.pem clients need"
        );
    }
}

/// What a start did about the authority and its certificate.
fn tell_of_authority(files: &Files, ensured: Ensured) {
    let ca_cert = files.ca_cert();
    let is_told = matches!(ensured, Ensured::KeptDespite { .. });
    match ensured {
        Ensured::Kept => {}
        Ensured::KeptUnderWrongClock => tracing::warn!(
            "the clock is wrong: it shows a time before the server's certificate begins, which is \
             kept; signatures of clients are refused until the clock is set"
        ),
        Ensured::KeptDespite { problem } => tracing::error!(
            %problem,
            "the server's certificate, which is still valid, can't be renewed"
        ),
        Ensured::Completed => tracing::warn!(
            path = %ca_cert.display(),
            "the authority's certificate was missing and was made again, for the same key"
        ),
        Ensured::Renewed => tracing::info!("renewed the server's certificate"),
        Ensured::Founded => tracing::info!(
            path = %ca_cert.display(),
            "made a local certificate authority: clients need this file"
        ),
        Ensured::FoundedInstead => tracing::warn!(
            path = %ca_cert.display(),
            "the local certificate authority was gone, ca.pem and ca.key, and another was made: \
             clients that trust the one before refuse the server until they have this file. To go \
             back to that one, put copies of its ca.pem and ca.key there, and restart"
        ),
    }
    if let (Err(problem), false) = (check_authority(files), is_told) {
        tracing::error!(
            %problem,
            "the server's certificate is good, but can't be renewed before it expires"
        );
    }
    if let Ok(true) = constrains_addresses(files, SystemTime::now()) {
        tracing::warn!(
            "the local authority constrains addresses, which clients on BoringSSL refuse: \
             `coffer tls renew-authority` makes way for another, whose ca.pem clients need"
        );
    }
}
