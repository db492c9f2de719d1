//! What a file holds, sector by sector.

use std::collections::BTreeMap;

pub(super) const SECTOR_BYTES: usize = 512;

pub(super) type Sector = [u8; SECTOR_BYTES];

#[derive(Clone)]
pub(super) enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// A file's sectors; those that are not there are zeros.
#[derive(Clone, Default, Hash)]
pub(super) struct Content {
    pub(super) length: usize,
    pub(super) sectors: BTreeMap<usize, Sector>,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut content = Self::default();
        content.write(0, bytes);
        content
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.length = self.length.max(offset + bytes.len());
        for (start, piece) in by_sector(offset, bytes) {
            let number = start / SECTOR_BYTES;
            let mut sector = self.sectors.get(&number).copied();
            let within = start % SECTOR_BYTES;
            sector.get_or_insert([0; SECTOR_BYTES])[within..within + piece.len()]
                .copy_from_slice(piece);
            match sector.filter(|sector| *sector != [0; SECTOR_BYTES]) {
                Some(sector) => self.sectors.insert(number, sector),
                None => self.sectors.remove(&number),
            };
        }
    }

    fn truncate(&mut self, length: usize) {
        self.length = length;
        self.sectors
            .retain(|number, _| number * SECTOR_BYTES < length);
        if let Some(last) = self.sectors.get_mut(&(length / SECTOR_BYTES)) {
            last[length % SECTOR_BYTES..].fill(0);
        }
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Write(offset, bytes) => self.write(*offset, bytes),
            Change::Truncate(length) => self.truncate(*length),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length.next_multiple_of(SECTOR_BYTES)];
        for (number, sector) in &self.sectors {
            bytes[number * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(sector);
        }
        bytes.truncate(self.length);
        bytes
    }
}

/// The pieces of a write, each within a sector of the disk, and where they begin.
pub(super) fn by_sector(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let at = offset + start;
        let end = bytes.len().min(start + SECTOR_BYTES - at % SECTOR_BYTES);
        let piece = (start < end).then(|| (at, &bytes[start..end]));
        start = end;
        piece
    })
}
