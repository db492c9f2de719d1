//! Verifying the seals of all pages of a catalog.
//!
//! SQLCipher has a statement for it, `cipher_integrity_check`, but that can't be cut off, and in a
//! catalog of gigabytes an erase or a stop would wait for its end. What a seal is, is told in
//! `docs/FORMAT.md`, "Catalog".

use std::fs::File;
use std::num::NonZeroU32;
use std::os::unix::fs::FileExt;

use aws_lc_rs::{hmac, pbkdf2};
use coffer_seal::SecretKey;
use coffer_seal::limits::KEY_BYTES;
use zeroize::Zeroizing;

use crate::catalog::open::Catalog;
use crate::database::connections::Connections;
use crate::error::{Result, StoreError};
use crate::limits::{INTEGRITY_PAUSE, INTEGRITY_RETRIES, PAGE_BYTES, SEALS_AT_ONCE};

/// The salt stands at the head of the first page, where no code covers it: all codes depend on it.
const SALT_BYTES: usize = 16;

/// The code at a page's end: HMAC-SHA-256.
const CODE_BYTES: usize = 32;

/// What each byte of the salt is changed by to make another one of it.
const SALT_MASK: u8 = 0x3a;

const ITERATIONS: NonZeroU32 = NonZeroU32::new(2).expect("it is not zero");

/// The page that SQLite puts its locks on and never writes: the one at 1 GiB.
const LOCK_PAGE: u64 = (1 << 30) / PAGE_BYTES as u64 + 1;

impl Catalog {
    /// Verifies the seal of every page of the database file, after what the log has of them was
    /// copied there: a power cut may leave pages torn that the log makes whole. Others may read and
    /// write meanwhile; it is cut off when the catalog is closed.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    pub async fn check_integrity(&self) -> Result<()> {
        // Pages are read past the locks, so one may be met half-way through being written. Only
        // what does not verify again and again is damage.
        if let Ok(writer) = self.writer() {
            writer.copy_log().await;
        }
        let mut suspects = self.past(unsealed_pages).await?;
        for _ in 0..INTEGRITY_RETRIES {
            if suspects.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(INTEGRITY_PAUSE).await;
            let again = self.past(unsealed_pages).await?;
            suspects.retain(|page| again.binary_search(page).is_ok());
        }
        if suspects.is_empty() {
            Ok(())
        } else {
            Err(StoreError::damaged_catalog().of_bucket(self.bucket()))
        }
    }
}

/// The numbers of pages whose seals do not verify, ascending.
fn unsealed_pages(connections: &Connections) -> Result<Vec<u64>> {
    let page_bytes = PAGE_BYTES as usize;
    let path = connections.path();
    let failed = |error| StoreError::io("verify a database's pages", path, error);
    let file = File::open(path).map_err(failed)?;
    let length_bytes = file.metadata().map_err(failed)?.len();
    let page_count = length_bytes / u64::from(PAGE_BYTES);
    let mut unsealed = Vec::new();
    if page_count > 0 {
        let mut salt = [0; SALT_BYTES];
        file.read_exact_at(&mut salt, 0).map_err(failed)?;
        let seal = Seal::new(&connections.key()?, salt);
        let mut buffer = vec![0; SEALS_AT_ONCE as usize * page_bytes];
        for first in (1..=page_count).step_by(SEALS_AT_ONCE as usize) {
            if connections.is_closed() {
                return Err(StoreError::Closed);
            }
            let count = u64::from(SEALS_AT_ONCE).min(page_count + 1 - first) as usize;
            let pages = &mut buffer[..count * page_bytes];
            file.read_exact_at(pages, (first - 1) * u64::from(PAGE_BYTES))
                .map_err(failed)?;
            let numbered = (first..).zip(pages.chunks(page_bytes));
            let bad = numbered.filter(|(number, page)| !seal.verifies(*number, page));
            unsealed.extend(bad.map(|(number, _)| number));
        }
    }
    // A database has at least one page, and no half ones.
    if length_bytes == 0 || length_bytes % u64::from(PAGE_BYTES) > 0 {
        unsealed.push(page_count + 1);
    }
    Ok(unsealed)
}

struct Seal(hmac::Key);

impl Seal {
    fn new(key: &SecretKey, salt: [u8; SALT_BYTES]) -> Self {
        let salt = salt.map(|byte| byte ^ SALT_MASK);
        let mut code_key = Zeroizing::new([0; KEY_BYTES]);
        let hash = pbkdf2::PBKDF2_HMAC_SHA512;
        pbkdf2::derive(hash, ITERATIONS, &salt, key.expose(), &mut *code_key);
        Self(hmac::Key::new(hmac::HMAC_SHA256, &*code_key))
    }

    fn verifies(&self, number: u64, page: &[u8]) -> bool {
        let Ok(short) = u32::try_from(number) else {
            return false;
        };
        let (sealed, code) = page.split_at(page.len() - CODE_BYTES);
        let from = if number == 1 { SALT_BYTES } else { 0 };
        let mut hash = hmac::Context::with_key(&self.0);
        hash.update(&sealed[from..]);
        hash.update(&short.to_le_bytes());
        number == LOCK_PAGE || hash.sign().as_ref() == code
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// So many bytes of zeros, which take no space on the disk, take seconds to verify.
    const MANY_BYTES: u64 = 64 << 30;

    async fn checking() -> (
        tempfile::TempDir,
        Catalog,
        tokio::task::JoinHandle<Result<()>>,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let key = SecretKey::generate();
        let catalog = Catalog::create(dir.path(), &key, "b").await.unwrap();
        let path = dir.path().join(crate::CATALOG_FILE);
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(MANY_BYTES).unwrap();
        let check = tokio::spawn({
            let catalog = catalog.clone();
            async move { catalog.check_integrity().await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!check.is_finished());
        (dir, catalog, check)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_check_is_cut_off_when_the_catalog_is_given_up() {
        let (_dir, catalog, check) = checking().await;
        let begun = Instant::now();
        catalog.abandon().await;
        assert!(begun.elapsed() < Duration::from_secs(1));
        assert!(matches!(check.await.unwrap(), Err(StoreError::Closed)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_check_is_cut_off_when_the_catalog_is_closed() {
        let (_dir, catalog, check) = checking().await;
        let begun = Instant::now();
        catalog.close().await;
        assert!(begun.elapsed() < Duration::from_secs(1));
        assert!(matches!(check.await.unwrap(), Err(StoreError::Closed)));
    }
}
