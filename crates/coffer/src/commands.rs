//! What commands ask of a running server, a module for each noun: how it is typed, what is asked,
//! how the answer is shown.

pub mod table;

pub mod export;

pub mod asked;

pub mod rotation;

pub mod level;

pub mod bucket;

pub mod subject_args;

pub mod subject;

pub mod key;

pub mod request;

pub mod keystore;

pub mod receipt;

pub mod audit_wanted;

pub mod audit_prune;

pub mod audit;
