//! A bucket's blobs: files that are one sealed message each. Which of them belong to an object is
//! told by the catalog only.

pub(crate) mod path;

pub(crate) mod blob_pins;
pub(crate) mod blob_tap;
pub(crate) mod buffers;
pub(crate) mod write_stall;

pub(crate) mod cache;

pub(crate) mod folder;

pub(crate) mod sealed_file;

pub(crate) mod reader;

pub(crate) mod space_ahead;

pub(crate) mod in_flight;
pub(crate) mod writer;

pub(crate) mod sealed_segment;
pub(crate) mod sealed_writer;

pub(crate) mod sweep;

pub(crate) mod copy;
