//! What receipts of erases say of copies.

use coffer_durable::{now_ms, rfc3339};
use coffer_keys::Keystore;
use coffer_keys::receipt::{CopyKeystore, CopyKeystoreState, Receipt, SealedCopy};
use coffer_replica::{CopyId, Place};

use super::registry::{Registry, WithKeystore};
use super::{Copies, Entry};
use crate::error::Result;
use crate::system::System;

/// What a copy can hold of what was erased, where no keystore went along.
const NOISE: &str = "noise without the keys that were destroyed: no keystore was put there. Who \
                     kept an older keystore apart, with its root key, opens by it what that store \
                     still has";

/// Where the identity of an engine may be.
const BESIDE: &str = " (which may lie in that store as well, sealed by a passphrase or a token \
                      that the gateways share)";

impl Copies {
    /// All copies that there are and were, as far as they are remembered, as they stand to an erase
    /// that left this generation of the keystore; and what is to be said where they are not known.
    pub(crate) fn on_receipts(&self, generation: u64) -> (Vec<SealedCopy>, Option<String>) {
        let entries = self.registry.all();
        let unknown = (!self.is_readable).then(|| {
            "sealed copies: which there are is not known, for the file `copies` in the data folder \
             does not open"
                .to_owned()
        });
        let told = entries.iter().map(|entry| on_receipt(entry, generation));
        (told.collect(), unknown)
    }

    /// Remembers that a receipt, which is not kept yet, says of copies that they are pending.
    /// Blocks.
    pub(crate) fn note_pending(&self, receipt: &Receipt) -> Result<()> {
        let is_pending = |copy: &&SealedCopy| {
            let keystore = copy.keystore.as_ref();
            keystore.is_some_and(|keystore| keystore.state == CopyKeystoreState::Pending)
        };
        let copies = receipt.copies.iter().flatten();
        for copy in copies.filter(is_pending) {
            let id = self.registry.get(&copy.name)?.id;
            let receipt = receipt.id.clone();
            self.registry
                .change_keystore(id, |with| with.pending.push(receipt))?;
        }
        Ok(())
    }
}

impl Registry {
    /// Has receipts say that a copy has taken the keystore that they were waiting for, or was given
    /// up without, signed again. Gives their ids. Blocks.
    pub(crate) fn settle_receipts(
        &self,
        id: CopyId,
        system: &System,
        keystore: &Keystore,
    ) -> Result<Vec<String>> {
        let Some(entry) = self.all().into_iter().find(|entry| entry.id == id) else {
            return Ok(Vec::new());
        };
        let is_left = entry.removed_ms.is_some();
        let Some(with) = &entry.keystore else {
            return Ok(Vec::new());
        };
        let (mut settled, mut gone) = (Vec::new(), Vec::new());
        for pending in &with.pending {
            // One that was not kept any more by a stop has another in its place, which waits too.
            let Some(mut receipt) = system.receipt(pending)? else {
                gone.push(pending.clone());
                continue;
            };
            let wanted = receipt.erased.keystore_generation;
            let is_waiting = with.taken.is_none_or(|taken| taken.generation < wanted);
            if is_waiting && !is_left {
                continue;
            }
            for copy in receipt.copies.iter_mut().flatten() {
                // Each gateway that takes an engine's log over has it made anew.
                let is_same = with.is_of_engine || copy.made_at == rfc3339(entry.made_ms);
                if copy.name == entry.name && is_same {
                    *copy = on_receipt(&entry, wanted);
                }
            }
            let signed_ms = now_ms();
            system.replace_receipt(&keystore.sign_again(receipt, signed_ms)?)?;
            settled.push(pending.clone());
        }
        if !settled.is_empty() || !gone.is_empty() {
            let is_over = |id: &String| settled.contains(id) || gone.contains(id);
            self.change_keystore(id, |with| with.pending.retain(|id| !is_over(id)))?;
        }
        Ok(settled)
    }
}

fn on_receipt(entry: &Entry, generation: u64) -> SealedCopy {
    let removed_at = entry.removed_ms.map(rfc3339);
    let keystore = entry.keystore.as_ref();
    let keystore = keystore.map(|with| keystore_on_receipt(with, &removed_at, generation));
    let is_of_engine = entry
        .keystore
        .as_ref()
        .is_some_and(|with| with.is_of_engine);
    let holds_keys = |keystore| holds_keys(keystore, is_of_engine);
    let noise = keystore.as_ref().map_or(NOISE.to_owned(), holds_keys);
    let holds = match &removed_at {
        None => format!(
            "sealed data of what was erased, until the next round that reaches it removes that, \
             and for as long as the store keeps what is removed: {noise}"
        ),
        Some(at) => format!(
            "sealed data of what was erased as of {at}, when it was given up, unless it was \
             removed by hand: {noise}"
        ),
    };
    // What could be parsed when the copy was made.
    let url = Place::parse(&entry.url).map_or(String::new(), |place| place.public_url());
    SealedCopy {
        name: entry.name.clone(),
        url,
        made_at: rfc3339(entry.made_ms),
        removed_at,
        keep_seconds: entry.keep_ms.unsigned_abs() / 1_000,
        holds,
        keystore,
    }
}

fn keystore_on_receipt(
    with: &WithKeystore,
    removed_at: &Option<String>,
    generation: u64,
) -> CopyKeystore {
    let is_taken = with
        .taken
        .is_some_and(|taken| taken.generation >= generation);
    CopyKeystore {
        state: match removed_at {
            _ if is_taken => CopyKeystoreState::Taken,
            None => CopyKeystoreState::Pending,
            Some(_) => CopyKeystoreState::Left,
        },
        generation: with.taken.map(|taken| taken.generation),
        taken_at: with.taken.map(|taken| rfc3339(taken.at_ms)),
        recipients: with.recipients.clone(),
    }
}

/// Who can open what, of a copy that holds a keystore.
fn holds_keys(keystore: &CopyKeystore, is_of_engine: bool) -> String {
    let beside = if is_of_engine { BESIDE } else { "" };
    let opener = match &keystore.recipients[..] {
        [] => "with the root key of its time".to_owned(),
        recipients => format!("with an identity of {}{beside}", recipients.join(" or ")),
    };
    match keystore.state {
        CopyKeystoreState::Taken => format!(
            "noise without the keys that were destroyed: the copy took the keystore without them, \
             and the ones before were removed from it. Who kept one of those, or the store if it \
             keeps what is removed, opens it {opener}"
        ),
        CopyKeystoreState::Pending => format!(
            "and PENDING: the keystore without the keys that were destroyed has not reached it, \
             or one of before is there beside it; what it has opens with that {opener}. It is \
             tried again until it is done, and then this receipt says when"
        ),
        CopyKeystoreState::Left => {
            format!("and the keystore of that time, with the keys, which opens it {opener}")
        }
    }
}
