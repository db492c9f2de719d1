//! Bodies of requests that don't arrive.

/// Why a body could not be received.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BodyError(#[from] pub Box<dyn std::error::Error + Send + Sync + 'static>);

/// Why a request with a key of the client's own, or without one, was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CustomerKeyError {
    /// The bucket takes no such objects.
    #[error("the bucket takes no objects that are sealed under a key of the client's own")]
    Blocked,
    /// The object is sealed under a client's key, and the request has none.
    #[error("the object is sealed under a client's key too, which is needed to open it")]
    Missing,
    /// The request has another key than that of the object.
    #[error("the key is not the one that the object was sealed under")]
    Wrong,
    /// The object is not sealed under a client's key.
    #[error("the object is not sealed under a client's key")]
    NotApplicable,
    /// The upload was begun with a key, and the part has none.
    #[error("the upload was begun with a client's key, which all of its parts need")]
    MissingForPart,
    /// The upload was begun with another key, or with none.
    #[error("the upload was not begun with this key")]
    WrongForPart,
}
