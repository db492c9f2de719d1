//! Cross-origin resource sharing: which pages of other origins a browser lets use a bucket (Fetch
//! Standard, section 3.2; Amazon S3 User Guide, "Using cross-origin resource sharing").
//!
//! Rules are kept by the vault as a document of the bucket. What stands here reads and matches
//! them, answers the requests that browsers send ahead, and adds headers to answers. Who may set
//! rules is the vault's to say.

pub(crate) mod rules;

pub(crate) mod answers;
