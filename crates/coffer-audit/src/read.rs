//! Reading a log from its files: from frame to frame, up to where it ends, record by record. Nothing
//! in here changes a file, nor judges whether the log is whole from its beginning: see `verify`.

pub(crate) mod end;
pub(crate) mod walk;

pub(crate) mod tail;

pub(crate) mod reader;

pub(crate) mod freshness;
