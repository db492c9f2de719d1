//! Lists of blobs that are of no object any more: they stay until no head of the window names them.
//!
//! A list lies in the copy, so that a restart forgets none, and is sealed as heads are. It is there
//! before anything that it names is removed, and goes last.

use std::collections::BTreeMap;

use coffer_seal::{BlobId, BucketId, Context, SecretKey, open, seal};
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::error::{ReplicaError, Result};
use crate::limits::{GONE_LIST_MAX, GONE_LIST_MAX_BYTES};
use crate::names::{self, CopyId, Number};
use crate::store::{get, remove};
use crate::write::CopyWriter;

/// Blobs that no head after `head` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneList {
    at: Number,
    /// The head that was the newest when they were found.
    pub head: u64,
    /// The blobs.
    pub blobs: BTreeMap<BucketId, Vec<BlobId>>,
}

/// As it lies there, sealed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    head: u64,
    blobs: BTreeMap<String, Vec<String>>,
}

impl GoneList {
    /// How many blobs it names.
    pub fn blob_count(&self) -> usize {
        self.blobs.values().map(Vec::len).sum()
    }

    fn seal(&self, key: &SecretKey, copy: CopyId) -> Vec<u8> {
        let texts = |ids: &Vec<BlobId>| ids.iter().map(BlobId::to_string).collect();
        let blobs = self.blobs.iter();
        let document = Document {
            head: self.head,
            blobs: blobs
                .map(|(bucket, ids)| (bucket.to_string(), texts(ids)))
                .collect(),
        };
        let json = serde_json::to_vec(&document).unwrap_or_default();
        seal(key, &context(copy, self.at), &json)
    }

    fn open(key: &SecretKey, copy: CopyId, at: Number, sealed: &[u8]) -> Option<Self> {
        let json = open(key, &context(copy, at), sealed).ok()?;
        let document: Document = serde_json::from_slice(&json).ok()?;
        let id = |text: &String| BlobId::from_hex(text);
        let ids = |texts: Vec<String>| texts.iter().map(id).collect::<Option<Vec<_>>>();
        let blobs = document.blobs.into_iter();
        let blobs = blobs.map(|(bucket, texts)| Some((BucketId::from_hex(&bucket)?, ids(texts)?)));
        Some(Self {
            at,
            head: document.head,
            blobs: blobs.collect::<Option<_>>()?,
        })
    }
}

fn context(copy: CopyId, number: Number) -> Context {
    let mut bytes = b"coffer copy gone v1\0".to_vec();
    bytes.extend(copy.0);
    bytes.extend(number.epoch.to_be_bytes());
    bytes.extend(number.number.to_be_bytes());
    Context::raw(bytes)
}

impl CopyWriter {
    /// All lists that there are. One that does not open is removed: what it names is found again,
    /// and stays for longer.
    ///
    /// # Errors
    /// Of the store.
    pub async fn gone_lists(&self) -> Result<Vec<GoneList>> {
        let mut lists = Vec::new();
        for number in self.numbers_below(&Path::from(names::GONE), None).await? {
            let path = names::gone(number);
            let store = &*self.copy.store;
            let sealed = match get(store, &path, GONE_LIST_MAX_BYTES).await {
                Err(ReplicaError::Missing { .. }) => continue,
                Err(ReplicaError::Altered { .. }) => Default::default(),
                sealed => sealed?,
            };
            match GoneList::open(&self.copy.key, self.copy.id, number, &sealed) {
                Some(list) => lists.push(list),
                None => {
                    remove(store, &path).await?;
                }
            }
        }
        Ok(lists)
    }

    /// Notes down blobs that were found to be of no object any more, after the newest head was
    /// written.
    ///
    /// # Errors
    /// Of the store; [`ReplicaError::TooLarge`].
    pub async fn note_gone(&mut self, blobs: BTreeMap<BucketId, Vec<BlobId>>) -> Result<GoneList> {
        let list = GoneList {
            at: self.next_number(),
            // One that is being written meanwhile may name them still.
            head: self.known().number + u64::from(self.head.covers.is_some()),
            blobs,
        };
        if list.blob_count() > GONE_LIST_MAX {
            return Err(ReplicaError::TooLarge { what: "a list" });
        }
        let sealed = list.seal(&self.copy.key, self.copy.id);
        self.create_new(&names::gone(list.at), sealed).await?;
        Ok(list)
    }

    /// Removes a list, of which all is removed that it names.
    ///
    /// # Errors
    /// Of the store.
    pub async fn remove_list(&self, list: &GoneList) -> Result<()> {
        remove(&*self.copy.store, &names::gone(list.at)).await?;
        Ok(())
    }
}
