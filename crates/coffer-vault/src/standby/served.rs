//! A state that is served, until the next takes its place.

use std::collections::VecDeque;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coffer_durable::now_ms;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::states;
use crate::blocking::blocking;
use crate::fence::StandbyLink;
use crate::gateways::Position;
use crate::limits::{STANDBY_STATES_MAX, STANDBY_USE_LOOKS_EVERY};
use crate::vault::Vault;

/// A state that is served.
pub struct ServedState {
    /// What is served.
    pub vault: Vault,
    /// Held, beside by this, by whatever is under way in it.
    pub lease: Arc<()>,
    /// How far it has come; not known of what an earlier run left.
    pub position: Option<Position>,
}

/// States in whose place others have come.
#[derive(Default)]
pub struct FormerStates {
    ending: VecDeque<(CancellationToken, JoinHandle<()>)>,
    /// How many of them have not ended.
    count: Arc<AtomicUsize>,
}

/// A state that has not ended.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServedState {
    /// Cuts off what is under way here and would be refused by the next: requests of access keys
    /// that count no more, and in buckets that are gone or of which the key was destroyed. The
    /// latter not at a gateway, which hears of what was erased from the one that serves, and ends
    /// then what it is answering (`gateways`).
    pub fn cut_off_by(&self, next: &Self) {
        let (old, new) = (&self.vault.inner, &next.vault.inner);
        for entry in old.system.all_subjects() {
            for key in entry.access_keys() {
                if new.system.subject(&key.id, now_ms).is_none()
                    && let Some(holder) = old.system.subject(&key.id, now_ms)
                {
                    holder.cutoff.cut();
                }
            }
        }
        if old.standby.as_ref().is_some_and(StandbyLink::is_of_engine) {
            return;
        }
        let is_gone = |id| !new.keystore.holds_bucket(id) || new.system.bucket_of_id(id).is_none();
        let rows = old.system.buckets().into_iter();
        let gone: Vec<_> = rows.map(|row| row.id).filter(|id| is_gone(*id)).collect();
        if !gone.is_empty() {
            old.open_buckets.bar(&gone);
        }
    }

    /// Closes it when nothing of it is under way any more, or at once when it is told to, and
    /// removes it; what opens it goes before.
    async fn end(self, at_once: CancellationToken, _counted: Counted) {
        self.remove_keys().await;
        while Arc::strong_count(&self.lease) > 1 && !at_once.is_cancelled() {
            tokio::select! {
                () = sleep(STANDBY_USE_LOOKS_EVERY) => {}
                () = at_once.cancelled() => {}
            }
        }
        let folder = self.vault.data().to_owned();
        self.vault.close().await;
        drop(self);
        let removed = tokio::task::spawn_blocking(move || fs::remove_dir_all(folder));
        let _ = removed.await;
    }

    /// Who reads from it may do so for long, and its keystore may have keys that are destroyed.
    async fn remove_keys(&self) {
        let folder = self.vault.data().to_owned();
        if let Err(error) = blocking(move || states::remove_keys(&folder)).await {
            tracing::warn!(
                %error,
                "the keystore of a state that is served no more could not be removed: it is there \
                 until nothing reads from that state any more"
            );
        }
    }
}

impl FormerStates {
    /// None yet; how many have not ended is counted there.
    pub fn counted_by(count: Arc<AtomicUsize>) -> Self {
        Self {
            count,
            ending: VecDeque::new(),
        }
    }

    /// Whether one more would have the oldest be cut off.
    pub fn is_full(&self) -> bool {
        self.count.load(Ordering::SeqCst) >= STANDBY_STATES_MAX
    }

    /// Takes one in whose place another has come.
    pub fn add(&mut self, state: ServedState) {
        self.ending.retain(|(_, task)| !task.is_finished());
        let at_once = CancellationToken::new();
        let counted = Counted::new(&self.count);
        let task = tokio::spawn(state.end(at_once.clone(), counted));
        self.ending.push_back((at_once, task));
        if self.ending.len() > STANDBY_STATES_MAX
            && let Some((oldest, _)) = self.ending.pop_front()
        {
            oldest.cancel();
        }
    }

    /// Closes all of them now.
    pub async fn close(self) {
        for (at_once, _) in &self.ending {
            at_once.cancel();
        }
        for (_, task) in self.ending {
            let _ = task.await;
        }
    }
}
