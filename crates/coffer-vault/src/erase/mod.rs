//! Erasing a level or a bucket with its keys, at once: the steps, the journal that lets a start
//! complete them, and the receipts.
//!
//! Whose approval an erase takes is in `approvals`; empty buckets are deleted in `buckets`.

mod journal;

mod key_releases;

mod keyless;

mod locks;

mod strays;

mod destroy;

mod interrupted;

mod finish;

mod orders;

mod steps;

mod receipts;

pub(crate) use self::destroy::settle;
pub(crate) use self::interrupted::{complete_interrupted, hide_ordered};
pub(crate) use self::journal::{EraseDraft, ordered_to_erase};
pub(crate) use self::steps::{Doomed, Warrant};
