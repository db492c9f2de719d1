//! How much is known of bytes that came sealed.

/// What is known of bytes that were stored sealed, as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// They have opened, when they came or later.
    #[default]
    Whole,
    /// They are still to be opened.
    Waits,
    /// Some did not open, or are others than their checksum says.
    Failed,
}
