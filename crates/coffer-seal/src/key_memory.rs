//! Memory for keys: locked, left out of core dumps, zeroized when it is given back.
//!
//! Keys lie in pages that hold nothing else. Such pages are not swapped out (`mlock`), are in no
//! core dump (`MADV_DONTDUMP`), are not in a child process (`MADV_DONTFORK`: it would rather crash
//! than seal under zeros), and have a page before and behind them that can't be touched. All of
//! that costs a few system calls when pages are added; taking room for a key is taking an address
//! from a list. Pages are never given back: there are as many as keys were in use at once.
//!
//! See `docs/decisions/0008-locked-key-memory.md`.

#![allow(unsafe_code)]

use std::alloc::{Layout, handle_alloc_error};
use std::io;
use std::ptr::NonNull;

use parking_lot::Mutex;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mlock, mmap_anonymous, mprotect,
};
use rustix::param::page_size;
use zeroize::Zeroize;

use crate::limits::{KEY_BYTES, KEY_REGION_BYTES};

type KeyBytes = [u8; KEY_BYTES];

/// How the memory is that all keys of this process lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyMemory {
    /// How much of it is locked: it can't be swapped out. In bytes.
    pub locked_bytes: usize,
    /// How much of it the system refused to lock, most likely because of `RLIMIT_MEMLOCK`
    /// (`ulimit -l`, `LimitMEMLOCK=` of systemd). In bytes.
    pub unlocked_bytes: usize,
    /// How much of it the system refused to leave out of core dumps. In bytes.
    pub dumped_bytes: usize,
}

impl KeyMemory {
    /// Whether all of it is as it should be.
    pub fn is_protected(&self) -> bool {
        self.unlocked_bytes == 0 && self.dumped_bytes == 0
    }
}

/// The state of the memory that keys lie in, now. It grows with the number of keys in use.
pub fn locked_memory() -> KeyMemory {
    ARENA.lock().state
}

/// Room for one key. It holds zeros when it is taken, and again when it has been given back.
pub(crate) struct KeySlot(NonNull<KeyBytes>);

// SAFETY: a slot owns the 32 bytes that it points to, as a `Box` would: no other has their
// address until it is dropped.
unsafe impl Send for KeySlot {}
// SAFETY: as above, and `&KeySlot` only reads.
unsafe impl Sync for KeySlot {}

impl KeySlot {
    /// Takes room for a key.
    pub(crate) fn take() -> Self {
        Self(ARENA.lock().take())
    }

    pub(crate) fn bytes(&self) -> &KeyBytes {
        // SAFETY: the address is that of 32 initialized bytes in a mapping that is never removed,
        // and they are this slot's alone, which is borrowed.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut KeyBytes {
        // SAFETY: as above, and the slot is borrowed exclusively.
        unsafe { self.0.as_mut() }
    }
}

impl Drop for KeySlot {
    fn drop(&mut self) {
        self.bytes_mut().zeroize();
        ARENA.lock().free.push(self.0);
    }
}

/// What is mapped, and which slots of it are free.
struct Arena {
    free: Vec<NonNull<KeyBytes>>,
    state: KeyMemory,
}

// SAFETY: the addresses in it belong to no thread.
unsafe impl Send for Arena {}

static ARENA: Mutex<Arena> = Mutex::new(Arena {
    free: Vec::new(),
    state: KeyMemory {
        locked_bytes: 0,
        unlocked_bytes: 0,
        dumped_bytes: 0,
    },
});

impl Arena {
    fn take(&mut self) -> NonNull<KeyBytes> {
        loop {
            if let Some(slot) = self.free.pop() {
                return slot;
            }
            if self.grow().is_err() {
                // As a `Box` does when there is no memory left.
                handle_alloc_error(Layout::new::<KeyBytes>());
            }
        }
    }

    /// Adds pages. What the system refuses beside the memory itself is counted, and the memory
    /// used all the same: a server without it is still better than none.
    fn grow(&mut self) -> io::Result<()> {
        let guard_bytes = page_size();
        let region_bytes = KEY_REGION_BYTES.next_multiple_of(guard_bytes);
        // SAFETY: a new mapping, wherever there is room: it touches no memory that is in use.
        let mapping = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                region_bytes + 2 * guard_bytes,
                ProtFlags::empty(),
                MapFlags::PRIVATE,
            )
        }?;
        // SAFETY: within the mapping, which is longer than a page.
        let region = unsafe { mapping.byte_add(guard_bytes) };
        // SAFETY: region and length are whole pages within the mapping, which is ours alone and
        // holds nothing yet; none of the calls changes what others rely on.
        let (is_locked, is_left_out) = unsafe {
            mprotect(
                region,
                region_bytes,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )?;
            // Where the kernel doesn't know it, a child has a copy: this program makes none.
            let _ = madvise(region, region_bytes, Advice::LinuxDontFork);
            (
                mlock(region, region_bytes).is_ok(),
                madvise(region, region_bytes, Advice::LinuxDontDump).is_ok(),
            )
        };
        let state = &mut self.state;
        *if is_locked {
            &mut state.locked_bytes
        } else {
            &mut state.unlocked_bytes
        } += region_bytes;
        state.dumped_bytes += if is_left_out { 0 } else { region_bytes };
        let first = NonNull::new(region.cast::<KeyBytes>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        self.free.extend((0..region_bytes / KEY_BYTES).map(|index| {
            // SAFETY: that many slots of this size are in the region, whose pages are zeros.
            unsafe { first.add(index) }
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use super::*;

    #[test]
    fn slots_are_distinct_and_zeros_again_when_given_back() {
        let slot_count = 3 * KEY_REGION_BYTES / KEY_BYTES;
        let mut slots: Vec<_> = (0..slot_count).map(|_| KeySlot::take()).collect();
        let places: HashSet<_> = slots.iter().map(|slot| slot.0).collect();
        assert_eq!(places.len(), slot_count);
        for (number, slot) in slots.iter_mut().enumerate() {
            assert_eq!(*slot.bytes(), [0; KEY_BYTES]);
            slot.bytes_mut().fill(number as u8 | 1);
        }
        for (number, slot) in slots.iter().enumerate() {
            assert_eq!(*slot.bytes(), [number as u8 | 1; KEY_BYTES]);
        }
        let mapped_bytes = |state: KeyMemory| state.locked_bytes + state.unlocked_bytes;
        assert!(mapped_bytes(locked_memory()) >= 3 * KEY_REGION_BYTES);
        drop(slots);
        // Other tests take and give back beside this one: each slot is given out as zeros.
        for _ in 0..slot_count {
            assert_eq!(*KeySlot::take().bytes(), [0; KEY_BYTES]);
        }
    }

    #[test]
    fn threads_do_not_get_each_other_s_slots() {
        std::thread::scope(|scope| {
            for number in 1..=8 {
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        let mut slots = [KeySlot::take(), KeySlot::take()];
                        for slot in &mut slots {
                            assert_eq!(*slot.bytes(), [0; KEY_BYTES]);
                            slot.bytes_mut().fill(number);
                        }
                        assert!(
                            slots
                                .iter()
                                .all(|slot| *slot.bytes() == [number; KEY_BYTES])
                        );
                    }
                });
            }
        });
    }

    /// Asks the kernel, for a slot and for an ordinary allocation.
    #[test]
    fn the_kernel_says_that_keys_are_locked_and_left_out_of_dumps() {
        let slot = KeySlot::take();
        let key_flags = flags_of(slot.bytes().as_ptr().addr());
        assert!(
            key_flags.contains("dd") && key_flags.contains("dc"),
            "{key_flags:?}"
        );
        let is_locked = key_flags.contains("lo");
        // Where the limit allows nothing, the state says so; any real machine allows this much.
        assert_eq!(is_locked, locked_memory().locked_bytes > 0);
        assert_eq!(is_locked, locked_memory().is_protected());
        let ordinary = Box::new([1_u8; KEY_BYTES]);
        let ordinary_flags = flags_of(ordinary.as_ptr().addr());
        assert!(!ordinary_flags.contains("dd") && !ordinary_flags.contains("lo"));
    }

    /// The flags of the mapping around an address, as proc_pid_smaps(5) names them.
    fn flags_of(address: usize) -> HashSet<String> {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_inside = false;
        for line in smaps.lines() {
            let first = line.split(' ').next().unwrap_or_default();
            if let Some((start, end)) = first.split_once('-') {
                let [start, end] =
                    [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
                is_inside = (start..end).contains(&address);
            }
            if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_inside) {
                return flags.split_whitespace().map(str::to_owned).collect();
            }
        }
        panic!("no mapping holds the address");
    }
}
