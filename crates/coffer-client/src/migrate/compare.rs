//! Whether a version at the target is the one at the source.

use std::sync::Arc;

use time::OffsetDateTime;
use tokio::task::block_in_place;

use crate::limits::PART_BYTES;
use crate::migrate::Migration;
use crate::migrate::attributes::{Attributes, plain_tags};
use crate::migrate::body::named;
use crate::migrate::error::MigrateError;
use crate::migrate::place::Place;
use crate::migrate::report::Proof;
use crate::mover::{MTIME_HEADER, pieces};
use crate::s3::checksum::{Algorithm, Checksum, Running};
use crate::s3::{Client, ListedVersion, ObjectHead};

/// What shows that two versions are the same.
pub(super) struct Same {
    pub(super) proof: Proof,
    /// The checksum of both.
    pub(super) checksum: Checksum,
}

impl Migration {
    /// Compares the bytes of a version with those of one at the target: by what the ledger says was
    /// read, by checksums of one kind that both tell, or by reading the source.
    ///
    /// # Errors
    /// [`MigrateError::Differs`]; [`MigrateError::Unproven`]; what reading meets.
    pub(super) async fn same(
        &self,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        there: &ListedVersion,
    ) -> Result<(Same, ObjectHead), MigrateError> {
        let name = place.version_at_target(there);
        let head = self.target.head_object(&name).await?;
        if head.bytes != of.object.bytes {
            let what = format!("{} bytes instead of {}", head.bytes, of.object.bytes);
            return Err(MigrateError::Differs { what });
        }
        let at_target = head.checksum.clone().ok_or(MigrateError::Unproven)?;
        let recorded = place
            .ledger
            .crc_of(key, of)
            .filter(|_| place.ledger.came_of(key, there, of));
        if let (Some(crc), Algorithm::Crc64Nvme) = (recorded, at_target.algorithm) {
            differing(&crc.to_be_bytes(), &at_target)?;
            let proof = Proof::Recorded;
            let checksum = at_target;
            return Ok((Same { proof, checksum }, head));
        }
        let opened = match &place.client {
            Some(client) => self.told(client, place, of).await?,
            None => None,
        };
        let same_kind = opened.filter(|told| told.algorithm == at_target.algorithm);
        let (proof, checksum) = match same_kind {
            Some(told) => (Proof::BothTell, told),
            None => {
                let sum = self.read(place, key, of, at_target.algorithm).await?;
                (Proof::TargetTells, sum)
            }
        };
        differing(&checksum.value, &at_target)?;
        Ok((Same { proof, checksum }, head))
    }

    /// What the source says that the checksum of a version is.
    async fn told(
        &self,
        client: &Client,
        place: &Place,
        of: &ListedVersion,
    ) -> Result<Option<Checksum>, MigrateError> {
        let name = named(&place.from, &of.object.key, of);
        Ok(client.head_object(&name).await?.checksum)
    }

    /// Reads a version of the source, and sums it.
    async fn read(
        &self,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        algorithm: Algorithm,
    ) -> Result<Checksum, MigrateError> {
        let permits = self.permits_for(of.object.bytes.min(PART_BYTES));
        let _permit = self.permits.acquire_many(permits).await;
        let mut running = Running::new(algorithm);
        let opened = place.open(key, of).await?;
        if let Some(whole) = &opened.whole {
            block_in_place(|| running.update(whole));
            return Ok(running.done());
        }
        for range in pieces(of.object.bytes, PART_BYTES) {
            let piece = opened.body.piece(range).await?;
            block_in_place(|| running.update(&piece));
        }
        opened.body.check_unchanged()?;
        Ok(running.done())
    }

    /// Compares what two versions are beside their bytes.
    pub(super) async fn same_attributes(
        &self,
        place: &Arc<Place>,
        of: &ListedVersion,
        there: &ListedVersion,
        head: &ObjectHead,
    ) -> Result<(), MigrateError> {
        let Some(client) = &place.client else {
            return Ok(());
        };
        let now = OffsetDateTime::now_utc();
        let name = named(&place.from, &of.object.key, of);
        let at_source = client.head_object(&name).await?;
        let source = Attributes::of_headers(&at_source.headers, now);
        let target = Attributes::of_headers(&head.headers, now);
        let mut differ: Vec<String> = source.difference(&target).into_iter().collect();
        let has_none = |tags: Option<u64>| tags.unwrap_or(0) == 0;
        let tags = if has_none(source.tags) && has_none(target.tags) {
            (String::new(), String::new())
        } else {
            let there = place.version_at_target(there);
            (client.tags(&name).await?, self.target.tags(&there).await?)
        };
        if plain_tags(&tags.0) != plain_tags(&tags.1) {
            differ.push("tags".to_owned());
        }
        if differ.is_empty() {
            return Ok(());
        }
        let what = format!("{} (its bytes are the same)", differ.join(", "));
        Err(MigrateError::Differs { what })
    }
}

/// Compares the time of a file with the one that is at the target.
pub(super) fn same_time(of: &ListedVersion, head: &ObjectHead) -> Result<(), MigrateError> {
    let (is, there) = (of.object.modified.as_str(), head.header(MTIME_HEADER));
    if there == Some(is) {
        return Ok(());
    }
    let there = there.unwrap_or("none");
    let what = format!("its time is {is}, and {there} at the target (its bytes are the same)");
    Err(MigrateError::Differs { what })
}

fn differing(expected: &[u8], at_target: &Checksum) -> Result<(), MigrateError> {
    if expected == at_target.value {
        return Ok(());
    }
    let expected = Checksum {
        algorithm: at_target.algorithm,
        value: expected.to_vec(),
    };
    let what = format!("{at_target} instead of {expected}");
    Err(MigrateError::Differs { what })
}
