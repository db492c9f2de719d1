//! How requests to the API are read and answered: who calls, JSON that is strictly what it should
//! be, times, and every error. What is asked and answered is in `api`.

pub(crate) mod refusal;

pub(crate) mod strict_json;

pub(crate) mod json_lines;

pub(crate) mod caller;
