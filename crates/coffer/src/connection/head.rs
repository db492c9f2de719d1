//! The heads of requests: how long they may take, and what is told of those that are too long.

pub mod timer;

pub mod refused;
