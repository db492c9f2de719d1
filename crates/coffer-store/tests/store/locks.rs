//! Locks: what they keep from being deleted, and what is known of them all.

use coffer_store::lock::{
    ChangedLock, Lock, LockChange, LockTest, Locked, Retention, RetentionMode,
};
use coffer_store::record::Precondition;
use coffer_store::version::{Absent, VersionId, Versioning, Which};
use coffer_store::{Catalog, Deletion, StoreError};

use crate::fixture::{Bucket, gone, inline, name, read};

fn at(now_ms: i64, bypasses_governance: bool) -> LockTest {
    LockTest {
        now_ms,
        bypasses_governance,
    }
}

fn until(mode: RetentionMode, until_ms: i64) -> Lock {
    Lock {
        retention: Some(Retention { mode, until_ms }),
        ..Lock::default()
    }
}

async fn put(catalog: &Catalog, object: &str, lock: Lock) -> VersionId {
    let mut object = inline(object, b"kept");
    object.lock = lock;
    catalog
        .put(object, Precondition::None)
        .await
        .unwrap()
        .version
}

fn deletion(version: VersionId, test: LockTest) -> Deletion {
    Deletion {
        which: Which::Version(version),
        test,
        ..gone(&name("a"), Precondition::None)
    }
}

async fn delete(catalog: &Catalog, version: VersionId, test: LockTest) -> Result<bool, StoreError> {
    let deleted = catalog.delete(deletion(version, test)).await;
    deleted.map(|deleted| deleted.existed)
}

#[tokio::test]
async fn a_locked_version_stays_and_a_marker_hides_it() {
    let mut bucket = Bucket::new().await;
    bucket
        .catalog
        .set_versioning(Versioning::Enabled)
        .await
        .unwrap();
    let compliance = put(&bucket.catalog, "a", until(RetentionMode::Compliance, 100)).await;
    let governance = put(&bucket.catalog, "a", until(RetentionMode::Governance, 200)).await;
    bucket.reopen().await;
    let catalog = &bucket.catalog;
    for version in [compliance, governance] {
        let refused = delete(catalog, version, at(99, false)).await;
        assert!(matches!(refused, Err(StoreError::Locked)));
    }
    let many = vec![
        deletion(compliance, at(99, true)),
        deletion(governance, at(99, false)),
    ];
    let outcomes = catalog.delete_many(many).await.unwrap();
    assert!(
        outcomes
            .iter()
            .all(|one| matches!(one, Err(StoreError::Locked)))
    );
    // A marker is a version more, and has no lock.
    let marked = catalog
        .delete(gone(&name("a"), Precondition::None))
        .await
        .unwrap();
    assert!(
        delete(catalog, marked.marker.unwrap(), at(0, false))
            .await
            .unwrap()
    );
    assert!(delete(catalog, governance, at(99, true)).await.unwrap());
    assert!(delete(catalog, compliance, at(100, false)).await.unwrap());
}

#[tokio::test]
async fn all_locks_of_a_bucket_are_known_together() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    put(catalog, "free", Lock::default()).await;
    assert_eq!(catalog.locked().await.unwrap(), Locked::default());
    for until_ms in [300, 100] {
        put(catalog, "a", until(RetentionMode::Compliance, until_ms)).await;
    }
    let b = put(catalog, "b", until(RetentionMode::Governance, 50)).await;
    let expected = Locked {
        count: 3,
        compliance_until_ms: Some(300),
        governance_until_ms: Some(50),
        has_hold: false,
    };
    assert_eq!(catalog.locked().await.unwrap(), expected);
    let change =
        async |which, change, test| catalog.change_lock(&name("b"), which, change, test).await;
    let hold = change(Which::Current, LockChange::Hold(true), at(0, false)).await;
    let of = |overridden| ChangedLock {
        version: b,
        overridden,
    };
    assert_eq!(hold.unwrap(), Ok(of(None)));
    assert!(catalog.locked().await.unwrap().has_hold);
    let none = LockChange::Retention(None);
    let refused = change(Which::Current, none, at(49, false)).await;
    assert!(matches!(refused, Err(StoreError::Locked)));
    let stronger = LockChange::Retention(until(RetentionMode::Governance, 60).retention);
    let changed = change(Which::Current, stronger, at(49, true)).await;
    assert_eq!(changed.unwrap(), Ok(of(None)), "nothing stood against it");
    let changed = change(Which::Current, none, at(49, true)).await;
    let passed_over = until(RetentionMode::Governance, 60).retention;
    assert_eq!(changed.unwrap(), Ok(of(passed_over)));
    change(Which::Current, LockChange::Hold(false), at(0, false))
        .await
        .unwrap()
        .unwrap();
    // That the hold is off is known, and is no lock.
    let (head, _) = read(catalog, "b").await.unwrap().unwrap();
    assert!(head.lock.is_none() && head.lock.hold_is_off);
    let expected = Locked {
        count: 2,
        governance_until_ms: None,
        ..expected
    };
    assert_eq!(catalog.locked().await.unwrap(), expected);
    let missing = catalog
        .change_lock(&name("none"), Which::Current, none, at(0, false))
        .await;
    assert_eq!(missing.unwrap(), Err(Absent::Object));
}
