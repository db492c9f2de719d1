//! Transfers over real sockets, with a data port that does what it is told.

mod port;

mod receiving;
mod sending;
