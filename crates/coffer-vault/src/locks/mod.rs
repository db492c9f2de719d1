//! Object lock: which buckets have it, what keeps objects from being deleted, and until when.
//!
//! What a lock keeps from is decided in the catalog, in the transaction that would delete. Before a
//! lock is acknowledged, the bound that an erase asks covers it, durably.

mod configuration;

mod recorded;

mod change;

mod told;

mod time;

pub use self::change::AskedLock;
pub use self::configuration::{DefaultRetention, ObjectLock};
pub(crate) use self::recorded::{asked_to_bypass, of_lock, of_version, overridden};
pub use self::time::LockClock;
pub(crate) use self::told::LockReader;
