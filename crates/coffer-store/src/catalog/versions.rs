//! Versions of objects: of a name, the newest is in `object` unless it is a delete marker, and all
//! others are in `version`. Numbers of content rise, so the newest has the highest.

pub(crate) mod find;

pub(crate) mod place;

pub(crate) mod access;
pub(crate) mod listing;
pub(crate) mod lock;
pub(crate) mod state;

pub(crate) mod aged;
