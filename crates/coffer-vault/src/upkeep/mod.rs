//! What the server does by itself, in the background: order after a start, expiry of access keys,
//! what lifecycle rules end, holding how new everything is, and opening what was stored as it came.
//!
//! What a start does before anything is served is in `start`.

mod unverified;

mod recovery;

mod expiry;

mod hold_freshness;

mod lifecycle_run;

mod lifecycle;
