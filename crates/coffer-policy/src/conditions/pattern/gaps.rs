//! Finding a text some of whose characters may be any.
//!
//! A bit stands for each place where it might begin; each of its characters clears those where the
//! text has another one, 64 places at a time. Trying one place after the other takes 64 times as
//! long, and a policy of nothing but `?` would hold up every request.

use std::collections::BTreeMap;

/// Where in the text what is looked for first ends, in bytes. `None` in it stands for any
/// character.
pub(super) fn end_of_first(wanted: &[Option<char>], text: &str) -> Option<usize> {
    let characters: Vec<char> = text.chars().collect();
    let place_count = (characters.len() + 1).checked_sub(wanted.len())?;
    let mut begins = vec![u64::MAX; place_count.div_ceil(64)];
    let mut places_by_character: BTreeMap<char, Vec<u64>> = BTreeMap::new();
    for (offset, character) in wanted.iter().enumerate() {
        let Some(character) = character else {
            continue;
        };
        let places = places_by_character.entry(*character);
        let places = places.or_insert_with(|| places_of(*character, &characters));
        if !keep_shifted(&mut begins, places, offset) {
            return None;
        }
    }
    let word_at = begins.iter().position(|word| *word != 0)?;
    let begin = word_at * 64 + begins[word_at].trailing_zeros() as usize;
    let end = begin + wanted.len();
    let mut indices = text.char_indices().map(|(at, _)| at);
    // Bits behind the last place are of no place.
    (begin < place_count).then(|| indices.nth(end).unwrap_or(text.len()))
}

/// A bit for each place of the text, set where it has the character.
fn places_of(character: char, text: &[char]) -> Vec<u64> {
    let word = |characters: &[char]| {
        let bits = characters.iter().enumerate();
        bits.fold(0, |word, (at, other)| {
            word | (u64::from(*other == character) << at)
        })
    };
    text.chunks(64).map(word).collect()
}

/// Keeps the places after which, so many characters further, one of the others lies. Whether any is
/// left.
fn keep_shifted(begins: &mut [u64], places: &[u64], offset: usize) -> bool {
    let (words, bits) = (offset / 64, offset % 64);
    let word_at = |at: usize| places.get(at).copied().unwrap_or(0);
    let mut left = 0;
    for (at, begin) in begins.iter_mut().enumerate() {
        let low = word_at(at + words) >> bits;
        let high = word_at(at + words + 1)
            .checked_shl(64 - bits as u32)
            .unwrap_or(0);
        *begin &= low | high;
        left |= *begin;
    }
    left != 0
}
