//! The calls to SQLCipher that rusqlite has no safe form of.

#![allow(unsafe_code)]

use coffer_seal::SecretKey;
use rusqlite::{Connection, ffi};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::error::{Result, StoreError};

/// `x'`, 64 hexadecimal digits of the key, 32 of the salt, `'`: SQLCipher then takes the key as it
/// is and derives nothing. Without the salt, it takes the one that the file begins with.
const RAW_KEY_BYTES: usize = 2 + 64 + 32 + 1;

/// The length of a salt, in bytes.
const SALT_BYTES: usize = 16;

/// What a database's salt is derived with from its key.
const SALT_LABEL: &[u8] = b"coffer database salt v1\0";

/// Which salt a database has: its pages are authenticated with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Salt {
    /// One that follows from the key. The file's first sector is written with every checkpoint that
    /// has the first page, so a power cut may leave it in ruins; the log has the page then, which
    /// opens only with a salt that is known from elsewhere.
    OfKey,
    /// The one that the file begins with: databases of before had a random one.
    Stored,
}

/// Hands the key to SQLCipher: the first thing to be done with a connection.
///
/// Through the C function, for a `PRAGMA key` would leave the key in the text of a statement,
/// which is not zeroized. SQLCipher keeps its own copy masked, in locked memory.
pub(crate) fn set_key(connection: &Connection, key: &SecretKey, salt: Salt) -> Result<()> {
    let raw = raw_key(key, salt);
    let length_bytes = raw.len() as i32;
    // SAFETY: the handle is that of an open connection, which outlives the call and is used by
    // this thread alone (`&Connection` is not `Sync`). The pointer is valid for the length given;
    // SQLCipher copies the bytes before it returns.
    let code = unsafe { ffi::sqlite3_key(connection.handle(), raw.as_ptr().cast(), length_bytes) };
    if code == ffi::SQLITE_OK {
        Ok(())
    } else {
        Err(StoreError::Database { code, path: None })
    }
}

/// Bounds what all connections of this process hold in memory. The library is built such that page
/// caches are one pool, from which the least recently used page goes first.
pub(crate) fn limit_memory(limit_bytes: u32) {
    // SAFETY: may be called at any time by any thread.
    unsafe { ffi::sqlite3_soft_heap_limit64(i64::from(limit_bytes)) };
}

/// How many pages the connection has had to read and open so far, for its cache did not have them.
pub(crate) fn pages_opened(connection: &Connection) -> i32 {
    let (mut count, mut highest) = (0, 0);
    // SAFETY: the handle is that of an open connection, used by this thread alone; the function
    // writes two integers through pointers that are valid for the call.
    let code = unsafe {
        ffi::sqlite3_db_status(
            connection.handle(),
            ffi::SQLITE_DBSTATUS_CACHE_MISS,
            &mut count,
            &mut highest,
            0,
        )
    };
    debug_assert_eq!(code, ffi::SQLITE_OK, "it fails for wrong arguments only");
    count
}

/// What the system's last error says of a disk that takes no writes.
pub(crate) fn refused_by_disk(connection: &Connection) -> Option<StoreError> {
    // 0 where the system refused nothing, which is no error number.
    let number = Some(system_errno(connection)).filter(|number| *number > 0)?;
    match Errno::from_raw_os_error(number) {
        Errno::NOSPC | Errno::DQUOT => Some(StoreError::Full),
        Errno::ROFS => Some(StoreError::DiskReadOnly),
        _ => None,
    }
}

/// What the system said when the connection's last call failed: an `errno`, or 0.
fn system_errno(connection: &Connection) -> i32 {
    // SAFETY: the handle is that of an open connection, used by this thread alone; the function
    // only reads a field of it.
    unsafe { ffi::sqlite3_system_errno(connection.handle()) }
}

fn raw_key(key: &SecretKey, salt: Salt) -> Zeroizing<Vec<u8>> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // At its full length at once, so that no part of it is left where it grew from.
    let mut raw = Zeroizing::new(Vec::with_capacity(RAW_KEY_BYTES));
    raw.extend_from_slice(b"x'");
    let mut digits = |bytes: &[u8]| {
        for byte in bytes {
            raw.push(DIGITS[usize::from(byte >> 4)]);
            raw.push(DIGITS[usize::from(byte & 15)]);
        }
    };
    digits(key.expose());
    if salt == Salt::OfKey {
        digits(&key.derive(SALT_LABEL).expose()[..SALT_BYTES]);
    }
    raw.push(b'\'');
    raw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_key_is_the_form_that_sqlcipher_takes_as_it_is() {
        let mut bytes = [0; 32];
        bytes[0] = 0x0f;
        bytes[31] = 0xa5;
        let key = SecretKey::from_bytes(bytes);
        let text = |salt| String::from_utf8(raw_key(&key, salt).to_vec()).unwrap();
        let digits = format!("0f{}a5", "00".repeat(30));
        assert_eq!(text(Salt::Stored), format!("x'{digits}'"));
        let salted = text(Salt::OfKey);
        assert!(salted.starts_with(&format!("x'{digits}")));
        assert_eq!(salted.len(), RAW_KEY_BYTES);
    }
}
