//! What one subject may take at most, and has taken.

/// A subject has as much as one may have. What it has already stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectLimit {
    /// Connections, none of them idle.
    #[error("the subject has {limit} connections at work, as many as one may have: use fewer")]
    Connections {
        /// How many it may have.
        limit: usize,
    },
    /// Multipart uploads that it has begun, in all buckets.
    #[error(
        "the subject has {limit} multipart uploads under way, as many as one may have: complete or \
         abort some"
    )]
    Uploads {
        /// How many it may have.
        limit: usize,
    },
    /// Buckets that it has made.
    #[error(
        "the subject has made {limit} buckets, as many as one may have: delete some, or have a \
         system administrator make them"
    )]
    Buckets {
        /// How many it may have.
        limit: usize,
    },
}
