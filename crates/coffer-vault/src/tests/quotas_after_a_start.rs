//! What is told of quotas before all buckets were read.

use crate::access::Actor;
use crate::quotas::Quota;
use crate::rotation::tests::{bucket, open, put};

const LOCAL: Actor = Actor::Local { uid: 0 };

#[tokio::test(flavor = "multi_thread")]
async fn what_a_bucket_holds_is_told_right_after_a_start() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject) = open(data.path()).await;
    let made = vault.create_bucket(&subject, &bucket(), None).await;
    made.unwrap();
    put(&vault, &subject, 1).await.unwrap();
    let quota = Quota {
        objects: Some(7),
        ..Quota::default()
    };
    let set = vault.set_quota(&LOCAL, "bucket", "bucket", quota).await;
    let used = set.unwrap().used;
    assert!(used.bytes > 0 && used.objects == 1);
    vault.close().await;
    drop((vault, subject));
    let (vault, _subject) = open(data.path()).await;
    // It opens all buckets in time.
    vault.stop_recovery().await;
    let told = vault.quotas(&LOCAL).await.unwrap();
    assert_eq!(told[0].used, used);
    vault.close().await;
}
