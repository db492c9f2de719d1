//! Checksums and digests of what clients send: their algorithms, the headers and trailers that name
//! them, and the comparison. The SHA-256 that a signature covers is in `signature`.

pub(crate) mod algorithms;

pub(crate) mod elements;

pub(crate) mod fields;

pub(crate) mod headers;

pub(crate) mod expected;
