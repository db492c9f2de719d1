//! Who may hold a connection, and who has to give one up.
//!
//! A listener has so many slots. When they are scarce, no newcomer waits for what others leave
//! idle: the connection that is idle and has not signed in for longest is closed, of the address
//! that has most of them; where there is none, one that is idle and has signed in. One address can
//! never hold all slots. So idle connections, however many, keep no one out; requests under way are
//! left alone.
//!
//! Connections are counted here when they begin, sign in and end. Requests only add to two counters
//! of their own connection.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use coffer_vault::neighbourhood;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::connection::activity::Activity;
use crate::limits::{LEAVING_MAX, SLOT_LOOK, SLOTS_FOR_OTHERS};

/// The slots of one listener.
#[derive(Debug)]
pub struct Slots {
    limit: usize,
    /// Slots that one address holds at most.
    per_address: usize,
    /// Slots beyond the limit, for connections that may only ask how the server is.
    reserve: usize,
    occupancy: Mutex<Occupancy>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Occupancy {
    next: u64,
    /// Connections that count.
    taken: usize,
    /// Of them, those beyond the limit.
    reserved: usize,
    /// Connections that were told to leave, and have not yet.
    leaving: usize,
    addresses: HashMap<IpAddr, AddressConnections>,
}

/// The connections of one address, oldest first.
#[derive(Debug, Default)]
struct AddressConnections {
    anonymous: BTreeMap<u64, Arc<Activity>>,
    signed_in: BTreeMap<u64, Arc<Activity>>,
}

impl AddressConnections {
    fn len(&self) -> usize {
        self.anonymous.len() + self.signed_in.len()
    }

    fn of(&self, class: Class) -> &BTreeMap<u64, Arc<Activity>> {
        match class {
            Class::Anonymous => &self.anonymous,
            Class::SignedIn => &self.signed_in,
        }
    }
}

/// Who is asked to leave first.
#[derive(Debug, Clone, Copy)]
enum Class {
    Anonymous,
    SignedIn,
}

/// A slot that is taken; free again when dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    number: u64,
    address: IpAddr,
    activity: Arc<Activity>,
}

/// The address already holds as many slots as one may, all of them in use.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

impl Slots {
    /// So many slots, and some in reserve. One address holds at most all but an eighth: of a few
    /// slots none is kept for others, there newcomers wait.
    pub fn new(limit: usize, reserve: usize) -> Arc<Self> {
        Self::shared(limit, reserve, None)
    }

    /// The same, where one address holds at most `per_address`.
    pub fn shared(limit: usize, reserve: usize, per_address: Option<usize>) -> Arc<Self> {
        let limit = limit.max(1);
        let kept = limit / SLOTS_FOR_OTHERS;
        let shared = if kept == 0 { usize::MAX } else { limit - kept };
        Arc::new(Self {
            limit,
            per_address: per_address.unwrap_or(shared),
            reserve,
            occupancy: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// A slot for a connection from an address. Waits only while all slots are in use.
    ///
    /// # Errors
    /// [`TooMany`]: this address gets none.
    pub async fn take(self: &Arc<Self>, address: IpAddr) -> Result<Slot, TooMany> {
        let mut warned = false;
        loop {
            let freed = self.freed.notified();
            if let Some(taken) = self.try_take(neighbourhood(address)) {
                return taken;
            }
            if !std::mem::replace(&mut warned, true) {
                let connections = self.limit;
                tracing::warn!(
                    connections,
                    "as many connections in use as allowed: others wait"
                );
            }
            // One that becomes idle does not tell: so a look now and then.
            let _ = timeout(SLOT_LOOK, freed).await;
        }
    }

    /// None if all are in use.
    fn try_take(self: &Arc<Self>, address: IpAddr) -> Option<Result<Slot, TooMany>> {
        let mut occupancy = self.occupancy.lock();
        let mut is_reserved = false;
        if !self.makes_room(&mut occupancy, address) {
            return Some(Err(TooMany));
        }
        if occupancy.leaving > LEAVING_MAX {
            return None;
        }
        if occupancy.taken - occupancy.reserved >= self.limit && !occupancy.evict(None) {
            is_reserved = occupancy.reserved < self.reserve;
            if !is_reserved {
                return None;
            }
        }
        let activity = Arc::new(Activity::new(is_reserved));
        let number = occupancy.enter(address, &activity);
        drop(occupancy);
        Some(Ok(Slot {
            slots: self.clone(),
            number,
            address,
            activity,
        }))
    }

    /// Whether an address may have one more connection; an idle one of its own may go for it.
    fn makes_room(&self, occupancy: &mut Occupancy, address: IpAddr) -> bool {
        let own = occupancy
            .addresses
            .get(&address)
            .map_or(0, AddressConnections::len);
        own < self.per_address || occupancy.evict(Some(address))
    }

    /// How many connections there are, those that leave not counted.
    pub fn taken(&self) -> usize {
        self.occupancy.lock().taken
    }

    /// Waits until all connections have ended.
    pub async fn all_free(&self) {
        loop {
            let freed = self.freed.notified();
            if self.is_empty() {
                return;
            }
            let _ = timeout(SLOT_LOOK, freed).await;
        }
    }

    fn is_empty(&self) -> bool {
        let occupancy = self.occupancy.lock();
        occupancy.taken + occupancy.leaving == 0
    }
}

impl Occupancy {
    fn enter(&mut self, address: IpAddr, activity: &Arc<Activity>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.taken += 1;
        self.reserved += usize::from(activity.is_reserved());
        let held = self.addresses.entry(address).or_default();
        held.anonymous.insert(number, activity.clone());
        number
    }

    /// Takes a connection out of the count, if it is in it.
    fn remove(&mut self, address: IpAddr, number: u64) -> Option<Arc<Activity>> {
        let held = self.addresses.get_mut(&address)?;
        let activity = held.anonymous.remove(&number);
        let activity = activity.or_else(|| held.signed_in.remove(&number))?;
        if held.len() == 0 {
            self.addresses.remove(&address);
        }
        self.taken -= 1;
        self.reserved -= usize::from(activity.is_reserved());
        Some(activity)
    }

    /// Tells an idle connection to leave: of one address, or of that which has most. Says whether
    /// there was one.
    fn evict(&mut self, of: Option<IpAddr>) -> bool {
        let found = [Class::Anonymous, Class::SignedIn]
            .into_iter()
            .find_map(|class| self.idle(of, class));
        let Some((address, number)) = found else {
            return false;
        };
        if let Some(activity) = self.remove(address, number) {
            activity.ask_to_leave();
            self.leaving += 1;
        }
        true
    }

    fn idle(&self, of: Option<IpAddr>, class: Class) -> Option<(IpAddr, u64)> {
        let (mut most, mut found) = (0, None);
        for (address, held) in &self.addresses {
            let activities = held.of(class);
            if of.is_some_and(|of| of != *address) || activities.len() <= most {
                continue;
            }
            if let Some((number, _)) = activities.iter().find(|(_, activity)| activity.is_idle()) {
                most = activities.len();
                found = Some((*address, *number));
            }
        }
        found
    }
}

impl Slot {
    /// The connection as requests see it.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Counts the connection as another address's from now on: a proxy has told whose it is.
    ///
    /// # Errors
    /// [`TooMany`]: that address has as many as it may.
    pub fn belongs_to(&mut self, address: IpAddr) -> Result<(), TooMany> {
        let address = neighbourhood(address);
        let mut occupancy = self.slots.occupancy.lock();
        if !self.slots.makes_room(&mut occupancy, address) {
            return Err(TooMany);
        }
        if let Some(activity) = occupancy.remove(self.address, self.number) {
            occupancy.taken += 1;
            occupancy.reserved += usize::from(activity.is_reserved());
            let held = occupancy.addresses.entry(address).or_default();
            held.anonymous.insert(self.number, activity);
            self.address = address;
        }
        Ok(())
    }

    /// Notes that a request was signed rightly: others leave first from now on.
    pub fn sign_in(&self) {
        if !self.activity.sign_in() {
            return;
        }
        let mut occupancy = self.slots.occupancy.lock();
        if let Some(held) = occupancy.addresses.get_mut(&self.address)
            && let Some(activity) = held.anonymous.remove(&self.number)
        {
            held.signed_in.insert(self.number, activity);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut occupancy = self.slots.occupancy.lock();
        if occupancy.remove(self.address, self.number).is_none() {
            occupancy.leaving -= 1;
        }
        drop(occupancy);
        self.slots.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
