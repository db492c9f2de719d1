//! Sealed transfer: objects whose sealed bytes go over the data port, and what S3 requests say of
//! that (docs/SEALED-TRANSFER.md).

pub(crate) mod answers;

pub(crate) mod announce;
