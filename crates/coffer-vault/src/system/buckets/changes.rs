//! Changes of what is set of buckets. While it is in doubt whether one has happened, what it is
//! about is out of use: neither what was set before nor what was to be is taken for what holds.

use std::sync::Arc;

use coffer_seal::BucketId;
use coffer_store::StoreError;
use rusqlite::{Transaction, params};

use super::BucketRow;
use super::room::Room;
use crate::error::Result;
use crate::system::configuration::{BucketConfiguration, OWN_KINDS};
use crate::system::{Held, System};

impl Held<'_> {
    /// Changes something of these buckets in one transaction. `outcome` is told whether it happened
    /// before they are in use again, should that be in doubt.
    ///
    /// # Errors
    /// As [`Held::change`].
    pub(in crate::system) fn change_of(
        &mut self,
        rows: Vec<Arc<BucketRow>>,
        change: impl FnOnce(&Transaction<'_>) -> Result<()>,
        outcome: impl FnOnce(&System, bool) + Send + 'static,
    ) -> Result<()> {
        // While something else is in doubt, this certainly does not happen.
        self.read(|_| Ok(()))?;
        let settle = {
            let rows = rows.clone();
            move |system: &System, has_happened: bool| {
                outcome(system, has_happened);
                for row in rows {
                    row.documents.doubt(false);
                }
            }
        };
        let done = self.change_then(change, Box::new(settle));
        // None settles it before this is let go of.
        if done.is_err() && self.system.has_doubt() {
            for row in rows {
                row.documents.doubt(true);
            }
        }
        done
    }
}

/// Sets or removes a document of a bucket's configuration; nothing of one that has no row.
pub(in crate::system) fn set_document(
    transaction: &Transaction<'_>,
    id: BucketId,
    kind: &str,
    document: Option<&str>,
) -> Result<()> {
    let run = || -> rusqlite::Result<()> {
        transaction.execute(
            "DELETE FROM bucket_configuration WHERE bucket_id = ? AND kind = ?",
            params![id.0, kind],
        )?;
        if let Some(document) = document {
            let sql = "INSERT INTO bucket_configuration(bucket_id, kind, document)
                       SELECT id, ?, ? FROM bucket WHERE id = ?";
            transaction.execute(sql, params![kind, document, id.0])?;
        }
        Ok(())
    };
    Ok(run().map_err(StoreError::from)?)
}

impl System {
    /// Sets or removes a document of a bucket's configuration. Durable when this returns.
    ///
    /// # Errors
    /// [`ConfigurationsFull`](crate::AdministrationError::ConfigurationsFull).
    pub(crate) fn configure(
        &self,
        row: &Arc<BucketRow>,
        kind: BucketConfiguration,
        document: Option<String>,
    ) -> Result<()> {
        // The server's own are bounds, of which the higher holds while one of them is in doubt.
        let is_own = OWN_KINDS.contains(&kind);
        let is_limited = document.is_some() && !is_own;
        let (id, level_id, kind) = (row.id, row.level_id, kind.name());
        let keep = document.clone();
        let change = move |transaction: &Transaction<'_>| {
            let room = is_limited.then(|| Room::look(transaction, level_id));
            let room = room.transpose()?;
            set_document(transaction, id, kind, keep.as_deref())?;
            if let Some(room) = room {
                room.refuse_above(transaction)?;
            }
            Ok(())
        };
        let changed = row.clone();
        let settle = move |_: &Self, has_happened: bool| {
            if has_happened {
                changed.documents.set(kind, document.map(Arc::from));
            }
        };
        let rows = if is_own {
            Vec::new()
        } else {
            vec![row.clone()]
        };
        self.held().change_of(rows, change, settle)
    }

    /// A document of a bucket's configuration; none while the bucket is out of use.
    pub(crate) fn configuration(
        &self,
        row: &BucketRow,
        kind: BucketConfiguration,
    ) -> Option<Arc<str>> {
        let is_out_of_use = row.is_out_of_use();
        row.documents.get(kind).filter(|_| !is_out_of_use)
    }
}
