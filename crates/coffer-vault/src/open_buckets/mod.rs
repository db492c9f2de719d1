//! Buckets that are open: catalog, blobs and key of each.
//!
//! How buckets are made, listed and deleted is in `buckets`; who may use one is decided in `acts`.

mod open_catalog;

mod upload_count;

mod open_bucket;

mod slots;

mod table;

pub(crate) use self::open_bucket::OpenBucket;
pub(crate) use self::open_catalog::{IN_DOUBT, open_buckets_max, see_commits};
pub(crate) use self::table::{Barred, OpenBuckets, Opening};
