//! Counts that are kept, and keys that are rewrapped.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use coffer_seal::{BlobId, UploadId};
use coffer_store::limits::{REPLACE_REST, REWRAP_MAX};
use coffer_store::lock::Lock;
use coffer_store::record::{CompletedObject, Details, Part, Precondition, Upload};
use coffer_store::{Catalog, HeldKey, KeyPlace, Totals};
use proptest::prelude::*;

use crate::fixture::{Bucket, blob_ref, gone, in_blob, inline, name};

async fn totals(bucket: &Bucket) -> (u64, u64) {
    let Totals { objects, bytes } = bucket.catalog.totals().await.unwrap();
    (objects, bytes)
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    Delete(u8),
    Refused(u8),
    DeleteMany(Vec<u8>),
    Upload(u8, usize),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..6u8, 0..3_000usize).prop_map(|(name, size)| Step::Put(name, size)),
        2 => (0..6u8).prop_map(Step::Delete),
        1 => (0..6u8).prop_map(Step::Refused),
        1 => prop::collection::vec(0..6u8, 0..4).prop_map(Step::DeleteMany),
        1 => (0..6u8, 0..9_000usize).prop_map(|(name, size)| Step::Upload(name, size)),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..24)
}

async fn upload(bucket: &Bucket, object: &str, size: usize) {
    let id = UploadId::random();
    let upload = Upload {
        name: name(object),
        id,
        started_ms: 1,
        checksum: None,
        details: Details::default(),
        tags: Vec::new(),
        lock: Lock::default(),
        acl: None,
        made_by: None,
    };
    bucket.catalog.create_upload(upload).await.unwrap();
    let part = Part {
        number: 1,
        etag: "e".into(),
        modified_ms: 1,
        blob: blob_ref(size as u64),
    };
    let parts = vec![(1, part.blob.id)];
    bucket.catalog.put_part(id, part).await.unwrap();
    let object = CompletedObject {
        name: name(object),
        etag: "e-1".into(),
        modified_ms: 2,
        details: Details::default(),
        tags: Vec::new(),
        lock: Lock::default(),
        access: Default::default(),
        parts,
        request: [7; 32],
    };
    let done = bucket
        .catalog
        .complete_upload(&id, object, Precondition::None);
    done.await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_counts_are_those_of_a_walk(steps in steps()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut bucket = Bucket::in_memory().await;
            let mut model = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(number, size) => {
                        bucket.put(&number.to_string(), &vec![7; size]).await;
                        model.insert(number, size as u64);
                    }
                    Step::Upload(number, size) => {
                        upload(&bucket, &number.to_string(), size).await;
                        model.insert(number, size as u64);
                    }
                    Step::Delete(number) => {
                        let doomed = name(&number.to_string());
                        bucket.catalog.delete(gone(&doomed, Precondition::None)).await.unwrap();
                        model.remove(&number);
                    }
                    Step::Refused(number) => {
                        let object = inline(&number.to_string(), b"never");
                        let refused = Precondition::Etag("another".into());
                        assert!(bucket.catalog.put(object, refused).await.is_err());
                    }
                    Step::DeleteMany(numbers) => {
                        let doomed = numbers
                            .iter()
                            .map(|number| gone(&name(&number.to_string()), Precondition::None))
                            .collect();
                        bucket.catalog.delete_many(doomed).await.unwrap();
                        for number in numbers {
                            model.remove(&number);
                        }
                    }
                    Step::Reopen => bucket.reopen().await,
                }
                let expected = (model.len() as u64, model.values().sum());
                assert_eq!(totals(&bucket).await, expected);
            }
        });
    }
}

/// The data keys of a catalog, page by page, as the one who rewraps them meets them.
async fn all_of_other_generations(catalog: &Catalog, generation: u32) -> usize {
    let (mut after, mut count) = (KeyPlace::FIRST, 0);
    loop {
        let found = catalog
            .keys_of_other_generations(generation, after)
            .await
            .unwrap();
        let Some(last) = found.last() else {
            return count;
        };
        assert!(found.len() <= REWRAP_MAX);
        assert!(after < last.place, "it goes on");
        (after, count) = (last.place, count + found.len());
    }
}

#[tokio::test]
async fn all_keys_are_met_and_replaced() {
    let bucket = Bucket::in_memory().await;
    for number in 0..700 {
        let object = in_blob(&format!("{number}"), blob_ref(9));
        bucket
            .catalog
            .put(object, Precondition::None)
            .await
            .unwrap();
    }
    let id = UploadId::random();
    let under_way = Upload {
        name: name("under way"),
        id,
        started_ms: 1,
        checksum: None,
        details: Details::default(),
        tags: Vec::new(),
        lock: Lock::default(),
        acl: None,
        made_by: None,
    };
    bucket.catalog.create_upload(under_way).await.unwrap();
    for number in 1..=300 {
        let part = Part {
            number,
            etag: "e".into(),
            modified_ms: 1,
            blob: blob_ref(5),
        };
        bucket.catalog.put_part(id, part).await.unwrap();
    }
    let catalog = &bucket.catalog;
    assert_eq!(catalog.count_of_other_generations(4).await.unwrap(), 1_000);
    assert_eq!(all_of_other_generations(catalog, 3).await, 0);
    assert_eq!(all_of_other_generations(catalog, 4).await, 1_000);

    let mut after = KeyPlace::FIRST;
    loop {
        let mut found = catalog.keys_of_other_generations(4, after).await.unwrap();
        let Some(last) = found.last() else { break };
        after = last.place;
        for key in &mut found {
            assert_eq!(key.generation, 3);
            key.wrapped_key = [0xCC; 104].into();
        }
        catalog.replace_keys(found, 4).await.unwrap();
    }
    assert_eq!(catalog.count_of_other_generations(4).await.unwrap(), 0);
    for (kept, count) in [([3, 4], 0), ([4, 4], 0), ([3, 5], 1_000)] {
        let neither = catalog.count_of_neither_generation(kept).await.unwrap();
        assert_eq!(neither, count, "{kept:?}");
    }
    for key in catalog
        .keys_of_other_generations(3, KeyPlace::FIRST)
        .await
        .unwrap()
    {
        assert_eq!((key.generation, key.wrapped_key), (4, [0xCC; 104].into()));
    }
}

/// Keys of which none is there any more: replacing them is all rests, of more than a second.
fn many_gone() -> Vec<HeldKey> {
    let gone = |object_id| HeldKey {
        place: KeyPlace::Blob {
            object_id,
            offset_bytes: 0,
            part_number: 0,
        },
        blob_id: BlobId([1; 16]),
        generation: 3,
        wrapped_key: [0; 104].into(),
    };
    let rests = Duration::from_millis(1_500).div_duration_f64(REPLACE_REST) as i64;
    (0..rests * REWRAP_MAX as i64).map(gone).collect()
}

#[tokio::test]
async fn replacing_many_keys_makes_nobody_wait() {
    for is_abandoned in [false, true] {
        let bucket = Bucket::in_memory().await;
        let catalog = bucket.catalog.clone();
        let mut replacing = tokio::spawn(async move { catalog.replace_keys(many_gone(), 4).await });
        let early = tokio::time::timeout(Duration::from_millis(100), &mut replacing).await;
        assert!(early.is_err(), "it takes its time");
        let begun = Instant::now();
        if is_abandoned {
            bucket.catalog.abandon().await;
        } else {
            bucket.put("meanwhile", b"small").await;
        }
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(700), "waited for {took:?}");
        replacing.await.unwrap().unwrap();
    }
}
