//! How an act is decided, recorded and done: administrative acts, and uses of buckets by subjects.
//!
//! Which acts there are is in the rooms above.

mod record;

mod administration;

mod bucket_use;

pub(crate) use self::bucket_use::{Changeable, Readable};
