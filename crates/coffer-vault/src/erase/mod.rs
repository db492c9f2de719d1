//! Erasing a level or a bucket with its keys, at once: the steps, the journal that lets a start
//! complete them, and the receipts.
//!
//! Whose approval an erase takes is in `approvals`; empty buckets are deleted in `buckets`.

mod journal;

mod key_releases;

mod locks;

mod strays;

mod destroy;

mod steps;

mod receipts;

pub(crate) use self::destroy::settle;
pub(crate) use self::journal::{EraseDraft, complete_interrupted};
pub(crate) use self::steps::{Doomed, Warrant};
