//! Buckets that are open: catalog, blobs and key of each.
//!
//! How buckets are made, listed and deleted is in `buckets`; who may use one is decided in `acts`.

pub(crate) mod customer_key;

mod open_catalog;

mod upload_ledger;

mod users;

mod open_bucket;

mod slots;

mod own_file;

mod taps;

mod table;

pub use self::customer_key::CustomerKey;
pub(crate) use self::open_bucket::{CommitGuard, OpenBucket, UsedBucket};
pub(crate) use self::open_catalog::{IN_DOUBT, open_buckets_max, see_commits};
pub(crate) use self::table::{Barred, OpenBuckets, Opening};
pub(crate) use self::taps::BucketTap;
