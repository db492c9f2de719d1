//! What changes a log: opening it after a stop or a crash, adding groups of records, pruning, and
//! the queue of what waits to be written. The thread that does it is in `log`.

pub(crate) mod writer;

pub(crate) mod open;

pub(crate) mod prune;

pub(crate) mod queue;
