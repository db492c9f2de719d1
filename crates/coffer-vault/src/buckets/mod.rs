//! Buckets: made, listed, tagged, configured, deleted when they are empty. `erase` destroys those
//! that are not.
//!
//! A bucket is made in three durable steps: its key in the keystore, its folder with an empty
//! catalog, its row in the system database; only the row makes it exist. When it is deleted, row,
//! key and folder go, in this order. What is left when the server dies in between has a key but no
//! row, and an empty catalog, or is a folder that the system database calls doomed: recovery
//! removes it.

mod folder;

mod settings;

mod info;

mod lifecycle;

mod create;

mod tags;

mod versioning;

mod configuration;

mod sharing;

mod acl;

mod delete;

mod end_uploads;

mod level_usage;

pub use self::create::NewBucket;
pub use self::end_uploads::UploadsEnded;
pub(crate) use self::folder::{remove_doomed_folder, remove_empty_folders};
pub use self::info::{BucketInfo, BucketSummary};
pub use self::level_usage::LevelUsage;
pub use self::lifecycle::DueEnd;
pub use self::settings::BucketSettings;
