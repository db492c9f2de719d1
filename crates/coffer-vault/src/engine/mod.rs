//! An engine: a server without state of its own, whose truth is a sealed log on an object store.
//!
//! Several gateways share one log. The one that has the *lease* serves all buckets, from a folder
//! that is a cache of the log, and acknowledges nothing that no head of the log names, as with a
//! synchronous copy. The others follow the log, as standbys do, and forward what they are asked.
//! When the lease ends, one of them takes it, and the log, and goes on.
//!
//! ```text
//!            following ──lease──▶ taking over ──head of the next epoch──▶ serving
//!                ▲                                                          │
//!                └──────────── the lease is lost: nothing here counts ──────┘
//! ```
//!
//! What decides what counts is the log: a head is created under its number, once. The lease decides
//! only who should try, and who may answer reads. The protocol, with what can fail, is in
//! `docs/decisions/0061-an-engine-with-one-owner.md`.

mod cache_files;

mod before;

mod cache;

mod blobs;

mod begun;

mod found;

mod identity;

mod keeper;

mod reads;

pub use self::before::put_back_cache;
pub(crate) use self::before::remove_before;
pub use self::begun::{FoundLog, has_log, take_over_begun};
pub use self::blobs::blob_cache;
pub use self::cache::{check_own_log, prepare_cache};
pub(crate) use self::cache::{note_record, noted_record, refuse_cache};
pub use self::identity::EngineIdentity;
pub use self::keeper::{Hesitation, LeaseKeeper, Turn};
