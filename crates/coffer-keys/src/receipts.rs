//! Receipts of erases: the signed document, and what of an erase goes into it. The erase itself is
//! in `keystore`.

pub(crate) mod sealed_copy;

pub mod receipt;

pub(crate) mod issue;
