//! A stream as an object: its end is not known before it comes.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use hyper::body::Bytes;
use tokio::task::{JoinSet, block_in_place};

use super::Done;
use super::parts::{Part, Upload};
use crate::limits::PART_COUNT_MAX;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Moved};
use crate::mover::plan::stream_part_bytes;
use crate::s3::{ObjectName, Since};

impl Mover {
    /// Stores what a stream gives. It can't be taken up again: after an error, nothing is stored.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn put_stream(
        self: &Arc<Self>,
        from: &mut (dyn Read + Send),
        name: &ObjectName,
    ) -> Result<Moved, MoverError> {
        let first = self.read(from, 1)?;
        let is_short = (first.len() as u64) < stream_part_bytes(1);
        let headers = self.options.headers.clone();
        let done = if is_short {
            self.put_bytes(first, name, &headers, None).await?
        } else {
            self.stream_parts(first, from, name, &headers).await?
        };
        self.stored(done, "-".to_owned(), name).await
    }

    fn read(&self, from: &mut (dyn Read + Send), number: u32) -> Result<Bytes, MoverError> {
        let most = stream_part_bytes(number);
        let mut piece = Vec::new();
        let read = block_in_place(|| from.take(most).read_to_end(&mut piece));
        read.map_err(MoverError::local("reading", Path::new("standard input")))?;
        let bytes = piece.len() as u64;
        self.tell(&Event::Found {
            files: u64::from(number == 1),
            bytes,
        });
        Ok(piece.into())
    }

    async fn stream_parts(
        self: &Arc<Self>,
        first: Bytes,
        from: &mut (dyn Read + Send),
        name: &ObjectName,
        headers: &[(String, String)],
    ) -> Result<Done, MoverError> {
        let start = self.begin_upload(name, headers).await?;
        let upload = Arc::new(Upload {
            name: name.clone(),
            upload_id: start.upload_id,
            compares: start.compares,
            headers: headers.to_vec(),
            began: Since::Server(start.began_seconds),
        });
        let sending = async {
            let parts = self.send_stream(&upload, first, from).await?;
            self.complete(&upload, parts).await
        };
        self.or_aborted(name, &upload.upload_id, sending).await
    }

    async fn send_stream(
        self: &Arc<Self>,
        upload: &Arc<Upload>,
        first: Bytes,
        from: &mut (dyn Read + Send),
    ) -> Result<Vec<Part>, MoverError> {
        let mut tasks: JoinSet<Result<Part, MoverError>> = JoinSet::new();
        let mut parts = Vec::new();
        let mut next = Some(first);
        let mut number = 0;
        while let Some(body) = next.take() {
            number += 1;
            if u64::from(number) > PART_COUNT_MAX {
                let error = io::Error::other("it is longer than an object can be");
                let path = Path::new("standard input");
                return Err(MoverError::local("storing it", path)(error));
            }
            let is_last = (body.len() as u64) < stream_part_bytes(number);
            let (mover, upload) = (Arc::clone(self), Arc::clone(upload));
            tasks.spawn(async move { mover.send_part(&upload, number, body).await });
            while tasks.len() >= self.options.jobs || (is_last && !tasks.is_empty()) {
                if let Some(done) = tasks.join_next().await {
                    parts.push(done.unwrap_or(Err(MoverError::Lost))?);
                }
            }
            if !is_last {
                let body = self.read(from, number + 1)?;
                next = (!body.is_empty()).then_some(body);
            }
        }
        while let Some(done) = tasks.join_next().await {
            parts.push(done.unwrap_or(Err(MoverError::Lost))?);
        }
        parts.sort_unstable_by_key(|part| part.done.number);
        Ok(parts)
    }
}
