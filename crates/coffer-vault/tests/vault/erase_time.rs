//! How long an erase takes, whatever is under way.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_vault::record::ListQuery;
use coffer_vault::*;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::JoinHandle;

use crate::door::{self, Door, bytes, name, put};

const LOCAL: Actor = Actor::Local { uid: 0 };
const BUCKETS: usize = 5;
const OBJECTS_EACH: usize = 4_000;

/// What an erase is to take at most. The median is below 100 ms, on a busy machine, too; but here
/// others may compile meanwhile, and most of the erase's steps wait for the disk.
const BOUND: Duration = Duration::from_millis(500);

/// Levels with many objects in one bucket each.
async fn scene(data: &Path) -> (Vault, Arc<Subject>, Vec<BucketName>) {
    let Door { vault, subject, .. } = door::door(data).await;
    let mut buckets = Vec::new();
    for number in 0..BUCKETS {
        let level = NewLevel {
            name: format!("doomed-{number}"),
            label: coffer_label::Label::LOWEST,
            options: Default::default(),
            may_share_label: true,
        };
        vault.create_level(&LOCAL, level).await.unwrap();
        let bucket = BucketName::new(&format!("doomed-{number}")).unwrap();
        let made = vault.create_bucket(&subject, &bucket, Some(bucket.as_str()));
        made.await.unwrap();
        let content = bytes(100);
        let puts = (0..OBJECTS_EACH).map(|object| {
            let put = put(&format!("{:02}/{object}", object % 50), &content);
            Ok(vault.put_object(&subject, &bucket, put))
        });
        let stored = stream::iter(puts).try_buffer_unordered(64);
        stored.try_for_each(async |_| Ok(())).await.unwrap();
        buckets.push(bucket);
    }
    (vault, subject, buckets)
}

/// Lists a bucket again and again until it is gone. How many pages it was given.
fn listing(vault: &Vault, subject: &Arc<Subject>, bucket: &BucketName) -> JoinHandle<usize> {
    let (vault, subject, bucket) = (vault.clone(), subject.clone(), bucket.clone());
    tokio::spawn(async move {
        let (mut pages, mut query) = (0, ListQuery::default());
        query.limit = 1_000;
        while let Ok(page) = vault.list_objects(&subject, &bucket, query.clone()).await {
            pages += 1;
            query.start_after = page.next;
        }
        let gone = vault.list_objects(&subject, &bucket, query).await;
        // For a moment the erase may still be refused.
        let is_gone = |error| matches!(error, VaultError::NoSuchBucket | VaultError::BucketInDoubt);
        assert!(gone.is_err_and(is_gone));
        pages
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erase_waits_neither_for_listings_nor_for_a_verification() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, buckets) = scene(data.path()).await;
    let mut took = Vec::new();
    for (number, bucket) in buckets.iter().enumerate() {
        let listings: Vec<_> = (0..4).map(|_| listing(&vault, &subject, bucket)).collect();
        let events = vault.verify(&LOCAL, VerifyDepth::Everything, None).await;
        let verification = tokio::spawn(events.unwrap().collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(100)).await;

        let begun = Instant::now();
        let erased = match number % 2 {
            0 => vault.erase_bucket(&LOCAL, bucket).await,
            _ => vault.erase_level(&LOCAL, bucket.as_str()).await,
        };
        took.push(begun.elapsed());
        let GuardedOutcome::Erased(receipt) = erased.unwrap() else {
            panic!("it needs no approval")
        };
        assert_eq!(receipt.erased.objects, OBJECTS_EACH as u64);
        for listing in listings {
            assert!(listing.await.unwrap() > 0, "it was under way");
        }
        let events = verification.await.unwrap();
        let damage = |event: &VerifyEvent| matches!(event, VerifyEvent::Damage { .. });
        assert!(!events.iter().any(damage), "what is erased is not damaged");
        let object = name("00/0");
        let read = vault.head_object(&subject, bucket, &object, ReadOptions::default());
        assert!(matches!(read.await.err(), Some(VaultError::NoSuchBucket)));
    }
    took.sort();
    println!("erases took {took:?}");
    assert!(took[BUCKETS / 2] < BOUND, "erases took {took:?}");
    vault.close().await;
}
