//! Sealed databases: how one is opened and keyed, its connections, its write-ahead log, and the
//! group commit. Catalogs and the server's own database are both such; what is in their tables is
//! not told here.

pub(crate) mod cipher;
pub(crate) mod gaps;
pub(crate) mod sqlite_heap;

pub(crate) mod held;
pub(crate) mod log;
pub(crate) mod page_bits;
pub(crate) mod page_tap;
pub(crate) mod stamps;

pub(crate) mod own_files;

pub(crate) mod doubt;
pub(crate) mod sealed;

pub(crate) mod connections;
pub(crate) mod write_session;

pub(crate) mod readers;

pub(crate) mod queued_write;

pub(crate) mod group_commit;
