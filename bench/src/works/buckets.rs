//! What a bucket can have, and what it costs: versions, policies, quotas, lifecycle rules, and a
//! million objects.

pub mod stock;

pub mod features;

pub mod versions;

pub mod lifecycle;
