//! Reading a log from its files: frame by frame, to its end, and record by record. Nothing in here
//! changes a file or judges whether the log is whole from its beginning: that is in `verify`.

pub(crate) mod end;
pub(crate) mod walk;

pub(crate) mod tail;

pub(crate) mod reader;

pub(crate) mod recency;

pub(crate) mod copy;
