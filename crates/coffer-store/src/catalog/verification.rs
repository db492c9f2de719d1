//! Looking whether what is stored is whole: the catalog's own pages, and blobs that came sealed.

pub(crate) mod pages;
pub(crate) mod unverified;
