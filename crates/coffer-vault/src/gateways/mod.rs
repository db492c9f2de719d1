//! Reads by gateways that do not serve: what they ask the one that does, until when they may
//! answer, and how that is taken back (`docs/decisions/0064-reads-by-gateways-that-follow.md`).
//!
//! A gateway that follows the log of an engine has states of it. For each read it asks, with a
//! question that is begun after the read came, how far all has come that the one that serves has
//! shown to anyone. Where its state is that far, the state answers; else the read is forwarded.
//!
//! Of what has not been changed for some seconds the answer *stands* for a moment: reads that come
//! within it are answered without another question, and the first change after it waits until it is
//! over (`docs/decisions/0068-answers-that-stand.md`).
//!
//! With the answer it may go on to answer for a while. Before it is acknowledged that something is
//! taken away (a key, a subject's access), all who may are *recalled*: they end what they answer,
//! and begin again with a state that does not have it, or their time is over.

mod question;

mod standing;

mod followers;

mod reads;

pub(crate) use self::followers::Followers;
pub(crate) use self::question::StandingAnswer;
pub use self::question::{ReadAnswer, ReadQuestion};
pub use self::reads::{AskedAt, FollowerReads, Position, ReadLease, Settling};
