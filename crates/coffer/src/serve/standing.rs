//! How a server is started beside its configuration: for this start only, so it is neither in the
//! configuration nor remembered.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use coffer_keys::{ExportIdentity, SourceSecrets, SourceSpec};
use coffer_replica::Place;
use coffer_vault::policy::ObjectOwnership as Ownership;
use coffer_vault::{Day, EtagStyle, FencedBy, VaultOptions};

use crate::config::{Config, Etag, ObjectOwnership};
use crate::secrets::passphrase::PassphraseArgs;

/// What it goes on from, and who else may serve.
#[derive(Default)]
pub struct How {
    /// Whether to go on from older copies of files that were put back.
    pub accept_rollback: bool,
    /// The copy that is followed, and what opens its keystore.
    pub follow: Option<(Place, Option<ExportIdentity>)>,
    /// The engine that it is a gateway of.
    pub engine: Option<EngineHow>,
    /// The copy by which the server is fenced off.
    pub fenced_by: Option<FencedBy>,
    /// Whether a server that was fenced off is to take changes again.
    pub ends_fence: bool,
}

/// How a gateway takes part in an engine.
pub struct EngineHow {
    /// The store that holds the engine's log.
    pub from: Place,
    /// What opens its keystore.
    pub key: EngineKey,
    /// Where it takes what other gateways forward, when it serves.
    pub listen: SocketAddr,
    /// Where they find that, if it is elsewhere: a host and a port.
    pub advertise: Option<String>,
    /// How much of the blobs it keeps on its disk, in bytes.
    pub cache_bytes: u64,
}

/// What all gateways of an engine have to open its keystore.
pub enum EngineKey {
    /// An identity.
    Given(ExportIdentity),
    /// What opens the identity that lies in the store.
    Shared(SourceSpec, PassphraseArgs),
}

/// How the vault is opened.
pub fn vault_options(config: &Config, secrets: SourceSecrets, how: &How) -> VaultOptions {
    VaultOptions {
        etag: match config.etag {
            Etag::Random => EtagStyle::Random,
            Etag::Md5 => EtagStyle::Md5,
        },
        object_ownership: match config.object_ownership {
            ObjectOwnership::BucketOwnerEnforced => Ownership::BucketOwnerEnforced,
            ObjectOwnership::BucketOwnerPreferred => Ownership::BucketOwnerPreferred,
            ObjectOwnership::ObjectWriter => Ownership::ObjectWriter,
        },
        // A gateway's root key comes with the keystore, and goes with its cache.
        source: config.root_key.clone().filter(|_| how.engine.is_none()),
        secrets,
        accept_rollback: how.accept_rollback,
        fenced_by: how.fenced_by.clone(),
        ends_fence: how.ends_fence,
        subject_limits: config.limits.of_subjects(),
        lock_max_days: config.lock_max_days,
        settle_after: config
            .settle_after_hours
            .map(|hours| Duration::from_secs(u64::from(hours.get()) * 3600)),
        lifecycle_day: Day {
            ms: i64::from(config.lifecycle_day_seconds.get()) * 1000,
        },
        abort_uploads_days: NonZeroU32::new(config.abort_uploads_after_days),
        ..VaultOptions::new(config.data.clone())
    }
}
