//! Puts, also such as are under way while other things happen.

use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::record::{Details, Precondition, Tags};
use coffer_vault::*;
use futures::stream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::operations::Outcome;
use crate::world::{World, bucket_name, object_name};

/// A put whose bytes have not come.
pub(crate) struct LongPut {
    bytes: oneshot::Sender<String>,
    put: JoinHandle<Result<Stored>>,
}

pub(crate) fn put(name: usize, content: String) -> PutObject {
    let content = Bytes::from(content);
    let declared_bytes = Some(content.len() as u64);
    put_body(name, declared_bytes, stream::iter([Ok(content)]))
}

fn put_body(
    name: usize,
    declared_bytes: Option<u64>,
    body: impl futures::Stream<Item = Result<Bytes, BodyError>> + Send + Sync + 'static,
) -> PutObject {
    PutObject {
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        name: object_name(name),
        details: Details::default(),
        tags: Tags::new(),
        precondition: Precondition::None,
        incoming: Incoming {
            declared_bytes,
            digests: DigestPlan::default(),
            body: Box::pin(body),
            check: Box::new(|_| Ok(())),
            is_proven: true,
            arrived: None,
        },
    }
}

impl World {
    /// Returns when the vault waits for the bytes, or has refused.
    pub(crate) async fn begin_put(
        &mut self,
        subject: Arc<Subject>,
        bucket: usize,
        object: usize,
    ) -> Result<Outcome> {
        if self.long.is_some() {
            return Ok(Outcome::Done);
        }
        let (bytes, coming) = oneshot::channel();
        let (waits, mut waiting) = oneshot::channel();
        let body = stream::once(async move {
            waits.send(()).unwrap();
            let sentence: Result<String, _> = coming.await;
            let gone = |error| BodyError(Box::new(error));
            sentence.map(Bytes::from).map_err(gone)
        });
        let put = put_body(object, None, body);
        let vault = self.vault.clone();
        let mut put =
            tokio::spawn(
                async move { vault.put_object(&subject, &bucket_name(bucket), put).await },
            );
        tokio::select! {
            biased;
            refused = &mut put => return refused.unwrap().map(|_| unreachable!("no bytes")),
            Ok(()) = &mut waiting => self.long = Some(LongPut { bytes, put }),
        }
        Ok(Outcome::Done)
    }

    pub(crate) async fn end_put(&mut self) -> Result<Outcome> {
        let Some(LongPut { bytes, put }) = self.long.take() else {
            return Ok(Outcome::Done);
        };
        // The vault no longer waits if it has cut the put off.
        let _ = bytes.send(std::mem::take(&mut self.sentence));
        put.await.unwrap().map(|_| Outcome::Done)
    }
}
