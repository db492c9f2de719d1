//! How a server is started beside its configuration: for this start only, so it is neither in the
//! configuration nor remembered.

use coffer_keys::ExportIdentity;
use coffer_replica::Place;
use coffer_vault::FencedBy;

/// What it goes on from, and who else may serve.
#[derive(Default)]
pub struct How {
    /// Whether to go on from older copies of files that were put back.
    pub accept_rollback: bool,
    /// The copy that is followed, and what opens its keystore.
    pub follow: Option<(Place, Option<ExportIdentity>)>,
    /// The copy by which the server is fenced off.
    pub fenced_by: Option<FencedBy>,
}
