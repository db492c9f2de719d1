//! The bytes on disk, as `docs/FORMAT.md`, "Audit log", tells them: records, segments, checkpoints
//! and the head. Nothing in here reads or writes a file.

pub(crate) mod record;
pub(crate) mod segment;

pub(crate) mod checkpoint;
pub(crate) mod head;
