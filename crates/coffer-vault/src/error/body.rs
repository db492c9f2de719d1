//! Bodies of requests that don't arrive.

/// Why a body could not be received.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BodyError(#[from] pub Box<dyn std::error::Error + Send + Sync + 'static>);
