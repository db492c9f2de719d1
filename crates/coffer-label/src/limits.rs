//! Every limit of labels and their text.

/// How many ranks there are: `s0` to `s15`.
pub const RANK_COUNT: u8 = 16;

/// How many categories there are: `c0` to `c1023`, as in SELinux's policies.
pub const CATEGORY_COUNT: u16 = 1024;

/// The longest text of a label or clearance that is parsed, in bytes. The longest that is ever
/// written, a clearance of two labels with every other category, stays below it.
pub const TEXT_MAX_BYTES: usize = 8 * 1024;

const _: () = assert!(
    CATEGORY_COUNT.is_multiple_of(64),
    "categories fill whole words"
);
