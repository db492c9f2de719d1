//! The reference monitor: the only door to data.
