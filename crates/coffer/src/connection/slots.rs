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
    /// So many slots, and some in reserve.
    pub fn new(limit: usize, reserve: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
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

    /// Whether an address may have one more connection; an idle one of its own may go for it. Of a
    /// few slots none is kept for others: there, newcomers wait.
    fn makes_room(&self, occupancy: &mut Occupancy, address: IpAddr) -> bool {
        let kept = self.limit / SLOTS_FOR_OTHERS;
        let own = occupancy
            .addresses
            .get(&address)
            .map_or(0, AddressConnections::len);
        kept == 0 || own < self.limit - kept || occupancy.evict(Some(address))
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
mod tests {
    use super::*;
    use std::time::Duration;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    async fn is_told(slot: &Slot) -> bool {
        timeout(Duration::from_millis(1), slot.activity().asked_to_leave())
            .await
            .is_ok()
    }

    async fn take(slots: &Arc<Slots>, text: &str) -> Option<Slot> {
        let taken = timeout(Duration::from_millis(20), slots.take(address(text))).await;
        taken.ok().and_then(Result::ok)
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_idle_stranger_of_the_fullest_address_leaves_first() {
        let slots = Slots::new(6, 0);
        let mut held = Vec::new();
        for last in [1, 7, 7, 9, 9, 9] {
            held.push(take(&slots, &format!("192.0.2.{last}")).await.unwrap());
        }
        held[1].activity().begin();
        held[2].sign_in();
        held[3].activity().set_sending(true);
        let _newcomer = take(&slots, "192.0.2.8").await.unwrap();
        assert!(is_told(&held[4]).await && slots.taken() == 6);
        let _another = take(&slots, "192.0.2.8").await.unwrap();
        assert!(is_told(&held[5]).await && !is_told(&held[3]).await);
        held.drain(..).for_each(drop);
        assert_eq!(slots.taken(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_signed_in_leaves_after_all_who_have_not_and_work_is_left_alone() {
        let slots = Slots::new(2, 0);
        let [one, two] = [take(&slots, "::1").await, take(&slots, "127.0.0.2").await];
        let (one, two) = (one.unwrap(), two.unwrap());
        one.sign_in();
        let three = take(&slots, "127.0.0.3").await.unwrap();
        assert!(is_told(&two).await && !is_told(&one).await);
        three.activity().begin();
        let four = take(&slots, "127.0.0.4").await.unwrap();
        assert!(is_told(&one).await);
        four.activity().begin();
        assert!(take(&slots, "127.0.0.5").await.is_none(), "all are at work");
        four.activity().end();
        assert!(take(&slots, "127.0.0.5").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn no_address_holds_all_slots() {
        let slots = Slots::new(16, 0);
        let mut held = Vec::new();
        for number in 0..14 {
            // All of one network of IPv6.
            let slot = take(&slots, &format!("2001:db8::{number}")).await.unwrap();
            slot.activity().begin();
            held.push(slot);
        }
        let refused = slots.take(address("2001:db8::ff")).await;
        assert_eq!(refused.err(), Some(TooMany));
        assert!(take(&slots, "2001:db8:0:1::").await.is_some());
        held[3].activity().end();
        assert!(take(&slots, "2001:db8::ff").await.is_some());
        assert!(is_told(&held[3]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reserve_is_there_when_all_else_is_in_use() {
        let slots = Slots::new(2, 1);
        let held = [take(&slots, "::1").await, take(&slots, "::1").await].map(Option::unwrap);
        held.iter().for_each(|slot| slot.activity().begin());
        let probe = take(&slots, "127.0.0.1").await.unwrap();
        assert!(probe.activity().is_reserved() && !held[0].activity().is_reserved());
        probe.activity().begin();
        assert!(take(&slots, "127.0.0.1").await.is_none());
        drop(probe);
        assert!(take(&slots, "127.0.0.1").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_tells_whose_a_connection_is_and_the_end_waits_for_all() {
        let slots = Slots::new(8, 0);
        let mut held = Vec::new();
        for number in 0..7 {
            let mut slot = take(&slots, "10.0.0.1").await.unwrap();
            slot.belongs_to(address(&format!("192.0.2.{number}")))
                .unwrap();
            slot.activity().begin();
            held.push(slot);
        }
        assert!(take(&slots, "10.0.0.1").await.is_some());
        let waits = tokio::spawn({
            let slots = slots.clone();
            async move { slots.all_free().await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        held.clear();
        waits.await.unwrap();
    }
}
