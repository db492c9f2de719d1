//! Stores of clouds that hang, or list without an end.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use tokio::time::{Instant, sleep};

use super::*;
use crate::place::Guarded;

/// Answers every request with what `body` makes of its number, as long as it is asked.
fn answer_all(body: fn(usize) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut count = 0;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // None any more: the test is over.
            while read_request(&stream) {
                count += 1;
                let body = body(count);
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                if stream.write_all((head + &body).as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    endpoint
}

fn read_request(stream: &TcpStream) -> bool {
    let lines = BufReader::new(stream).lines();
    lines
        .map_while(std::result::Result::ok)
        .any(|line| line.is_empty())
}

fn page_of(number: usize, what: &str) -> String {
    format!(
        "<ListBucketResult><Name>b</Name><Prefix>heads/</Prefix><IsTruncated>true</IsTruncated>\
         <NextContinuationToken>{number}</NextContinuationToken>{what}</ListBucketResult>"
    )
}

fn copy_at(endpoint: &str) -> Copy {
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("credentials");
    std::fs::write(&secrets, "aws_access_key_id=a\naws_secret_access_key=b\n").unwrap();
    let url = format!(
        "s3://b?endpoint={endpoint}&credentials={}",
        secrets.display()
    );
    let store = Place::parse(&url).unwrap().open(false).unwrap();
    Copy::new(store, CopyId([1; 16]), &SecretKey::generate())
}

#[tokio::test]
async fn folders_without_an_end_are_not_listened_to() {
    let endpoint = answer_all(|number| {
        let folder =
            |at| format!("<CommonPrefixes><Prefix>heads/{at:09}/</Prefix></CommonPrefixes>");
        let first = number * 40_000;
        page_of(
            number,
            &(first..first + 40_000).map(folder).collect::<String>(),
        )
    });
    let error = copy_at(&endpoint).newest_number().await.unwrap_err();
    assert!(matches!(&error, ReplicaError::Altered { object, .. } if object == "heads"));
    assert!(!error.is_passing());
}

#[tokio::test]
async fn pages_without_anything_are_not_listened_to_without_an_end() {
    let endpoint = answer_all(|number| page_of(number, ""));
    let copy = copy_at(&endpoint);
    let error = copy.newest_number().await.unwrap_err();
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
    let error = copy.heads_in(0).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
}

#[tokio::test]
async fn a_list_that_begins_again_is_not_listened_to_without_an_end() {
    const ONE: &str = "<Contents><Key>heads/000000000/000000000001</Key><Size>1</Size>\
         <LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>e</ETag></Contents>";
    let endpoint = answer_all(|_| page_of(7, ONE));
    let error = copy_at(&endpoint).heads_in(0).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
}

#[async_trait]
impl PaginatedListStore for Fickle {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        _options: PaginatedListOptions,
    ) -> object_store::Result<PaginatedListResult> {
        sleep(self.takes).await;
        let result = self
            .inner
            .list_with_delimiter(prefix.map(Path::from).as_ref())
            .await?;
        Ok(PaginatedListResult {
            result,
            page_token: None,
        })
    }
}

fn slow(seconds: u64) -> Guarded<Fickle> {
    Guarded::new(Fickle {
        takes: Duration::from_secs(seconds),
        ..Fickle::default()
    })
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_noticed_after_twenty_seconds() {
    let (hung, path) = (slow(3_600), Path::from("heads/1"));
    let began = Instant::now();
    let error = ReplicaError::from(hung.get(&path).await.unwrap_err());
    assert!(
        error.is_passing() && error.to_string().contains("does not answer"),
        "{error}"
    );
    assert_eq!(began.elapsed().as_secs(), 20);
    hung.list_with_delimiter(None).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 40);
    let listed: Vec<_> = hung.list(None).collect().await;
    assert!(listed.len() == 1 && listed[0].is_err());
    assert_eq!(began.elapsed().as_secs(), 60);
    hung.put(&path, vec![0; 100].into()).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 80);
}

#[tokio::test(start_paused = true)]
async fn what_is_long_has_its_time() {
    let (store, path) = (slow(30), Path::from("heads/1"));
    store.put(&path, vec![0; 1 << 20].into()).await.unwrap();
    store.put(&path, vec![0; 1 << 10].into()).await.unwrap_err();
    let mut upload = slow(15).put_multipart(&path).await.unwrap();
    upload.put_part(vec![0; 8 << 20].into()).await.unwrap();
    upload.complete().await.unwrap();
    let store = slow(15);
    store.put(&path, vec![7].into()).await.unwrap();
    assert_eq!(
        store.get(&path).await.unwrap().bytes().await.unwrap(),
        [7][..]
    );
    store.delete(&path).await.unwrap();
}
