//! The tables of a catalog: their schema, and how records become rows and columns and come back.

pub(crate) mod schema;

pub(crate) mod columns;

pub(crate) mod rows;
pub(crate) mod unverified;
pub(crate) mod versioning;
