//! A set of page numbers, a bit each.

/// Numbers of pages, which begin at 1.
#[derive(Debug, Default)]
pub(crate) struct PageBits {
    words: Vec<u64>,
    count: u64,
}

impl PageBits {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn insert(&mut self, number: u32) {
        let (word, bit) = place(number);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// All up to this one.
    pub(crate) fn insert_all(&mut self, last: u32) {
        (1..=last).for_each(|number| self.insert(number));
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let (word, bit) = place(number);
        if let Some(word) = self.words.get_mut(word) {
            self.count -= u64::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    /// Removes all behind this one.
    pub(crate) fn cut_off(&mut self, last: u32) {
        let all = self.words.len() as u64 * 64;
        for number in u64::from(last) + 1..all {
            self.remove(number as u32);
        }
    }

    /// The first of them, so many at most.
    pub(crate) fn first(&self, count: usize) -> Vec<u32> {
        let words = (0..).zip(&self.words).filter(|(_, word)| **word != 0);
        let numbers = words.flat_map(|(index, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| index * 64 + bit)
        });
        numbers.take(count).collect()
    }
}

fn place(number: u32) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_once_and_in_order() {
        let mut bits = PageBits::default();
        [200, 1, 64, 63, 1]
            .into_iter()
            .for_each(|number| bits.insert(number));
        assert_eq!(bits.first(10), [1, 63, 64, 200]);
        assert_eq!((bits.first(2), bits.count()), (vec![1, 63], 4));
        bits.remove(63);
        bits.remove(5_000);
        bits.cut_off(64);
        assert_eq!((bits.first(9), bits.count()), (vec![1, 64], 2));
        bits.insert_all(3);
        assert_eq!(bits.first(9), [1, 2, 3, 64]);
    }
}
