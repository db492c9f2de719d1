//! What the keystore and root-key files lie on.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, fadvise};

use crate::limits::SLOT_BYTES;

/// A file that is changed in place; in tests also one that fails.
pub(crate) trait Medium: Send {
    /// The room of each of the keystore's copies; less in tests, which open thousands of them.
    fn slot_bytes(&self) -> usize {
        SLOT_BYTES
    }

    /// Up to `length_bytes` at the offset: fewer only at the end.
    fn read(&self, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>>;

    /// Writes all of it.
    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts off what lies behind.
    fn truncate(&mut self, length_bytes: u64) -> io::Result<()>;

    /// Makes all changes durable. What is read afterwards comes from the medium where that can be
    /// arranged, and not from a cache of what was written.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn read(&self, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length_bytes];
        let mut filled_bytes = 0;
        while filled_bytes < length_bytes {
            let rest = &mut bytes[filled_bytes..];
            match self.read_at(rest, offset_bytes + filled_bytes as u64) {
                Ok(0) => break,
                Ok(read_bytes) => filled_bytes += read_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled_bytes);
        Ok(bytes)
    }

    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset_bytes)
    }

    fn truncate(&mut self, length_bytes: u64) -> io::Result<()> {
        self.set_len(length_bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        let synced = self.sync_all();
        // Written pages are clean now and may go; if they stay, reading back proves less, which
        // is no reason to fail. After an error, too: Linux takes them for written then, and would
        // go on to show what the disk does not have.
        let _ = fadvise(&*self, 0, None, Advice::DontNeed);
        synced
    }
}
