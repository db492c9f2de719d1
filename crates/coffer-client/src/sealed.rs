//! Sealed transfer, as docs/SEALED-TRANSFER.md specifies it: what a server says over HTTPS, and
//! the sealed bytes that go over its data port. Asking over HTTPS is the caller's; so is what
//! becomes of the plaintext.
//!
//! Nothing here is async: one thread moves, opens and writes, which is the least work. Call it
//! where threads may wait.

mod error;

mod data_port;

mod answers;

mod announcement;
mod offer;

mod head;

mod stop;

mod lane;

mod receive;
mod send;

#[cfg(test)]
mod tests;

pub use self::announcement::{Announced, Announcement};
pub use self::error::SealedError;
pub use self::lane::Lane;
pub use self::offer::{Asked, Offer};
pub(crate) use self::stop::Stop;

/// On a request for an object: asks for sealed transfer, by [`SEALED`]. On an answer: says that it
/// is offered. On a commit: the ticket of what was sent.
pub const TRANSFER_HEADER: &str = "x-coffer-transfer";

/// The value of [`TRANSFER_HEADER`] that asks for sealed transfer, and offers it.
pub const SEALED: &str = "sealed";

/// How many bytes of plaintext a transfer is of.
pub const LENGTH_HEADER: &str = "x-coffer-transfer-length";

/// On the answer to HeadBucket: the [`VERSION`]s that the server speaks, where it does.
pub const SPOKEN_HEADER: &str = "x-coffer-sealed-transfer";

/// How an object is stored that came sealed and was not opened then: [`UNVERIFIED`], later
/// [`DAMAGED`] or nothing.
pub const STORED_HEADER: &str = "x-coffer-stored";

/// It waits to be opened.
pub const UNVERIFIED: &str = "unverified";

/// It did not open, or is not what was told.
pub const DAMAGED: &str = "damaged";

/// The query parameter of a POST that announces an object or a part.
pub const ANNOUNCE: &str = "coffer-transfer";

/// The version of the protocol.
pub const VERSION: u32 = 1;
