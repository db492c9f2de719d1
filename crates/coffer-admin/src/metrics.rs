//! The metrics page and what it counts: the S3 front door, its listener, this process. The vault
//! counts for itself.

pub(crate) mod traffic;

pub(crate) mod s3_metrics;

pub(crate) mod process;

pub(crate) mod page;
