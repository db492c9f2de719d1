//! The seam: a folder and its files, as far as anything durable needs them.

use std::io;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading only, which works on a file system that takes no changes.
    Read,
    /// Reading and changing.
    Write,
}

/// A folder. A name is durable, or gone for good, once [`Disk::sync_names`] returned.
pub trait Disk: Send + Sync {
    /// The names of its files.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file that is there.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Up to `length_bytes` of a file at the offset: fewer only at the end.
    fn read(&self, name: &str, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        self.open(name, Access::Read)?
            .read(offset_bytes, length_bytes)
    }

    /// A file's length.
    fn length_bytes(&self, name: &str) -> io::Result<u64> {
        self.open(name, Access::Read)?.length_bytes()
    }

    /// Makes an empty file that only its owner may read; [`io::ErrorKind::AlreadyExists`] when
    /// there is one.
    fn create_new(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, which another file may have had.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Gives a file another name; [`io::ErrorKind::AlreadyExists`] when that is taken.
    fn rename_to_new(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names as they are now durable.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file, which stays the same file whatever becomes of its name.
pub trait DiskFile: Send {
    /// Its length.
    fn length_bytes(&self) -> io::Result<u64>;

    /// Its permissions, as chmod(2) counts them.
    fn mode(&self) -> io::Result<u32>;

    /// Another handle to the same file.
    fn again(&self) -> io::Result<Box<dyn DiskFile>>;

    /// Up to `length_bytes` at the offset: fewer only at the end.
    fn read(&self, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>>;

    /// Writes all of it.
    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts off what lies behind, or adds zeros.
    fn set_length(&mut self, length_bytes: u64) -> io::Result<()>;

    /// Makes content and length durable. After an error nothing is known of what was written since
    /// the sync before, and another sync proves nothing.
    fn sync(&mut self) -> io::Result<()>;

    /// Lets what is read afterwards come from the disk where that can be arranged, and not from a
    /// cache of what was written.
    fn drop_cache(&self);
}
