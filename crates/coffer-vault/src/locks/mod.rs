//! Object lock: which buckets have it, what keeps objects from being deleted, and until when.
//!
//! What a lock keeps from is decided in the catalog, in the transaction that would delete. Before a
//! lock is acknowledged, the bound that an erase asks covers it, durably.

mod configuration;

mod change;

pub use self::change::AskedLock;
pub use self::configuration::{DefaultRetention, ObjectLock};
