//! How an act is decided, recorded and done: administrative acts, and uses of buckets by subjects.
//!
//! Which acts there are is in the rooms above.

mod record;

mod administration;

mod decide;

mod permit;

mod commit;

mod outcome;

mod grants;

pub(crate) use self::grants::{ChangeGrant, ReadGrant};
pub(crate) use self::outcome::Changed;
