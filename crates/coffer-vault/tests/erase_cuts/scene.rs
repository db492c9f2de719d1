//! A server with one level to keep and one to erase, and what a restart must find of them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coffer_audit::{Hash, Recorded};
use coffer_keys::receipt::{Receipt, What};
use coffer_keys::{ErasedWhat, LevelOptions};
use coffer_label::Label;
use coffer_vault::record::{Details, ObjectName, Precondition, Tags};
use coffer_vault::*;
use futures::TryStreamExt;

use crate::tape;

const LOCAL: Actor = Actor::Local { uid: 0 };
const KEPT: &[u8] = b"what stays";
const DOOMED: &[u8] = b"what goes";

/// What a restart finds of an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Found {
    NotBegun,
    Complete,
}

async fn open(data: &Path) -> Vault {
    let opened = Vault::open(VaultOptions::new(data)).await;
    opened.unwrap_or_else(|error| panic!("{}: {error:?}", data.display()))
}

fn bucket(name: &str) -> BucketName {
    BucketName::new(name).unwrap()
}

fn subject(vault: &Vault) -> Arc<Subject> {
    let text = fs::read_to_string(vault.data().join("credentials")).unwrap();
    let id = text.split("aws_access_key_id = ").nth(1).unwrap();
    vault.subject(id.lines().next().unwrap()).unwrap()
}

async fn put(vault: &Vault, in_bucket: &str, data: &'static [u8]) {
    let incoming = Incoming {
        declared_bytes: Some(data.len() as u64),
        digests: DigestPlan::default(),
        body: Box::pin(futures::stream::iter([Ok(Bytes::from_static(data))])),
        check: Box::new(|_| Ok(())),
        is_proven: true,
        arrived: None,
    };
    let put = PutObject {
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        name: ObjectName::new("object").unwrap(),
        details: Details::default(),
        tags: Tags::new(),
        precondition: Precondition::None,
        incoming,
    };
    let (subject, named) = (subject(vault), bucket(in_bucket));
    vault.put_object(&subject, &named, put).await.unwrap();
}

async fn read(vault: &Vault, in_bucket: &str) -> Result<Vec<u8>> {
    let (subject, named) = (subject(vault), bucket(in_bucket));
    let name = ObjectName::new("object").unwrap();
    let read = vault.read_object(&subject, &named, &name, ReadOptions::default());
    let pieces: Vec<Bytes> = read.await?.body.try_collect().await?;
    Ok(pieces.concat())
}

/// Makes the folder, and leaves it at rest.
pub(crate) async fn make(data: &Path) {
    let vault = open(data).await;
    let level = NewLevel {
        name: "doomed".into(),
        label: Label::LOWEST,
        options: LevelOptions::default(),
        may_share_label: true,
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    for (name, level, of_object) in [("kept", "default", KEPT), ("gone", "doomed", DOOMED)] {
        let (subject, named) = (subject(&vault), bucket(name));
        let made = vault.create_bucket(&subject, &named, Some(level));
        made.await.unwrap();
        put(&vault, name, of_object).await;
    }
    close(vault, data).await;
}

/// A start, an erase, and a stop. Whether it was acknowledged.
pub(crate) async fn start_and_erase(data: &Path, what: ErasedWhat) {
    let Ok(vault) = Vault::open(VaultOptions::new(data)).await else {
        return;
    };
    if erase(&vault, what).await.is_ok() {
        tape::tell();
    }
    close(vault, data).await;
}

async fn erase(vault: &Vault, what: ErasedWhat) -> Result<Receipt> {
    let asked = match what {
        ErasedWhat::Level => vault.erase_level(&LOCAL, "doomed").await,
        ErasedWhat::Bucket => vault.erase_bucket(&LOCAL, &bucket("gone")).await,
    };
    match asked? {
        GuardedOutcome::Erased(receipt) => Ok(*receipt),
        other => panic!("{other:?}: it takes no approval"),
    }
}

/// A start, an erase while the keystore takes nothing, and a stop. Whether it is asked for again
/// before that, when the keystore takes everything.
pub(crate) async fn start_and_fail_to_erase(data: &Path, what: ErasedWhat, is_asked_again: bool) {
    let vault = open(data).await;
    tape::refuse_file(Some("keystore"));
    for _ in 0..2 {
        let refused = erase(&vault, what).await;
        let is_unsettled = matches!(refused, Err(VaultError::EraseUnsettled { .. }));
        assert!(is_unsettled, "{refused:?}");
        let gone = read(&vault, "gone").await;
        assert!(matches!(gone, Err(VaultError::NoSuchBucket)), "{gone:?}");
    }
    tape::refuse_file(None);
    assert!(vault.receipts(&LOCAL, None).await.unwrap().is_empty());
    nothing_is_made_of_it(&vault, what).await;
    if is_asked_again {
        let receipt = erase(&vault, what).await.unwrap();
        check(&vault, &receipt, what).await;
        let again = erase(&vault, what).await;
        let is_gone = matches!(
            again,
            Err(VaultError::NoSuchLevel | VaultError::NoSuchBucket)
        );
        assert!(is_gone, "{again:?}");
        make_and_delete(&vault, "gone").await;
    }
    close(vault, data).await;
}

/// Its name is taken, and its level is there for nothing else.
async fn nothing_is_made_of_it(vault: &Vault, what: ErasedWhat) {
    let subject = subject(vault);
    let named = bucket("gone");
    let taken = vault.create_bucket(&subject, &named, None).await;
    assert!(matches!(taken, Err(VaultError::BucketAlreadyExists)));
    make_and_delete(vault, "more").await;
    if what == ErasedWhat::Level {
        let named = bucket("other");
        let made = vault.create_bucket(&subject, &named, Some("doomed")).await;
        assert!(matches!(made, Err(VaultError::NoSuchLevel)));
        let rotated = vault.rotate_level(&LOCAL, "doomed").await;
        assert!(matches!(rotated, Err(VaultError::NoSuchLevel)));
    }
}

async fn make_and_delete(vault: &Vault, name: &str) {
    let (subject, named) = (subject(vault), bucket(name));
    vault.create_bucket(&subject, &named, None).await.unwrap();
    vault.delete_bucket(&subject, &named).await.unwrap();
}

/// A start while the keystore takes nothing, and a stop: what is to be erased stays out of use.
pub(crate) async fn start_in_vain(data: &Path, what: ErasedWhat) {
    tape::refuse_file(Some("keystore"));
    let vault = open(data).await;
    let gone = read(&vault, "gone").await;
    assert!(matches!(gone, Err(VaultError::NoSuchBucket)), "{gone:?}");
    assert_eq!(read(&vault, "kept").await.unwrap(), KEPT);
    let refused = erase(&vault, what).await;
    let is_unsettled = matches!(refused, Err(VaultError::EraseUnsettled { .. }));
    assert!(is_unsettled, "{refused:?}");
    tape::refuse_file(None);
    make_and_delete(&vault, "more").await;
    close(vault, data).await;
}

/// A start and a stop.
pub(crate) async fn start(data: &Path) {
    if let Ok(vault) = Vault::open(VaultOptions::new(data)).await {
        close(vault, data).await;
    }
}

/// Closes the vault, and waits until its last file is closed.
async fn close(vault: Vault, data: &Path) {
    vault.close().await;
    drop(vault);
    let lock = fs::File::open(data.join("lock")).unwrap();
    while lock.try_lock().is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Whether the root key as it was `before` is there, which opens older copies of the keystore.
pub(crate) fn holds_the_old_root_key(before: &Path, data: &Path) -> bool {
    let [old, now] = [before, data].map(|folder| fs::read(folder.join("root.key")).unwrap());
    now.windows(old.len()).any(|piece| piece == old)
}

/// Looks at what a restart finds, which is all or nothing.
pub(crate) async fn look(data: &Path, what: ErasedWhat, before: &Path) -> Found {
    let vault = open(data).await;
    assert_eq!(read(&vault, "kept").await.unwrap(), KEPT);
    let receipts = vault.receipts(&LOCAL, None).await.unwrap();
    let found = match read(&vault, "gone").await {
        Ok(data) => {
            assert_eq!(data, DOOMED);
            assert!(receipts.is_empty(), "nothing was erased");
            Found::NotBegun
        }
        Err(VaultError::NoSuchBucket) => {
            assert_eq!(receipts.len(), 1);
            let receipt = vault.receipt(&LOCAL, &receipts[0].id).await.unwrap();
            check(&vault, &receipt, what).await;
            Found::Complete
        }
        Err(error) => panic!("{error:?}"),
    };
    let levels = vault.levels(&LOCAL).await.unwrap().len();
    let expected = match (found, what) {
        (Found::Complete, ErasedWhat::Level) => 1,
        _ => 2,
    };
    assert_eq!(levels, expected);
    let report = vault.verify_audit(&LOCAL, None).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    if found == Found::NotBegun {
        // Asked for again, it happens.
        let receipt = erase(&vault, what).await.unwrap();
        check(&vault, &receipt, what).await;
    }
    only_one_folder_is_left(data).await;
    vault.close().await;
    assert!(!holds_the_old_root_key(before, data));
    found
}

async fn check(vault: &Vault, receipt: &Receipt, what: ErasedWhat) {
    let key = vault.receipt_public_key().unwrap();
    receipt.verify(&key).unwrap();
    // A catalog whose opening was refused could not be counted, and the receipt says so.
    let says_uncounted = |line: &String| line.contains("had not been counted");
    let is_uncounted = receipt.verification.iter().any(says_uncounted);
    let expected = if is_uncounted { (0, 0) } else { (1, 9) };
    assert_eq!((receipt.erased.objects, receipt.erased.bytes), expected);
    assert_eq!(receipt.erased.buckets[0].name.as_deref(), Some("gone"));
    let told = match what {
        ErasedWhat::Level => What::Level,
        ErasedWhat::Bucket => What::Bucket,
    };
    assert_eq!(receipt.erased.what, told);
    // What it says of the audit log stands there.
    let last = receipt.last_audit_record.as_ref().unwrap();
    let wanted = Recorded {
        sequence: last.number,
        hash: Hash::from_hex(&last.hash).unwrap(),
    };
    let report = vault.verify_audit(&LOCAL, Some(wanted)).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

/// The erased bucket's goes in the background.
async fn only_one_folder_is_left(data: &Path) {
    for _ in 0..500 {
        if fs::read_dir(data.join("buckets")).unwrap().count() == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("the erased bucket's folder stays");
}
