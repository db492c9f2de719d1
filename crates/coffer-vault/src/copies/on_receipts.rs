//! What receipts of erases say of copies.

use coffer_durable::{now_ms, rfc3339};
use coffer_keys::Keystore;
use coffer_keys::receipt::{CopyKeystore, CopyKeystoreState, Receipt, SealedCopy};
use coffer_replica::{CopyId, Place};
use coffer_seal::BucketId;

use super::registry::{Registry, WithKeystore};
use super::{Copies, Entry};
use crate::error::Result;
use crate::system::{System, WentOn};

/// What a copy can hold of what was erased, where no keystore went along.
const NOISE: &str = "noise without the keys that were destroyed: no keystore was put there. Who \
                     kept an older keystore apart, with its root key, opens by it what that store \
                     still has";

/// Where the identity of an engine may be.
const BESIDE: &str = " (which may lie in that store as well, sealed by a passphrase or a token \
                      that the gateways share)";

/// What may be in folders of gateways.
const GATEWAYS: &str = "folders of this engine's gateways that did not follow when the keys were \
                        destroyed, for they were stopped or could not reach the store: each holds \
                        the keystore with the keys, which opens with the root key of its time, and \
                        the sealed data that it had, until it follows again or is removed by hand. \
                        Which there are is not known";

/// What may be in folders of standbys.
const STANDBYS: &str = "folders of standbys of a sealed copy that holds a keystore: what was \
                        destroyed opens there with an identity of the copy until they follow the \
                        copy to a state without the keys, or are removed by hand. Which there are \
                        is not known";

/// What may be in what a server went on from, and in all else that is of the server before.
const ORIGIN: &str = "and the server that this is of, with its other backups and copies and those \
                      who follow them: none of them hears of this erase. Where one holds the \
                      keystore with the keys, what was destroyed opens there with an identity of \
                      the copy or the root key of then. Which there are is not known";

/// What may remain where a server went on from a copy, unless what was erased was made since.
pub(crate) fn left_of_origin(went_on: Option<WentOn>, made_ms: Option<i64>) -> Option<String> {
    let WentOn { at_ms, followed } = went_on?;
    let is_since = made_ms.is_some_and(|made_ms| made_ms > at_ms);
    let began_with = followed.map_or_else(
        || "a backup, a sealed copy or a standby of one".to_owned(),
        |url| format!("a standby of the sealed copy, or the engine's log, at {url}"),
    );
    (!is_since).then(|| format!("what this server began with, which is {began_with}, {ORIGIN}"))
}

/// What a receipt says of copies.
pub(crate) struct OnReceipt {
    /// Those that could hold something of what was erased.
    pub(crate) copies: Vec<SealedCopy>,
    /// That others could not, in a sentence.
    pub(crate) passed: Option<String>,
    /// What may remain where they are not known, and in folders of those who follow them.
    pub(crate) unknown: Vec<String>,
}

impl Copies {
    /// The copies that there are and were, as far as they are remembered, as they stand to an erase
    /// that left this generation of the keystore. Those that were given up before what was erased
    /// was made are passed over; where it is not known when that was, none is.
    pub(crate) fn on_receipts(&self, generation: u64, made_ms: Option<i64>) -> OnReceipt {
        let entries = self.registry.all();
        let unreadable = "sealed copies: which there are is not known, for the file `copies` in \
                          the data folder does not open";
        let is_passed = |entry: &&Entry| made_ms.is_some_and(|at| ended_before(entry, at));
        let (passed, told): (Vec<_>, Vec<_>) = entries.iter().partition(is_passed);
        let passed = (!passed.is_empty()).then(|| {
            let count = passed.len();
            format!(
                "sealed copies that were given up before what was erased was made, so that nothing \
                 of it was ever in them, and are not listed: {count}"
            )
        });
        let has_standbys = |entry: &&Entry| !entry.is_log() && entry.keystore.is_some();
        let unknown = [
            (!self.is_readable).then_some(unreadable),
            told.iter().any(|entry| entry.is_log()).then_some(GATEWAYS),
            told.iter().any(has_standbys).then_some(STANDBYS),
        ];
        let unknown = unknown.into_iter().flatten().map(str::to_owned).collect();
        let told = told.into_iter().map(|entry| on_receipt(entry, generation));
        OnReceipt {
            copies: told.collect(),
            passed,
            unknown,
        }
    }

    /// Remembers that a receipt, which is not kept yet, says of copies that they are pending.
    /// Blocks.
    pub(crate) fn note_pending(&self, receipt: &Receipt) -> Result<()> {
        let entries = self.registry.all().into_iter();
        for entry in entries.filter(|entry| waits_for(receipt, entry)) {
            let receipt = receipt.id.clone();
            self.registry
                .change_keystore(entry.id, |with| with.pending.push(receipt))?;
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
            let is_taken = with.has_taken(wanted) && !holds_any(keystore, &receipt);
            if !is_taken && !is_left {
                continue;
            }
            let mut has_waited = false;
            for copy in receipt.copies.iter_mut().flatten() {
                if is_pending(copy) && is_of(copy, &entry) {
                    // Where and since when it is stays as it was told, and by which name and id.
                    *copy = SealedCopy {
                        name: copy.name.clone(),
                        id: copy.id.clone(),
                        url: copy.url.clone(),
                        made_at: copy.made_at.clone(),
                        ..on_receipt(&entry, wanted)
                    };
                    has_waited = true;
                }
            }
            if !has_waited {
                // What may be of this copy, and says pending, goes on waiting.
                if !may_wait_for(&receipt, &entry) {
                    gone.push(pending.clone());
                }
                continue;
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

/// Whether the keystore has any of the keys that a receipt says were destroyed, as one that was put
/// back since has.
fn holds_any(keystore: &Keystore, receipt: &Receipt) -> bool {
    let ids = receipt.erased.buckets.iter();
    let mut ids = ids.filter_map(|bucket| BucketId::from_hex(&bucket.id));
    ids.any(|id| keystore.holds_bucket(id))
}

/// Whether a receipt says of a copy that it is yet to take a keystore.
fn is_pending(copy: &SealedCopy) -> bool {
    let keystore = copy.keystore.as_ref();
    keystore.is_some_and(|keystore| keystore.state == CopyKeystoreState::Pending)
}

/// Whether it is surely of this copy that a receipt says something. Its id alone tells an engine's
/// log: that is reached by several URLs, another one may lie at the same later, and who takes it
/// over may have another clock. Receipts of earlier versions have no ids: of those the very moment
/// when it was made tells it, and one that is in doubt stays pending.
fn is_of(copy: &SealedCopy, entry: &Entry) -> bool {
    match &copy.id {
        Some(id) => *id == entry.id.to_string(),
        None => copy.name == entry.name && copy.made_at == rfc3339(entry.made_ms),
    }
}

/// Whether a receipt waits for this copy.
fn waits_for(receipt: &Receipt, entry: &Entry) -> bool {
    let copies = receipt.copies.iter().flatten();
    let mut waiting = copies.filter(|copy| is_pending(copy));
    waiting.any(|copy| is_of(copy, entry))
}

/// Whether a receipt may wait for this copy: one without ids may for any of the name.
pub(super) fn may_wait_for(receipt: &Receipt, entry: &Entry) -> bool {
    let copies = receipt.copies.iter().flatten();
    let mut waiting = copies.filter(|copy| is_pending(copy) && copy.id.is_none());
    waits_for(receipt, entry) || waiting.any(|copy| copy.name == entry.name)
}

impl Entry {
    /// Where it is, as receipts say it.
    pub(super) fn public_url(&self) -> String {
        // What could be parsed when the copy was made.
        Place::parse(&self.url).map_or(String::new(), |place| place.public_url())
    }

    /// Whether it is the log of an engine.
    fn is_log(&self) -> bool {
        self.keystore.as_ref().is_some_and(|with| with.is_of_engine)
    }
}

/// Whether a copy was given up before what is said to be made then. Clocks are set, forward and
/// back, so that the two times alone tell little. But what was there when the copy was given up is
/// no newer than the newest that there was. So it has to be newer than that as well; what is in
/// doubt is listed.
fn ended_before(entry: &Entry, made_ms: i64) -> bool {
    let (Some(removed_ms), Some(newest_ms)) = (entry.removed_ms, entry.newest_ms) else {
        return false;
    };
    made_ms > newest_ms.max(removed_ms)
}

fn on_receipt(entry: &Entry, generation: u64) -> SealedCopy {
    let removed_at = entry.removed_ms.map(rfc3339);
    let keystore = entry.keystore.as_ref();
    let keystore = keystore.map(|with| keystore_on_receipt(with, &removed_at, generation));
    let holds_keys = |keystore| holds_keys(keystore, entry.is_log());
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
    SealedCopy {
        name: entry.name.clone(),
        id: Some(entry.id.to_string()),
        url: entry.public_url(),
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
    CopyKeystore {
        state: match removed_at {
            _ if with.has_taken(generation) => CopyKeystoreState::Taken,
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
             or one of before is there still, beside it or as a version that the store keeps; what \
             it has opens with that {opener}. It is tried again until it is done, and then this \
             receipt says when"
        ),
        CopyKeystoreState::Left => {
            format!("and the keystore of that time, with the keys, which opens it {opener}")
        }
    }
}

#[cfg(test)]
mod tests;
