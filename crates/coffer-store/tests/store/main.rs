//! The store as its users see it: one program, for SQLCipher is slow to link.

#![expect(clippy::unwrap_used, reason = "what a test can not unwrap fails it")]

mod fixture;

mod aged;
mod blobs;
mod cached;
mod cached_bounds;
mod commits;
mod damage;
mod deleted;
mod full_disk;
mod killed;
mod left_logs;
mod listing;
mod locks;
mod museum;
mod objects;
mod older;
mod open_uploads;
mod rewrapping;
mod sealed;
mod stopped;
mod sweeps;
mod tapped;
mod uploads;
mod verdicts;
mod versions;
mod versions_model;
