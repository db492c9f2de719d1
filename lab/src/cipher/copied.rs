//! The ceiling of every cipher: the bytes are read and written, and nothing is calculated.

use crate::cipher::{Cipher, Tag};
use crate::contender::{Contender, Placement};
use crate::error::Result;

pub(super) fn contender() -> Contender {
    Contender::new("none, a copy", Placement::None, "copy_from_slice").set(
        "each message into memory of the lab's own and back: what reading and writing it takes \
         within the caches, where messages lie",
    )
}

/// Room for the longest message. Memory costs something of its own when it is first touched.
const ROOM_BYTES: usize = 1 << 20;

/// What was copied; so it comes back from there.
struct Copied(Vec<u8>);

pub(super) fn begin() -> Box<dyn Cipher> {
    Box::new(Copied(vec![1; ROOM_BYTES]))
}

impl Cipher for Copied {
    fn encrypt(&mut self, _: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
        if self.0.len() < data.len() {
            self.0.resize(data.len(), 1);
        }
        self.0[..data.len()].copy_from_slice(std::hint::black_box(data));
        Ok(())
    }

    fn decrypt(&mut self, _: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
        // What no message was copied to stays as it is.
        if let Some(copied) = std::hint::black_box(&self.0).get(..data.len()) {
            data.copy_from_slice(copied);
        }
        Ok(())
    }
}
