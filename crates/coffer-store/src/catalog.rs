//! A bucket's catalog: objects, uploads and tags as rows of a sealed database. One file an
//! operation; how rows become records is in `tables`, how they are committed in `database`.

pub(crate) mod tables;

pub(crate) mod open;

pub(crate) mod counts;
pub(crate) mod delimiter;

pub(crate) mod versions;

pub(crate) mod finished_uploads;

pub(crate) mod objects;

pub(crate) mod copy;
pub(crate) mod listing;
pub(crate) mod read;
pub(crate) mod rewrap;
pub(crate) mod tags;
pub(crate) mod uploads;
pub(crate) mod walk;

pub(crate) mod verification;

pub(crate) mod open_uploads;
