//! Finding heads: the newest, and that of a moment.
//!
//! Heads have consecutive numbers, of which the lowest are removed, so that a few requests find one
//! among millions.

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

use crate::error::{ReplicaError, Result};
use crate::head::{Head, KnownHead};
use crate::limits::HEAD_MAX_BYTES;
use crate::names;
use crate::store::{Copy, get};

impl Copy {
    /// The newest head; none of a copy that has none yet.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`] when it does not open.
    pub async fn newest_head(&self) -> Result<Option<(Head, KnownHead)>> {
        match self.newest_number().await? {
            Some(number) => Ok(Some(self.head(number).await?)),
            None => Ok(None),
        }
    }

    /// The head of a number.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn head(&self, number: u64) -> Result<(Head, KnownHead)> {
        let sealed = get(&*self.store, &names::head(number), HEAD_MAX_BYTES).await?;
        Head::open(&self.key, self.id, number, &sealed)
    }

    /// The newest head that is as of this moment or an earlier one, in milliseconds since 1970;
    /// none when the oldest that there is, is later.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`].
    pub async fn head_at(&self, at_ms: i64) -> Result<Option<(Head, KnownHead)>> {
        let (Some(mut low), Some(mut high)) =
            (self.number_from(0).await?, self.newest_number().await?)
        else {
            return Ok(None);
        };
        let mut found = self.head(low).await?;
        if found.0.as_of_ms > at_ms {
            return Ok(None);
        }
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let Some(head) = self.head_from(middle, high).await? else {
                high = middle - 1;
                continue;
            };
            if head.0.as_of_ms <= at_ms {
                low = head.0.number;
                found = head;
            } else {
                high = middle - 1;
            }
        }
        Ok(Some(found))
    }

    /// The first head from this number on, up to `last`: some may be missing, as it is when a
    /// removal is broken off.
    async fn head_from(&self, number: u64, last: u64) -> Result<Option<(Head, KnownHead)>> {
        match self.head(number).await {
            Err(ReplicaError::Missing { .. }) => {}
            found => return found.map(Some),
        }
        match self.number_from(number).await? {
            Some(number) if number <= last => Ok(Some(self.head(number).await?)),
            _ => Ok(None),
        }
    }

    /// The highest number of a head.
    pub(crate) async fn newest_number(&self) -> Result<Option<u64>> {
        // A folder may be empty.
        for group in self.head_groups().await?.into_iter().rev() {
            if let Some(number) = self.heads_in(group).await?.pop() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The lowest number of a head that is not below this one.
    pub(crate) async fn number_from(&self, from: u64) -> Result<Option<u64>> {
        let groups = self.head_groups().await?.into_iter();
        for group in groups.filter(|group| *group >= names::head_group(from)) {
            let numbers = self.heads_in(group).await?;
            if let Some(number) = numbers.into_iter().find(|number| *number >= from) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The folders of heads, ascending.
    pub(crate) async fn head_groups(&self) -> Result<Vec<u64>> {
        let names = folders_in(&*self.store, &Path::from(names::HEADS)).await?;
        let mut groups: Vec<u64> = names
            .iter()
            .filter_map(|name| names::head_group_at(name))
            .collect();
        groups.sort_unstable();
        Ok(groups)
    }

    /// The numbers of a folder's heads, ascending.
    pub(crate) async fn heads_in(&self, group: u64) -> Result<Vec<u64>> {
        let listed = self.store.list(Some(&names::heads_of(group)));
        let listed: Vec<_> = listed.try_collect().await?;
        let names = listed.iter().filter_map(|found| found.location.filename());
        let mut numbers: Vec<u64> = names.filter_map(names::head_number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// The names of the folders in a folder.
pub(crate) async fn folders_in(store: &dyn ObjectStore, folder: &Path) -> Result<Vec<String>> {
    let listed = store.list_with_delimiter(Some(folder)).await?;
    let names = listed.common_prefixes.iter().filter_map(Path::filename);
    Ok(names.map(str::to_owned).collect())
}
