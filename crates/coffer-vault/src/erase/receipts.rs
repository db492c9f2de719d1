//! Receipts: kept for good, shown to auditors and custodians.

use coffer_keys::receipt::{Receipt, ReceiptPublicKey};

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::limits::RECEIPTS_PAGE;
use crate::system::ReceiptSummary;
use crate::vault::Vault;

impl Vault {
    /// A page of receipts, the newest first, that were signed before `before_ms` (milliseconds
    /// since 1970), or the newest; at most [`RECEIPTS_PAGE`].
    pub async fn receipts(
        &self,
        actor: &Actor,
        before_ms: Option<i64>,
    ) -> Result<Vec<ReceiptSummary>> {
        self.may_see_receipts(actor)?;
        let inner = self.inner.clone();
        let before_ms = before_ms.unwrap_or(i64::MAX);
        blocking(move || inner.system.receipts(before_ms, RECEIPTS_PAGE)).await
    }

    /// A receipt.
    ///
    /// # Errors
    /// [`VaultError::NoSuchReceipt`].
    pub async fn receipt(&self, actor: &Actor, id: &str) -> Result<Receipt> {
        self.may_see_receipts(actor)?;
        let (inner, id) = (self.inner.clone(), id.to_owned());
        blocking(move || inner.system.receipt(&id)?.ok_or(VaultError::NoSuchReceipt)).await
    }

    /// The key that verifies this server's receipts. It is no secret.
    pub fn receipt_public_key(&self) -> Result<ReceiptPublicKey> {
        Ok(self.inner.keystore.receipt_public_key()?)
    }

    fn may_see_receipts(&self, actor: &Actor) -> Result<()> {
        if actor.has(Role::Auditor) {
            Ok(())
        } else {
            self.refuse_but_custodians(actor, Act::ShowReceipt, &Facts::new())
        }
    }
}
