//! One request under way: its ids, its context, who signed it, and its body from the connection to
//! the vault. What it asks for is in `parameters` and `operations`.

pub(crate) mod ids;

pub(crate) mod memory_budget;

pub(crate) mod answer_room;

pub(crate) mod aws_chunked;

pub(crate) mod signed;

pub(crate) mod echo;

pub(crate) mod head_size;

pub(crate) mod context;

pub(crate) mod asked;

pub(crate) mod drain;

pub(crate) mod body;

pub(crate) mod caller;

pub(crate) mod bucket_document;

pub(crate) mod incoming;
