//! Damaged pages.

use std::os::unix::fs::FileExt;

use coffer_audit::{Hash, Recorded};
use coffer_seal::{BucketId, RequestId, SecretKey};

use super::*;

const PAGE_BYTES: u64 = 4096;

/// Each page in turn: what does not need it works, and at once.
#[test]
fn a_damaged_page_stops_only_what_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("system.db");
    let key = SecretKey::from_bytes([0x0d; 32]);
    let anchor = Recorded {
        sequence: 1,
        hash: Hash([7; 32]),
    };
    let system = System::open(&path, &key).unwrap();
    for id in 0..40_u8 {
        let text = "x".repeat(300);
        system
            .keep(Kind::Request, RequestId([id; 16]).into(), &text)
            .unwrap();
        system.doom(BucketId([id; 16])).unwrap();
    }
    drop(system);
    let whole = std::fs::read(&path).unwrap();
    let page_count = whole.len() as u64 / PAGE_BYTES;
    let (mut anchored_count, mut doomed_count, mut listed_count) = (0, 0, 0);
    for page in 1..page_count {
        std::fs::write(&path, &whole).unwrap();
        let system = System::open(&path, &key).unwrap();
        // As for a server that runs: the pages are not in memory any more.
        system.reopen();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let at = page * PAGE_BYTES + 100;
        file.write_all_at(&[whole[at as usize] ^ 1], at).unwrap();
        for _ in 0..2 {
            anchored_count += usize::from(system.set_audit_anchor(&anchor).is_ok());
            doomed_count += usize::from(system.doom(BucketId([99; 16])).is_ok());
            listed_count += usize::from(system.documents::<String>(Kind::Request).is_ok());
        }
        drop(system);
        let _ = std::fs::remove_file(dir.path().join("system.db-wal"));
    }
    // All but the pages of their own tables (and of their indexes).
    let tries = 2 * (page_count as usize - 1);
    assert!(
        anchored_count >= tries - 2 * 3,
        "{anchored_count} of {tries}"
    );
    assert!(doomed_count >= tries - 2, "{doomed_count} of {tries}");
    assert!(listed_count >= tries - 2 * 6, "{listed_count} of {tries}");
    assert!(listed_count < tries, "it was damaged at all");
}

/// The plaintext of a page: AES-256-CBC, each block on its own and what stands before it.
fn plaintext(page: &[u8], key: &SecretKey) -> Vec<u8> {
    use aws_lc_rs::cipher::{AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
    let key = UnboundCipherKey::new(&AES_256, key.expose()).unwrap();
    let mut opened = page[..4048].to_vec();
    let ecb = DecryptingKey::ecb(key).unwrap();
    ecb.decrypt(&mut opened, DecryptionContext::None).unwrap();
    let before = page[4048..4064].iter().chain(&page[..4032]);
    for (byte, mask) in opened.iter_mut().zip(before) {
        *byte ^= mask;
    }
    opened
}

/// SQLite moves rows from page to page. Were copies of them left behind where a page then ends,
/// they would stay there when the row is deleted.
#[test]
fn rows_that_move_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("system.db");
    let key = SecretKey::from_bytes([0x0d; 32]);
    let system = System::open(&path, &key).unwrap();
    for number in 0..=255_u8 {
        let id = RequestId([number.wrapping_mul(101); 16]);
        let text = "x".repeat(60 + usize::from(number) % 80);
        system.keep(Kind::Request, id.into(), &text).unwrap();
    }
    // The log goes with the last connection.
    drop(system);
    let file = std::fs::read(&path).unwrap();
    let mut gaps_count = 0;
    // Page 1 is laid out otherwise: it begins with the salt, and its list of cells stands behind
    // the header of the file. It holds the schema, and none of the rows.
    for page in file.chunks_exact(PAGE_BYTES as usize).skip(1) {
        let page = plaintext(page, &key);
        let word = |at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
        let list = match page[0] {
            2 | 5 => 12,
            10 | 13 => 8,
            _ => continue,
        };
        let gap = &page[list + 2 * word(3)..word(5)];
        assert!(gap.iter().all(|byte| *byte == 0));
        gaps_count += usize::from(!gap.is_empty());
    }
    assert!(gaps_count > 20, "{gaps_count} pages were looked at");
}
