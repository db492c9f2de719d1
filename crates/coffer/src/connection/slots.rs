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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coffer_vault::neighbourhood;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::connection::activity::Seat;
use crate::limits::{LEAVING_MAX, SLOT_LOOK, SLOTS_FOR_OTHERS};

/// The slots of one listener.
#[derive(Debug)]
pub struct Slots {
    limit: usize,
    /// Slots beyond the limit, for connections that may only ask how the server is.
    reserve: usize,
    hall: Mutex<Hall>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Hall {
    next: u64,
    /// Connections that count.
    taken: usize,
    /// Of them, those beyond the limit.
    reserved: usize,
    /// Connections that were told to leave, and have not yet.
    leaving: usize,
    blocks: HashMap<IpAddr, Block>,
}

/// The connections of one address, oldest first.
#[derive(Debug, Default)]
struct Block {
    anonymous: BTreeMap<u64, Arc<Seat>>,
    signed_in: BTreeMap<u64, Arc<Seat>>,
}

impl Block {
    fn len(&self) -> usize {
        self.anonymous.len() + self.signed_in.len()
    }

    fn of(&self, class: Class) -> &BTreeMap<u64, Arc<Seat>> {
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
    seat: Arc<Seat>,
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
            hall: Mutex::default(),
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
            // One that becomes idle tells nobody: so a look now and then.
            let _ = timeout(SLOT_LOOK, freed).await;
        }
    }

    /// None if all are in use.
    fn try_take(self: &Arc<Self>, address: IpAddr) -> Option<Result<Slot, TooMany>> {
        let mut hall = self.hall();
        let mut is_reserved = false;
        if !self.makes_room(&mut hall, address) {
            return Some(Err(TooMany));
        }
        if hall.leaving > LEAVING_MAX {
            return None;
        }
        if hall.taken - hall.reserved >= self.limit && !hall.evict(None) {
            is_reserved = hall.reserved < self.reserve;
            if !is_reserved {
                return None;
            }
        }
        let seat = Arc::new(Seat::new(is_reserved));
        let number = hall.enter(address, &seat);
        drop(hall);
        Some(Ok(Slot {
            slots: self.clone(),
            number,
            address,
            seat,
        }))
    }

    /// Whether an address may have one more connection; an idle one of its own may go for it. Of a
    /// few slots none is kept for others: there, newcomers wait.
    fn makes_room(&self, hall: &mut Hall, address: IpAddr) -> bool {
        let kept = self.limit / SLOTS_FOR_OTHERS;
        let own = hall.blocks.get(&address).map_or(0, Block::len);
        kept == 0 || own < self.limit - kept || hall.evict(Some(address))
    }

    /// How many connections there are, those that leave not counted.
    pub fn taken(&self) -> usize {
        self.hall().taken
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
        let hall = self.hall();
        hall.taken + hall.leaving == 0
    }

    fn hall(&self) -> MutexGuard<'_, Hall> {
        // Nothing that runs under this lock panics half-way through a change.
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hall {
    fn enter(&mut self, address: IpAddr, seat: &Arc<Seat>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.taken += 1;
        self.reserved += usize::from(seat.is_reserved());
        let block = self.blocks.entry(address).or_default();
        block.anonymous.insert(number, seat.clone());
        number
    }

    /// Takes a connection out of the count, if it is in it.
    fn remove(&mut self, address: IpAddr, number: u64) -> Option<Arc<Seat>> {
        let block = self.blocks.get_mut(&address)?;
        let seat = block.anonymous.remove(&number);
        let seat = seat.or_else(|| block.signed_in.remove(&number))?;
        if block.len() == 0 {
            self.blocks.remove(&address);
        }
        self.taken -= 1;
        self.reserved -= usize::from(seat.is_reserved());
        Some(seat)
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
        if let Some(seat) = self.remove(address, number) {
            seat.tell();
            self.leaving += 1;
        }
        true
    }

    fn idle(&self, of: Option<IpAddr>, class: Class) -> Option<(IpAddr, u64)> {
        let (mut most, mut found) = (0, None);
        for (address, block) in &self.blocks {
            let seats = block.of(class);
            if of.is_some_and(|of| of != *address) || seats.len() <= most {
                continue;
            }
            if let Some((number, _)) = seats.iter().find(|(_, seat)| seat.is_idle()) {
                most = seats.len();
                found = Some((*address, *number));
            }
        }
        found
    }
}

impl Slot {
    /// The connection as requests see it.
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Counts the connection as another address's from now on: a proxy has told whose it is.
    ///
    /// # Errors
    /// [`TooMany`]: that address has as many as it may.
    pub fn belongs_to(&mut self, address: IpAddr) -> Result<(), TooMany> {
        let address = neighbourhood(address);
        let mut hall = self.slots.hall();
        if !self.slots.makes_room(&mut hall, address) {
            return Err(TooMany);
        }
        if let Some(seat) = hall.remove(self.address, self.number) {
            hall.taken += 1;
            hall.reserved += usize::from(seat.is_reserved());
            let block = hall.blocks.entry(address).or_default();
            block.anonymous.insert(self.number, seat);
            self.address = address;
        }
        Ok(())
    }

    /// Notes that a request was signed rightly: others leave first from now on.
    pub fn sign_in(&self) {
        if !self.seat.sign_in() {
            return;
        }
        let mut hall = self.slots.hall();
        if let Some(block) = hall.blocks.get_mut(&self.address)
            && let Some(seat) = block.anonymous.remove(&self.number)
        {
            block.signed_in.insert(self.number, seat);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut hall = self.slots.hall();
        if hall.remove(self.address, self.number).is_none() {
            hall.leaving -= 1;
        }
        drop(hall);
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
        timeout(Duration::from_millis(1), slot.seat().told_to_leave())
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
        held[1].seat().begin();
        held[2].sign_in();
        held[3].seat().set_sending(true);
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
        three.seat().begin();
        let four = take(&slots, "127.0.0.4").await.unwrap();
        assert!(is_told(&one).await);
        four.seat().begin();
        assert!(take(&slots, "127.0.0.5").await.is_none(), "all are at work");
        four.seat().end();
        assert!(take(&slots, "127.0.0.5").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn no_address_holds_all_slots() {
        let slots = Slots::new(16, 0);
        let mut held = Vec::new();
        for number in 0..14 {
            // All of one network of IPv6.
            let slot = take(&slots, &format!("2001:db8::{number}")).await.unwrap();
            slot.seat().begin();
            held.push(slot);
        }
        let refused = slots.take(address("2001:db8::ff")).await;
        assert_eq!(refused.err(), Some(TooMany));
        assert!(take(&slots, "2001:db8:0:1::").await.is_some());
        held[3].seat().end();
        assert!(take(&slots, "2001:db8::ff").await.is_some());
        assert!(is_told(&held[3]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reserve_is_there_when_all_else_is_in_use() {
        let slots = Slots::new(2, 1);
        let held = [take(&slots, "::1").await, take(&slots, "::1").await].map(Option::unwrap);
        held.iter().for_each(|slot| slot.seat().begin());
        let probe = take(&slots, "127.0.0.1").await.unwrap();
        assert!(probe.seat().is_reserved() && !held[0].seat().is_reserved());
        probe.seat().begin();
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
            slot.seat().begin();
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
