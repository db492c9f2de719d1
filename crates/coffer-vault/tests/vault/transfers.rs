//! Sealed transfers: what is released, and what ends it.

use std::time::{Duration, Instant};

use coffer_keys::LevelOptions;
use coffer_label::Label;
use coffer_vault::limits::{TRANSFER_SEGMENTS_MAX, TRANSFERS_PER_SUBJECT};
use coffer_vault::*;

use crate::door::{Door, bytes, door, name};

const LOCAL: Actor = Actor::Local { uid: 0 };
const SIZE: usize = 100_000;

/// A bucket `open` whose level allows transfers, with an object `there`.
async fn open(data: &std::path::Path) -> Door {
    let mut door = door(data).await;
    let level = NewLevel {
        name: "open".into(),
        label: Label::LOWEST,
        options: LevelOptions {
            sealed_transfer: true,
            ..LevelOptions::default()
        },
        may_share_label: true,
    };
    door.vault.create_level(&LOCAL, level).await.unwrap();
    door.vault.offer_transfers(DataPort {
        port: 1,
        url: None,
        speaks_tls: false,
    });
    door.put("there", &bytes(SIZE)).await.unwrap();
    door.bucket = BucketName::new("open").unwrap();
    let made = { &door.vault }.create_bucket(&door.subject, &door.bucket, Some("open"));
    made.await.unwrap();
    door.put("there", &bytes(SIZE)).await.unwrap();
    door
}

async fn release(door: &Door, bucket: &str, object: &str) -> Result<Option<SealedObject>> {
    let bucket = BucketName::new(bucket).unwrap();
    let (name, options) = (name(object), ReadOptions::default());
    let released = door
        .vault
        .release_object(&door.subject, &bucket, &name, options);
    Ok(match released.await? {
        Released::Sealed(sealed) => Some(sealed),
        Released::Opened(_) => None,
    })
}

async fn announce(door: &Door, plaintext_bytes: u64) -> Result<Option<SealedUpload>> {
    let announcement = Announcement {
        name: name("new"),
        part: None,
        plaintext_bytes,
        digests: DigestPlan::default(),
    };
    let announced = { &door.vault }.announce(&door.subject, &door.bucket, announcement);
    announced.await
}

/// What a client that has the keys makes of the bytes that a ticket is good for.
async fn fetch(door: &Door, sealed: &SealedObject) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let mut sending = door.vault.take_transfer(&sealed.ticket).await.unwrap();
    assert_eq!(sending.sealed_bytes(), sealed.sealed_bytes);
    let mut plaintext = Vec::new();
    for released in &sealed.segments {
        let file = sending.next_segment().await.unwrap().unwrap();
        let place = file.sealed();
        let mut message = released.segment.header.to_vec();
        let mut chunks = vec![0; (place.end - place.start) as usize];
        file.file().read_exact_at(&mut chunks, place.start).unwrap();
        message.extend(chunks);
        let opened = coffer_seal::open(&released.data_key, &released.context, &message).unwrap();
        plaintext.extend_from_slice(&opened);
    }
    assert!(sending.next_segment().await.unwrap().is_none());
    sending.done();
    plaintext
}

#[tokio::test]
async fn an_object_is_released_where_its_level_allows_it() {
    let data = tempfile::tempdir().unwrap();
    let door = open(data.path()).await;
    assert!(release(&door, "bucket", "there").await.unwrap().is_none());
    door.put("small", &bytes(100)).await.unwrap();
    assert!(release(&door, "open", "small").await.unwrap().is_none());
    assert!(matches!(
        release(&door, "open", "none").await,
        Err(VaultError::NoSuchObject)
    ));
    let sealed = release(&door, "open", "there").await.unwrap().unwrap();
    assert!(sealed.range == (0..SIZE as u64) && sealed.segments.len() == 1);
    assert!(sealed.segments.len() <= TRANSFER_SEGMENTS_MAX);
    assert_eq!(fetch(&door, &sealed).await, bytes(SIZE));
    assert!(door.vault.take_transfer(&sealed.ticket).await.is_err());
    let counted = door.vault.counters().transfers;
    assert_eq!(
        (counted.sent.done_count, counted.sent.refused_count),
        (1, 1)
    );
    assert_eq!((counted.released_key_count, counted.open_count), (1, 0));
}

#[tokio::test]
async fn what_replaces_an_object_leaves_a_ticket_its_bytes() {
    let data = tempfile::tempdir().unwrap();
    let door = open(data.path()).await;
    let sealed = release(&door, "open", "there").await.unwrap().unwrap();
    door.put("there", &bytes(20_000)).await.unwrap();
    assert_eq!(fetch(&door, &sealed).await, bytes(SIZE));
}

#[tokio::test]
async fn one_subject_has_so_many_transfers_and_then_gets_bytes() {
    let data = tempfile::tempdir().unwrap();
    let door = open(data.path()).await;
    let mut tickets = Vec::new();
    for _ in 0..TRANSFERS_PER_SUBJECT {
        tickets.push(
            release(&door, "open", "there")
                .await
                .unwrap()
                .unwrap()
                .ticket,
        );
    }
    assert!(release(&door, "open", "there").await.unwrap().is_none());
    assert!(announce(&door, SIZE as u64).await.unwrap().is_none());
    let last = tickets.pop().unwrap();
    drop(door.vault.take_transfer(&last).await.unwrap());
    assert!(announce(&door, SIZE as u64).await.unwrap().is_some());
    assert_eq!(door.vault.counters().transfers.sent.cut_count, 1);
}

#[tokio::test]
async fn an_erase_waits_for_no_ticket_and_none_is_good_after_it() {
    let data = tempfile::tempdir().unwrap();
    let door = open(data.path()).await;
    let sealed = release(&door, "open", "there").await.unwrap().unwrap();
    let announced = announce(&door, SIZE as u64).await.unwrap().unwrap();
    let began = Instant::now();
    let erased = door.vault.erase_level(&LOCAL, "open").await.unwrap();
    assert!(matches!(erased, GuardedOutcome::Erased(_)));
    assert!(began.elapsed() < Duration::from_millis(1_900), "it waited");
    assert!(door.vault.take_transfer(&sealed.ticket).await.is_err());
    assert!(door.vault.take_arrival(announced.ticket).await.is_err());
    assert_eq!(door.vault.counters().transfers.open_count, 0);
}

#[tokio::test]
async fn a_ticket_waits_for_its_time_and_no_longer() {
    let data = tempfile::tempdir().unwrap();
    let door = open(data.path()).await;
    let in_time = release(&door, "open", "there").await.unwrap().unwrap();
    let late = release(&door, "open", "there").await.unwrap().unwrap();
    let announced = announce(&door, SIZE as u64).await.unwrap().unwrap();
    let patience = late.patience;
    assert_eq!(announced.patience, patience);
    // The tasks that wait begin to, now.
    tokio::task::yield_now().await;
    // The clock stands still but for this, and goes on before anything waits for the disk: a clock
    // that stands goes on by itself where all wait.
    tokio::time::pause();
    tokio::time::advance(patience - Duration::from_secs(5)).await;
    tokio::time::resume();
    assert_eq!(fetch(&door, &in_time).await, bytes(SIZE));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    let gone = async {
        while door.vault.counters().transfers.open_count > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(5), gone).await;
    assert!(gone.is_ok(), "tickets wait on");
    assert!(door.vault.take_transfer(&late.ticket).await.is_err());
    assert!(door.vault.take_arrival(announced.ticket).await.is_err());
    assert_eq!(door.vault.counters().transfers.open_count, 0);
}

#[tokio::test]
async fn what_arrives_is_committed_for_what_was_announced() {
    let data = tempfile::tempdir().unwrap();
    let door = open(data.path()).await;
    let announced = announce(&door, SIZE as u64).await.unwrap().unwrap();
    let content = bytes(SIZE);
    let message = coffer_seal::seal(&announced.data_key, &announced.context, &content);
    let text = announced.ticket.expose();
    let mut arrival = door.vault.take_arrival(announced.ticket).await.unwrap();
    let mut at = 0;
    while arrival.missing_bytes() > 0 {
        let room = arrival.room();
        let count = room.len().min(30_000);
        room[..count].copy_from_slice(&message[at..at + count]);
        arrival.received(count).await.unwrap();
        at += count;
    }
    arrival.finish().await.unwrap();

    let door = &door;
    let commit = |object: &str| {
        let mut put = crate::door::put(object, &bytes(0));
        let ticket = Ticket::parse(&text).unwrap();
        put.incoming.arrived = Some(ArrivedBytes { ticket, told: None });
        put.incoming.digests.md5 = true; // not announced: it is read again
        async move {
            door.vault
                .put_object(&door.subject, &door.bucket, put)
                .await
        }
    };
    let other = commit("other").await;
    assert!(matches!(other, Err(VaultError::Body(_))), "{other:?}");
    let stored = commit("new").await.unwrap();
    assert_eq!(stored.size_bytes, SIZE as u64);
    assert!(!stored.etag.contains('-') && stored.checksum.is_some());
    assert!(commit("new").await.is_err(), "good once");
    assert_eq!(door.read("new", RangeRequest::All).await.unwrap(), content);
}
