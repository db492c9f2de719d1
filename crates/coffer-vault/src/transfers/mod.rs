//! Sealed transfers under way: tickets, what each stands for, and what ends them
//! (docs/SEALED-TRANSFER.md).
//!
//! What is released and taken in, and who may ask for it, is in `objects`.

mod ticket;

mod offer;

mod seats;

mod waiting;

mod allowed;

mod unverified;

mod table;

mod sending;

mod receiving;

pub(crate) use self::allowed::HasRight;
pub use self::offer::DataPort;
pub use self::receiving::{Arrival, NotTaken};
pub(crate) use self::seats::Seat;
pub use self::sending::Sending;
pub(crate) use self::table::Transfers;
pub use self::ticket::{NoSuchTransfer, Ticket};
pub(crate) use self::unverified::{Awaited, Found, Unverified, Verdict};
pub(crate) use self::waiting::{Arrived, ArrivedAs, Asker, WaitingArrival, WaitingSend};
