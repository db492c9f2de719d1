//! Cutting off at once whatever carries plaintext: the connections that a bucket or a subject was
//! asked by, and the requests of a subject.
//!
//! What decides that something is cut off is elsewhere: erases, expiry, changes of subjects.

mod connection_cutoff;

mod subject_cutoff;

pub use self::connection_cutoff::{ConnectionCutoff, Seat};
pub(crate) use self::connection_cutoff::{Connections, Holder};
pub(crate) use self::subject_cutoff::SubjectCutoff;
