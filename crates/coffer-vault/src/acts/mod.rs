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

mod read_grant;

mod change_grant;

pub(crate) use self::change_grant::ChangeGrant;
pub(crate) use self::commit::ToItsEnd;
pub(crate) use self::outcome::Changed;
pub(crate) use self::read_grant::ReadGrant;
