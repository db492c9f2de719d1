//! What the log lies on.

use std::io;

/// A folder of files; in tests also one that fails.
pub(crate) trait Disk: Send {
    /// The names of its files.
    fn names(&self) -> io::Result<Vec<String>>;

    /// A file's length.
    fn length_bytes(&self, name: &str) -> io::Result<u64>;

    /// Up to `length_bytes` at the offset: fewer only at the end.
    fn read(&self, name: &str, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>>;

    /// Writes all of it into a file that is there.
    fn write(&mut self, name: &str, offset_bytes: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts off what lies behind.
    fn truncate(&mut self, name: &str, length_bytes: u64) -> io::Result<()>;

    /// Makes all changes of a file durable.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Durably removes a file, if it is there.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Durably makes a file of this content, in place of another one of the name if there is one:
    /// whole, or not at all.
    fn place(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
}
