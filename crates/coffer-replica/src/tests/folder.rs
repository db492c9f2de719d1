//! A folder that others can write to.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant, SystemTime};

use futures::TryStreamExt;
use object_store::WriteMultipart;

use super::*;

/// A copy in a folder, and what lies beside it.
struct Place {
    folder: tempfile::TempDir,
    writer: CopyWriter,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy");
        let url = format!("file://{}", path.display());
        let store = crate::Place::parse(&url).unwrap().open(true).unwrap();
        let record = CopyRecord::new(KeystoreId([1; 16]));
        let copy = Copy::new(store, record.copy, &SecretKey::generate());
        let writer = CopyWriter::begin(copy, &record).await.unwrap();
        Self { folder, writer }
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("copy").join(name)
    }

    fn store(&self) -> Store {
        self.writer.copy().store.clone()
    }

    async fn sweep(&self) -> Result<Swept> {
        let until = Instant::now() + Duration::from_secs(60);
        self.writer.sweep(i64::MAX, &HashSet::new(), until).await
    }
}

#[tokio::test]
async fn a_place_that_went_away_is_not_made_again() {
    let place = Place::new().await;
    let (own, away) = (place.at(""), place.folder.path().join("away"));
    fs::rename(&own, &away).unwrap();
    let (store, path) = (place.store(), Path::from("blobs/one"));
    let of_all = async || {
        [
            store.put(&path, "x".into()).await.map(|_| ()),
            store.put_multipart(&path).await.map(|_| ()),
            store.get(&Path::from("copy.json")).await.map(|_| ()),
            store.list(None).try_collect::<Vec<_>>().await.map(|_| ()),
            store.delete(&path).await,
        ]
    };
    // Gone, and as a mount point is without its disk.
    for is_made in [false, true] {
        if is_made {
            fs::create_dir(&own).unwrap();
        }
        for result in of_all().await {
            let told = ReplicaError::from(result.unwrap_err()).to_string();
            assert!(told.contains("is its disk mounted?"), "{told}");
        }
        let made = fs::read_dir(&own).map_or(0, Iterator::count);
        assert!(
            own.exists() == is_made && made == 0,
            "nothing is made there"
        );
    }
    fs::remove_dir(&own).unwrap();
    fs::rename(&away, &own).unwrap();
    assert!(of_all().await.iter().all(|result| result.is_ok()));
}

#[tokio::test]
async fn why_an_upload_did_not_end_is_told() {
    let place = Place::new().await;
    let path = Path::from("blobs/one");
    let upload = place.store().put_multipart(&path).await.unwrap();
    let mut upload = WriteMultipart::new(upload);
    upload.write(&[1; 10]);
    fs::remove_dir_all(place.at("blobs")).unwrap();
    let error = ReplicaError::from(upload.finish().await.unwrap_err());
    let told = error.to_string();
    assert!(told.contains("No such file"), "{told}");
    assert!(
        !told.contains("abort") && !told.contains("Generic"),
        "{told}"
    );
}

#[tokio::test]
async fn a_link_is_never_followed_whether_it_is_there_or_comes_between() {
    let place = Place::new().await;
    let victim = place.folder.path().join("victim");
    fs::create_dir_all(victim.join("below")).unwrap();
    fs::write(victim.join("below/kept"), "kept").unwrap();
    let bucket = "11".repeat(16);
    for kind in ["blobs", "buckets"] {
        fs::create_dir_all(place.at(kind)).unwrap();
        for links in [format!("{kind}/{bucket}"), format!("{kind}/{bucket}/aa")] {
            fs::create_dir_all(place.at(&links).parent().unwrap()).unwrap();
            symlink(&victim, place.at(&links)).unwrap();
            let told = place.sweep().await.unwrap_err().to_string();
            assert!(told.contains("is a link") && told.contains(kind), "{told}");
            // As if it had come after the list.
            let path = Path::parse(format!("{links}/below/kept")).unwrap();
            assert!(place.store().delete(&path).await.is_err());
            assert!(place.store().get(&path).await.is_err());
            assert!(place.store().put(&path, vec![1].into()).await.is_err());
            fs::remove_file(place.at(&links)).unwrap();
            fs::remove_dir_all(place.at(&format!("{kind}/{bucket}"))).ok();
        }
    }
    assert_eq!(fs::read(victim.join("below/kept")).unwrap(), b"kept");
    place.sweep().await.unwrap();
}

#[tokio::test]
async fn what_is_removed_takes_empty_folders_with_it_and_no_other() {
    let place = Place::new().await;
    let store = place.store();
    for name in ["blobs/a/b/1", "blobs/a/2"] {
        store.put(&Path::from(name), vec![1].into()).await.unwrap();
    }
    let found: Vec<_> = store
        .list(Some(&Path::from("blobs")))
        .try_collect()
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
    store.delete(&Path::from("blobs/a/b/1")).await.unwrap();
    assert!(!place.at("blobs/a/b").exists() && place.at("blobs/a/2").exists());
    let again = store.delete(&Path::from("blobs/a/b/1")).await;
    assert!(matches!(again, Err(object_store::Error::NotFound { .. })));
    store.delete(&Path::from("blobs/a/2")).await.unwrap();
    assert!(!place.at("blobs").exists());
    assert!(place.at("copy.json").exists());
}

#[tokio::test]
async fn what_a_put_left_that_was_ended_is_removed_when_it_is_old() {
    let mut place = Place::new().await;
    let bucket = "07".repeat(16);
    let left = format!("blobs/{bucket}/aa/{}#1", "bb".repeat(15));
    fs::create_dir_all(place.at(&left).parent().unwrap()).unwrap();
    fs::write(place.at(&left), vec![1; 100]).unwrap();
    let new = segment(1, 1, &[(1, 1)], true);
    place.writer.put_segment(BUCKET, None, new).await.unwrap();
    let copy = place.writer.copy().clone();
    let age = limits::UNFINISHED_AGE;
    assert_eq!(copy.remove_unfinished(age).await.unwrap(), 0);
    let file = fs::File::options()
        .write(true)
        .open(place.at(&left))
        .unwrap();
    let before = SystemTime::now() - age * 2;
    file.set_modified(before).unwrap();
    assert_eq!(copy.remove_unfinished(age).await.unwrap(), 1);
    assert!(!place.at(&left).exists());
    assert!(place.at(&format!("buckets/{BUCKET}")).exists());
}

#[tokio::test]
async fn no_older_keystore_stays_that_a_put_left_which_was_ended() {
    let place = Place::new().await;
    let mut keystores = KeystoreWriter::new(&place.writer);
    keystores.put_newest(9, vec![9]).await.unwrap();
    let left = place.at("keystores/00000001-000000000008#1");
    let other = place.at("keystores/00000001-000000000010#2");
    for path in [&left, &other] {
        fs::write(path, "old").unwrap();
    }
    keystores.put_newest(10, vec![10]).await.unwrap();
    keystores.keep_alone().await.unwrap();
    let there = fs::read_dir(place.at("keystores")).unwrap().count();
    assert_eq!(there, 1);
}
