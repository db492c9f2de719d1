//! Putting catalogs together: from the newest page back to the oldest, each segment read once.

use std::fs::File;
use std::os::unix::fs::FileExt;

use coffer_seal::BucketId;

use super::{CopyReader, RestoredCatalog};
use crate::error::{ReplicaError, Result};
use crate::head::{BucketState, SegmentRef};
use crate::limits::{PAGE_BYTES, SEGMENT_MAX_BYTES};
use crate::names;
use crate::segment::{self, Description};
use crate::store::get;

/// A catalog that is put together. Of each page the first that is met counts.
struct Building<'a> {
    to: Option<&'a File>,
    is_there: Vec<bool>,
    missing: u32,
}

impl Building<'_> {
    fn put(&mut self, number: u32, page: &[u8]) -> Result<()> {
        // A catalog that has become shorter has no use for what was behind.
        let Some(there) = self.is_there.get_mut(number as usize - 1) else {
            return Ok(());
        };
        if !std::mem::replace(there, true) {
            self.missing -= 1;
            let offset_bytes = u64::from(number - 1) * PAGE_BYTES as u64;
            if let Some(to) = self.to {
                to.write_all_at(page, offset_bytes)?;
            }
        }
        Ok(())
    }

    /// Whether all pages behind these were met.
    fn is_whole_behind(&self, page_count: u32) -> bool {
        let behind = self.is_there.iter().skip(page_count as usize);
        behind.filter(|there| !**there).count() == 0
    }
}

impl CopyReader {
    /// Puts a catalog together in `to`, or only checks that it could be: what records say of it,
    /// and then segments, from the newest back to the base.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn catalog(
        &self,
        bucket: BucketId,
        state: &BucketState,
        to: Option<&File>,
    ) -> Result<RestoredCatalog> {
        self.catalog_after(bucket, state, None, to).await
    }

    /// As [`CopyReader::catalog`], over what `to` holds of `before`, if the chain goes back to
    /// that: then only what is behind it is read. `state` is what the reader's head says.
    ///
    /// # Errors
    /// As [`CopyReader::catalog`].
    pub async fn catalog_after(
        &self,
        bucket: BucketId,
        state: &BucketState,
        before: Option<&BucketState>,
        to: Option<&File>,
    ) -> Result<RestoredCatalog> {
        let mut building = Building {
            to,
            is_there: vec![false; state.page_count as usize],
            missing: state.page_count,
        };
        let base = self.state.base.buckets.get(&bucket.to_string());
        let base = base.unwrap_or(state);
        self.recorded(bucket, (base, before), &mut building)?;
        let mut next = Some(base.last.clone());
        let mut segment_count = 0;
        while let Some(reference) = next {
            if let Some(before) = before.filter(|before| before.last == reference) {
                // All pages that it had are there; those beyond were put since.
                if !building.is_whole_behind(before.page_count) {
                    return Err(self.altered(bucket, &reference, "pages are missing behind it"));
                }
                break;
            }
            let segment = self.segment(bucket, &reference).await?;
            let description = segment.description;
            if segment_count == 0 && !is_of(&description, base) {
                return Err(self.altered(bucket, &reference, "it is not what the head says of it"));
            }
            for (number, page) in segment.pages {
                building.put(number, &page)?;
            }
            segment_count += 1;
            next = description.previous;
            if building.missing > 0 && next.is_none() {
                return Err(self.altered(bucket, &reference, "pages are missing before it"));
            }
            if segment_count > state.segment_count {
                return Err(self.altered(bucket, &reference, "there are more than the head says"));
            }
        }
        if let Some(to) = to {
            to.set_len(u64::from(state.page_count) * PAGE_BYTES as u64)?;
            to.sync_all()?;
        }
        Ok(RestoredCatalog {
            segment_count,
            page_count: state.page_count,
            commits: state.commits,
        })
    }

    /// What records say of a catalog that neither the newest head has, nor what is there already.
    fn recorded(
        &self,
        bucket: BucketId,
        (base, before): (&BucketState, Option<&BucketState>),
        building: &mut Building<'_>,
    ) -> Result<()> {
        let before = before.filter(|before| before.last == base.last);
        let from = before.map_or(base.commits, |before| before.commits);
        for record in self.state.records.iter().rev() {
            let of = record.holds.buckets.iter();
            for of in of.filter(|of| of.bucket == bucket && of.commits > from) {
                for (number, page) in &of.pages {
                    building.put(*number, page)?;
                }
            }
        }
        Ok(())
    }

    async fn segment(&self, bucket: BucketId, reference: &SegmentRef) -> Result<segment::Segment> {
        let path = names::segment(bucket, reference.at);
        let bytes = get(&*self.copy.store, &path, SEGMENT_MAX_BYTES).await?;
        segment::read(&self.copy.key, (self.copy.id, bucket), reference, &bytes)
    }

    fn altered(
        &self,
        bucket: BucketId,
        reference: &SegmentRef,
        problem: &'static str,
    ) -> ReplicaError {
        ReplicaError::Altered {
            object: names::segment(bucket, reference.at).to_string(),
            problem,
        }
    }
}

/// Whether a chain may end with this segment.
fn is_of(description: &Description, state: &BucketState) -> bool {
    description.is_last
        && description.commits == state.commits
        && description.page_count == state.page_count
}
