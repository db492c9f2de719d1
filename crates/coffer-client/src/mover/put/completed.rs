//! Uploads in parts that a command before this one has completed, and did not learn of it.

use std::collections::BTreeMap;
use std::ops::Range;

use tokio::task::block_in_place;

use super::Done;
use super::state::{Begun, StoredPart};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::journal::Journal;
use crate::mover::plan::{part_bytes, pieces};
use crate::mover::source::Source;
use crate::s3::checksum::{Algorithm, Checksum, crc, of_pieces};
use crate::s3::{Awaited, DonePart, ObjectName, etag_of_parts};

const ALGORITHM: Algorithm = Algorithm::Crc64Nvme;

impl Mover {
    /// What is stored of this file, where all its parts are noted and their upload is gone. The
    /// file is read for that, for a journal is believed about nothing.
    ///
    /// # Errors
    /// When the file can't be read, or the server can't be asked now.
    pub(super) async fn completed_before(
        &self,
        source: &Source,
        name: &ObjectName,
        journal: Option<&Journal>,
    ) -> Result<Option<Done>, MoverError> {
        let was = journal.and_then(Journal::read::<Begun, StoredPart>);
        let Some((begun, noted)) = was else {
            return Ok(None);
        };
        let (bytes, headers) = (source.seen().bytes, self.headers_of(source));
        let is_same = begun.source == *source.seen()
            && begun.part_bytes == part_bytes(bytes)
            && begun.headers == headers;
        if !is_same {
            return Ok(None);
        }
        let ranges: Vec<Range<u64>> = pieces(bytes, begun.part_bytes).collect();
        let noted: BTreeMap<u32, StoredPart> =
            noted.into_iter().map(|part| (part.number, part)).collect();
        if noted.len() != ranges.len() {
            return Ok(None);
        }
        match self.client.list_parts(name, &begun.upload_id).await {
            Err(error) if error.is_gone() => {}
            // What else is wrong, going on will tell.
            _ => return Ok(None),
        }
        let sent = self.sum(source, &ranges).await?;
        let parts: Vec<DonePart> = { noted.into_values() }
            .map(|part| DonePart {
                number: part.number,
                etag: part.etag,
                checksum: None,
            })
            .collect();
        let awaited = Awaited {
            name,
            headers: &headers,
            bytes,
            checksum: Some(&sent),
            etag: &|| etag_of_parts(&parts),
            began: begun.began(),
            sent: None,
            doubted: None,
        };
        let Some(found) = self.client.found(&awaited).await? else {
            return Ok(None);
        };
        // It may be there and have been called doubtful: a server that knows the completion answers
        // it again, and is asked what there is where it does not.
        let whole = begun.compares.then_some(&sent);
        let completed = self
            .client
            .complete_upload(&awaited, &begun.upload_id, &parts, whole);
        let mut stored = completed.await?;
        source.check_unchanged()?;
        // The answer tells nothing of what came sealed.
        stored.is_unverified |= found.is_unverified || self.is_unverified(name, &stored).await;
        self.tell(&Event::Kept(bytes));
        Ok(Some(Done {
            stored,
            sent,
            bytes,
            kept_bytes: bytes,
            was_sealed: false,
            journal: None,
            to_end: begun.to_end,
        }))
    }

    /// The checksum of all of a file. It is read beside no more pieces than are sent at once.
    async fn sum(&self, source: &Source, ranges: &[Range<u64>]) -> Result<Checksum, MoverError> {
        let polynomial = ALGORITHM.crc().ok_or(MoverError::Lost)?;
        let mut sums = Vec::with_capacity(ranges.len());
        for range in ranges {
            let permits = self.permits.acquire_many(self.permits_of(range));
            let _permits = permits.await.map_err(|_| MoverError::Lost)?;
            let body = block_in_place(|| source.read(range))?;
            sums.push((crc(polynomial, &body), range.end - range.start));
        }
        of_pieces(ALGORITHM, sums).ok_or(MoverError::Lost)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::limits::PART_BYTES;
    use crate::s3::checksum::checksum;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_is_summed_beside_no_more_than_is_sent_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes = 2 * PART_BYTES + 9;
        File::create(&path).unwrap().set_len(bytes).unwrap();
        let source = Source::open(&path).unwrap();
        let mover = Mover::of_no_server(4);
        let soon = Duration::from_millis(100);
        // The longest piece is as much as three usual ones.
        for ranges in [[0..7, 7..bytes], [0..bytes - 7, bytes - 7..bytes]] {
            let others = mover.permits.acquire_many(2).await.unwrap();
            let early = timeout(soon, mover.sum(&source, &ranges)).await;
            assert!(early.is_err(), "{ranges:?}");
            drop(others);
            let sum = mover.sum(&source, &ranges).await.unwrap();
            assert_eq!(sum, checksum(ALGORITHM, &vec![0u8; bytes as usize]));
        }
        let others = mover.permits.acquire_many(4).await.unwrap();
        let early = timeout(soon, mover.sum(&source, &[0..1, 1..2])).await;
        assert!(early.is_err());
        drop(others);
        assert_eq!(mover.permits.available_permits(), 4);
    }
}
