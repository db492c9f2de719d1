//! Tickets: what a client presents at the data port for one transfer.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coffer_seal::random_bytes;
use zeroize::Zeroizing;

use crate::limits::TICKET_BYTES;

/// What stands for one transfer, once. It can't be guessed, and says nothing of what it stands for.
pub struct Ticket(Zeroizing<[u8; TICKET_BYTES]>);

/// There is no such transfer: its ticket is unknown, was used, has expired or is no good any more.
/// Which of these, is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such transfer, or it is over")]
pub struct NoSuchTransfer;

/// What a table knows a ticket by: looking it up takes a time that tells nothing of others.
pub(super) type TicketDigest = [u8; 32];

impl Ticket {
    pub(crate) fn random() -> Self {
        Self(Zeroizing::new(random_bytes()))
    }

    /// A ticket as it is written; none where the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = Zeroizing::new([0; TICKET_BYTES]);
        let decoded = URL_SAFE_NO_PAD.decode_slice(text, bytes.as_mut_slice());
        (decoded == Ok(TICKET_BYTES)).then_some(Self(bytes))
    }

    /// The ticket as it is written: 43 characters of Base64 for URLs.
    pub fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(self.0.as_slice()))
    }

    pub(super) fn digest(&self) -> TicketDigest {
        let mut digested = TicketDigest::default();
        digested.copy_from_slice(digest(&SHA256, self.0.as_slice()).as_ref());
        digested
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_written_and_read_in_one_way_only() {
        let ticket = Ticket::random();
        let text = ticket.expose();
        assert_eq!(text.len(), 43);
        let read = Ticket::parse(&text).unwrap();
        assert_eq!(read.digest(), ticket.digest());
        assert_ne!(Ticket::random().digest(), ticket.digest());
        assert!(!format!("{ticket:?}").contains(text.as_str()));
        // The last character has bits that belong to no byte: those must be zero.
        let other = format!("{}B", "A".repeat(42));
        for wrong in [
            "",
            &text[..42],
            &format!("{}=", *text),
            "ä".repeat(30).as_str(),
            &other,
        ] {
            assert!(Ticket::parse(wrong).is_none(), "{wrong}");
        }
    }
}
