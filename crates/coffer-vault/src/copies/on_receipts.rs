//! What receipts of erases say of copies.

use coffer_durable::rfc3339;
use coffer_keys::receipt::SealedCopy;
use coffer_replica::Place;

use super::{Copies, Entry};

/// What a copy can hold of what was erased.
const NOISE: &str = "noise without the keys that were destroyed: no keystore was put there. Who \
                     kept an older keystore apart, with its root key, opens by it what that store \
                     still has";

impl Copies {
    /// All copies that there are and were, as far as they are remembered; and what is to be said
    /// where that is not known.
    pub(crate) fn on_receipts(&self) -> (Vec<SealedCopy>, Option<String>) {
        let entries = self.registry.all();
        let unknown = (!self.is_readable).then(|| {
            "sealed copies: which there are is not known, for the file `copies` in the data folder \
             does not open"
                .to_owned()
        });
        (entries.iter().map(on_receipt).collect(), unknown)
    }
}

fn on_receipt(entry: &Entry) -> SealedCopy {
    let removed_at = entry.removed_ms.map(rfc3339);
    let holds = match &removed_at {
        None => format!(
            "sealed data of what was erased, until the next round that reaches it removes that, \
             and for as long as the store keeps what is removed: {NOISE}"
        ),
        Some(at) => format!(
            "sealed data of what was erased as of {at}, when it was given up, unless it was \
             removed by hand: {NOISE}"
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
    }
}
