//! Why a text is not a label.

use thiserror::Error;

/// Why a text is not a label or clearance, or two labels are no clearance.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LabelError {
    /// Not a rank: `s0` to `s15`.
    #[error("a label begins with a rank, s0 to s15")]
    Rank,
    /// Not a category: `c0` to `c1023`.
    #[error("a category is one of c0 to c1023")]
    Category,
    /// A range whose end is not above its beginning.
    #[error("a range of categories is written from the lower to the higher, like c1.c3")]
    Range,
    /// A clearance whose high label doesn't dominate its low one.
    #[error("the high label of a clearance must dominate its low one")]
    Clearance,
    /// Longer than any label, see [`TEXT_MAX_BYTES`](crate::limits::TEXT_MAX_BYTES).
    #[error("a text of {text_bytes} bytes is no label")]
    TooLong {
        /// The text's length, in bytes.
        text_bytes: usize,
    },
}
