//! What a new root key means: what was destroyed, and what copies that are kept apart are worth.

use coffer_vault::Actor;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::admin::Admin;
use crate::http::refusal::Refusal;

/// That the root key was rotated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RootRotation {
    /// The generation of the keystore, which opens with the new root key alone.
    pub generation: u64,
    /// Whether the old root key is destroyed: nothing else is answered.
    pub replaced_destroyed: bool,
    /// How.
    pub destruction: String,
    /// What that means for copies that are kept apart, in a sentence.
    #[serde(default)]
    pub keep_apart: String,
}

impl RootRotation {
    /// As it is told once it is done.
    pub(crate) async fn done(admin: &Admin, actor: &Actor) -> Result<Self, Refusal> {
        let status = admin.vault.keystore_status(actor).await?;
        Ok(Self {
            generation: status.generation,
            replaced_destroyed: true,
            destruction: status.destruction,
            keep_apart: copies_are_stale(admin).unwrap_or_default(),
        })
    }
}

/// What a new root key means for copies that are kept apart.
pub(crate) fn copies_are_stale(admin: &Admin) -> Option<String> {
    admin.vault.copies_are_stale()
}
