//! The calls to SQLCipher that rusqlite has no safe form of. All `unsafe` of the crate is here.

#![allow(unsafe_code)]

use coffer_seal::SecretKey;
use rusqlite::{Connection, ffi};
use zeroize::Zeroizing;

use crate::error::{Result, StoreError};

/// `x'`, 64 hexadecimal digits, `'`: SQLCipher then takes the key as it is and derives nothing.
const RAW_KEY_BYTES: usize = 2 + 64 + 1;

/// Hands the key to SQLCipher: the first thing to be done with a connection.
///
/// Through the C function, for a `PRAGMA key` would leave the key in the text of a statement,
/// which nobody zeroizes. SQLCipher keeps its own copy masked, in locked memory.
pub(crate) fn set_key(connection: &Connection, key: &SecretKey) -> Result<()> {
    let raw = raw_key(key);
    // SAFETY: the handle is that of an open connection, which outlives the call and is used by
    // this thread alone (`&Connection` is not `Sync`). The pointer is valid for the length given;
    // SQLCipher copies the bytes before it returns.
    let code = unsafe {
        ffi::sqlite3_key(
            connection.handle(),
            raw.as_ptr().cast(),
            RAW_KEY_BYTES as i32,
        )
    };
    if code == ffi::SQLITE_OK {
        Ok(())
    } else {
        Err(StoreError::Database { code })
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

/// What the system said when the connection's last call failed: an `errno`, or 0.
pub(crate) fn system_errno(connection: &Connection) -> i32 {
    // SAFETY: the handle is that of an open connection, used by this thread alone; the function
    // only reads a field of it.
    unsafe { ffi::sqlite3_system_errno(connection.handle()) }
}

fn raw_key(key: &SecretKey) -> Zeroizing<[u8; RAW_KEY_BYTES]> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut raw = Zeroizing::new([0; RAW_KEY_BYTES]);
    raw[..2].copy_from_slice(b"x'");
    for (pair, byte) in raw[2..66].chunks_exact_mut(2).zip(key.expose()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    raw[66] = b'\'';
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
        let raw = raw_key(&SecretKey::from_bytes(bytes));
        let text = std::str::from_utf8(raw.as_slice()).unwrap();
        assert_eq!(text, format!("x'0f{}a5'", "00".repeat(30)));
    }
}
