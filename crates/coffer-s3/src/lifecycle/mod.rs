//! Lifecycle configurations: read and written, and what headers tell of them.

pub(crate) mod document;

pub(crate) mod set;

pub(crate) mod told;
