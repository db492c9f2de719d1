//! What SQLite leaves behind in the gaps of its pages, zeroized before a page is sealed.
//!
//! A page of a b-tree has its cells at its end, a list of where they are at its beginning, and a
//! gap between. `secure_delete` zeroizes what is deleted. But when SQLite balances a tree and cells
//! move to a page beside, their bytes stay behind in what becomes gap; and when a row is deleted
//! later, it is deleted where it is, not where it was. Nothing reads a gap: so SQLCipher is handed,
//! of each page that it seals, a copy whose gap is zeros. Neither log nor database ever have more.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

use rusqlite::{Connection, ffi};

use crate::limits::{GAPS_PAGES_MAX, PAGE_BYTES};

/// What of a page SQLite uses: behind it stand initialization vector and code.
const USED_BYTES: usize = PAGE_BYTES as usize - 48;

static ZEROS: [u8; USED_BYTES] = [0; USED_BYTES];

/// What SQLCipher calls to seal and to open.
type Cipher = unsafe extern "C" fn(
    context: *mut c_void,
    mode: c_int,
    key: *const c_uchar,
    key_bytes: c_int,
    iv: *const c_uchar,
    input: *const c_uchar,
    input_bytes: c_int,
    output: *mut c_uchar,
) -> c_int;

/// The mode that seals.
const SEAL: c_int = 1;

/// SQLCipher's `sqlcipher_provider` as far as it is used: functions, of which the eighth is the
/// cipher. A test holds the version that this was compared with.
#[repr(C)]
struct Provider {
    others: [*const c_void; 7],
    cipher: Cipher,
}

unsafe extern "C" {
    /// "This will allow an application to fetch the current registered provider and make minor
    /// changes to it."
    fn sqlcipher_get_provider() -> *mut Provider;
}

static CIPHER: OnceLock<Cipher> = OnceLock::new();

thread_local! {
    static ARE_ZEROIZED: Cell<bool> = const { Cell::new(false) };
}

/// As long as it lives, pages that this thread seals have zeros in their gaps.
#[must_use]
pub struct ZeroizedGaps(PhantomData<*const ()>);

impl ZeroizedGaps {
    /// For a transaction that has begun on `connection`, until it has ended. Databases of 124 GiB
    /// and more keep their gaps: from 128 GiB on, numbers of pages begin with bytes that kinds of
    /// b-tree pages begin with, and pages of long values begin with numbers of pages.
    pub fn of(connection: &Connection) -> Self {
        let count = connection
            .prepare_cached("PRAGMA page_count")
            .and_then(|mut statement| statement.query_row((), |row| row.get::<_, u32>(0)));
        // Where it can't be told, the transaction fails as well.
        ARE_ZEROIZED.set(count.is_ok_and(|count| count < GAPS_PAGES_MAX));
        Self(PhantomData)
    }
}

impl Drop for ZeroizedGaps {
    fn drop(&mut self) {
        ARE_ZEROIZED.set(false);
    }
}

/// Has SQLCipher zeroize gaps, in all databases of the process, where [`ZeroizedGaps`] are asked
/// for. To be called once, before the first database is opened.
pub(crate) fn let_gaps_be_zeroized() {
    // SAFETY: it may be called at any time; SQLCipher registers its provider in it.
    let code = unsafe { ffi::sqlite3_initialize() };
    assert_eq!(code, ffi::SQLITE_OK, "SQLite starts");
    // SAFETY: the provider is SQLCipher's own and lives as long as the process. It is a struct of
    // pointers to functions that begins as `Provider` does. No database is open, so nothing else
    // uses it; what it gets keeps to what SQLCipher asks of it.
    unsafe {
        let provider = sqlcipher_get_provider();
        assert!(!provider.is_null(), "SQLCipher has a provider");
        if CIPHER.set((*provider).cipher).is_ok() {
            (*provider).cipher = cipher;
        }
    }
}

/// SQLCipher calls it to seal and to open a page.
unsafe extern "C" fn cipher(
    context: *mut c_void,
    mode: c_int,
    key: *const c_uchar,
    key_bytes: c_int,
    iv: *const c_uchar,
    input: *const c_uchar,
    input_bytes: c_int,
    output: *mut c_uchar,
) -> c_int {
    let Some(of_provider) = CIPHER.get() else {
        return ffi::SQLITE_ERROR; // it is set before SQLCipher knows of this function
    };
    let is_page = mode == SEAL && usize::try_from(input_bytes) == Ok(USED_BYTES);
    let clean = if is_page && ARE_ZEROIZED.get() {
        // SAFETY: SQLCipher hands in a page of so many bytes, which nothing changes meanwhile.
        let page = unsafe { &*input.cast::<[u8; USED_BYTES]>() };
        without_gap(page)
    } else {
        None
    };
    let input = clean.as_ref().map_or(input, |page| page.as_ptr());
    // SAFETY: the arguments are those that SQLCipher has for this function; where the page is
    // another one, it is as long, and lives until the function returns, which is when it is done
    // with it.
    unsafe {
        of_provider(
            context,
            mode,
            key,
            key_bytes,
            iv,
            input,
            input_bytes,
            output,
        )
    }
}

/// The page with zeros in its gap, where it has others. On the heap, which is zeroized when freed.
fn without_gap(page: &[u8; USED_BYTES]) -> Option<Vec<u8>> {
    // Compared as a whole, which takes a tenth of the time that byte after byte takes.
    let gap = gap_of(page).filter(|gap| page[gap.clone()] != ZEROS[..gap.len()])?;
    let mut clean = page.to_vec();
    clean[gap].fill(0);
    Some(clean)
}

/// Where the gap of a b-tree page is (SQLite, "Database File Format", section 1.6). None has pages
/// of other kinds, which begin with the number of a page, in big-endian order, that is below
/// [`GAPS_PAGES_MAX`], or 0. The first page, which holds the schema alone, is shorter.
fn gap_of(page: &[u8; USED_BYTES]) -> Option<Range<usize>> {
    let list = match page[0] {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    let word = |at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    let gap = list + 2 * word(3)..word(5);
    (gap.start <= gap.end && gap.end <= USED_BYTES).then_some(gap)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;

    /// A leaf with two cells, of which the first is at 4,000, and old bytes everywhere.
    fn leaf() -> [u8; USED_BYTES] {
        let mut page = [0xee; USED_BYTES];
        page[..8].copy_from_slice(&[13, 0, 0, 0, 2, 0x0f, 0xa0, 0]);
        page
    }

    #[test]
    fn of_a_page_of_a_tree_the_gap_and_nothing_else_is_zeroized() {
        for (kind, list) in [(2, 12), (5, 12), (10, 8), (13, 8)] {
            let mut page = leaf();
            page[0] = kind;
            let clean = without_gap(&page).unwrap();
            assert_eq!(clean[..list + 4], page[..list + 4]);
            assert!(clean[list + 4..4_000].iter().all(|byte| *byte == 0));
            assert_eq!(clean[4_000..], page[4_000..]);
            let clean = clean.try_into().unwrap();
            assert!(without_gap(&clean).is_none(), "there is nothing left to do");
        }
    }

    #[test]
    fn other_pages_stay_as_they_are() {
        for number in [0, 1, GAPS_PAGES_MAX, 0x01ff_ffff] {
            let mut page = leaf();
            page[..4].copy_from_slice(&number.to_be_bytes());
            assert!(without_gap(&page).is_none(), "of a long value");
        }
        let mut full = leaf();
        full[5..7].copy_from_slice(&12_u16.to_be_bytes());
        assert!(without_gap(&full).is_none(), "it has no gap");
        for bytes in [[0xff, 0xff, 0x0f, 0xa0], [0, 2, 0x0f, 0xd1], [0, 2, 0, 0]] {
            let mut damaged = leaf();
            damaged[3..7].copy_from_slice(&bytes);
            assert!(without_gap(&damaged).is_none());
        }
    }

    /// Another version's provider may have another shape: compare `sqlcipher_provider` in its
    /// `sqlite3.c` with [`Provider`], and only then change the version here.
    #[test]
    fn the_provider_has_the_shape_of_this_version() {
        let connection = Connection::open_in_memory().unwrap();
        let version = connection
            .query_row("PRAGMA cipher_version", (), |row| row.get::<_, String>(0))
            .unwrap();
        assert_eq!(version, "4.10.0 community");
    }
}
