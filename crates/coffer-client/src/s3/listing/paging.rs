//! Where a list ends: what its pages say of that, and whether they ever come to an end.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::limits::{EMPTY_PAGES, PAGES_AGAIN, PAGING_SAMPLE};
use crate::s3::client::Client;
use crate::s3::error::S3Error;
use crate::s3::xml::{Element, truth};

/// What is wrong with a page that asks for one that came before it.
pub(super) const COMES_TO_ITSELF: &str = "is a part of a list that comes to itself";

/// What is wrong with a list that names the same again and again, and says that it goes on.
const NOTHING_NEW: &str = "is one of 1,000 parts of a list, one behind the other, that name only \
                           what it had named before";

/// Whether a list goes on behind this page. What does not say so is the end of it, but what says
/// it in a way of its own may be anything.
///
/// # Errors
/// What is wrong with it, in words that go on from "an answer that".
pub(crate) fn is_truncated(page: &Element) -> Result<bool, &'static str> {
    let Some(text) = page.text_of("IsTruncated") else {
        return Ok(false);
    };
    truth(text).ok_or("does not say by true or false whether its list goes on (IsTruncated)")
}

/// What asks for the next page. One that is called the end and names what comes next is asked for
/// that, for what is not in a list that ended counts as gone: MinIO named something behind each
/// page until the end of 2018, and had nothing there.
///
/// # Errors
/// As of [`is_truncated`].
pub(super) fn next_of<'a>(
    page: &'a Element,
    marker: &str,
) -> Result<Option<&'a str>, &'static str> {
    match (is_truncated(page)?, page.value_of(marker)) {
        (true, None) => Err("is a part of a list without its rest"),
        (_, next) => Ok(next),
    }
}

/// Watches that the pages of a list, asked for one after the other, come to an end.
#[derive(Debug)]
pub struct Paging {
    /// Pages without anything in them, since the last one with something.
    empty: u32,
    sample: Sample,
    /// What asked for one of the pages so far. Pages that come round come to it again, if it is
    /// one of theirs, and it is another one each time twice as many have come (Brent).
    kept: Option<u64>,
    since_kept: u64,
    keep_for: u64,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            empty: 0,
            sample: Sample::default(),
            kept: None,
            since_kept: 0,
            keep_for: 1,
        }
    }
}

impl Paging {
    /// Takes another page, what stands in it, and what asks for the one behind it.
    ///
    /// # Errors
    /// [`S3Error::Unreadable`] where the list comes to a page that it had before, or after so many
    /// pages of nothing, or of nothing new, that it may have no end.
    pub fn follow<T: Hash>(
        &mut self,
        client: &Client,
        names: impl IntoIterator<Item = impl Hash>,
        next: Option<&T>,
    ) -> Result<(), S3Error> {
        let is_empty = self.sample.is_empty_page(names);
        self.empty = if is_empty { self.empty + 1 } else { 0 };
        if self.empty >= EMPTY_PAGES {
            return Err(client.unreadable("is one of 1,000 parts of a list in which nothing is"));
        }
        if self.sample.pages_again >= PAGES_AGAIN {
            return Err(client.unreadable(NOTHING_NEW));
        }
        if let Some(next) = next
            && self.is_round(next)
        {
            return Err(client.unreadable(COMES_TO_ITSELF));
        }
        Ok(())
    }

    fn is_round(&mut self, next: &impl Hash) -> bool {
        let next = Some(hash_of(next));
        if next == self.kept {
            return true;
        }
        self.since_kept += 1;
        if self.since_kept == self.keep_for {
            self.kept = next;
            self.since_kept = 0;
            self.keep_for = self.keep_for.saturating_mul(2);
        }
        false
    }
}

/// Some of the names of a list, of whatever length it is: those whose hashes end with so many
/// zeros. By them it is seen that names come again, in whichever order they are listed: some
/// services list in none.
#[derive(Debug, Default)]
struct Sample {
    hashes: HashSet<u64>,
    /// Ones where the hash of a name of the sample has zeros.
    mask: u64,
    /// Pages with none of the sample that was new, since the last one that had one.
    pages_again: u32,
}

impl Sample {
    /// Takes the names of another page, and says whether it has any.
    fn is_empty_page(&mut self, names: impl IntoIterator<Item = impl Hash>) -> bool {
        let (mut is_empty, mut has_new, mut has_known) = (true, false, false);
        for name in names {
            is_empty = false;
            let hash = hash_of(&name);
            if hash & self.mask != 0 {
                continue;
            }
            if self.hashes.insert(hash) {
                has_new = true;
            } else {
                has_known = true;
            }
            while self.hashes.len() > PAGING_SAMPLE {
                self.mask = self.mask << 1 | 1;
                let mask = self.mask;
                self.hashes.retain(|hash| hash & mask == 0);
            }
        }
        if has_new {
            self.pages_again = 0;
        } else if has_known {
            self.pages_again += 1;
        }
        is_empty
    }
}

fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Element {
        Element::parse(format!("<R>{text}</R>").as_bytes()).unwrap()
    }

    #[test]
    fn pages_say_by_true_and_false_whether_there_are_more() {
        for (text, is) in [
            ("<IsTruncated>true</IsTruncated>", Ok(true)),
            ("<IsTruncated> TRUE\n</IsTruncated>", Ok(true)),
            ("<IsTruncated>1</IsTruncated>", Ok(true)),
            ("<IsTruncated>False</IsTruncated>", Ok(false)),
            ("<IsTruncated>0</IsTruncated>", Ok(false)),
            ("", Ok(false)),
            ("<IsTruncated/>", Err(())),
            ("<IsTruncated>yes</IsTruncated>", Err(())),
        ] {
            assert_eq!(is_truncated(&page(text)).map_err(drop), is, "{text}");
        }
    }

    #[test]
    fn what_a_page_names_behind_it_is_asked_for() {
        for (text, next) in [
            ("<N>t</N>", Ok(Some("t"))),
            ("<IsTruncated>false</IsTruncated><N>t</N>", Ok(Some("t"))),
            ("<IsTruncated>true</IsTruncated>", Err(())),
            ("<IsTruncated>true</IsTruncated><N/>", Err(())),
            ("<IsTruncated>1</IsTruncated><N>t</N>", Ok(Some("t"))),
            ("<IsTruncated>false</IsTruncated><N/>", Ok(None)),
        ] {
            assert_eq!(next_of(&page(text), "N").map_err(drop), next, "{text}");
        }
    }

    #[test]
    fn pages_that_come_round_are_known_and_no_others() {
        for (before, round) in [(0, 1), (0, 2), (1, 2), (5, 3), (100, 7), (3, 1_000)] {
            let mut paging = Paging::default();
            let of = |page: u64| {
                if page < before {
                    page
                } else {
                    before + (page - before) % round
                }
            };
            let come = (0..10_000)
                .take_while(|page| !paging.is_round(&of(*page)))
                .count();
            assert!(
                come < 4 * (before + round) as usize,
                "{before} {round}: {come}"
            );
        }
        let mut paging = Paging::default();
        assert!((0..100_000_u64).all(|page| !paging.is_round(&page)));
    }

    /// How many pages come before so many, one behind the other, have no name that is new.
    fn pages_until_again(pages: impl Iterator<Item = Vec<u64>>, most: u32) -> Option<usize> {
        let mut sample = Sample::default();
        pages.enumerate().find_map(|(count, page)| {
            assert!(!sample.is_empty_page(page));
            assert!(sample.hashes.len() <= PAGING_SAMPLE);
            (sample.pages_again >= most).then_some(count)
        })
    }

    #[test]
    fn names_that_come_again_are_known_in_any_order_and_no_others() {
        let numbers = |at: u64| at * 100..(at + 1) * 100;
        // So many names, which come round in no order.
        for names in [1, 100, 99_991_u64] {
            let page = |at| numbers(at).map(|name| name * 7_919 % names).collect();
            let ended = pages_until_again((0..20_000).map(page), PAGES_AGAIN).unwrap();
            let whole = names as usize / 100;
            let few = whole..3 * whole + 3_000;
            assert!(few.contains(&ended), "{names}: {ended}");
        }
        let backwards = (0..20_000).rev().map(|at| numbers(at).collect());
        assert_eq!(pages_until_again(backwards, 1), None);
    }
}
