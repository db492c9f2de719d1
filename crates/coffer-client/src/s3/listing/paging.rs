//! Where a list ends: what its pages say of that, and whether they ever come to an end.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::limits::EMPTY_PAGES;
use crate::s3::client::Client;
use crate::s3::error::S3Error;
use crate::s3::xml::{Element, truth};

/// What is wrong with a page that asks for one that came before it.
pub(super) const COMES_TO_ITSELF: &str = "is a part of a list that comes to itself";

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
            kept: None,
            since_kept: 0,
            keep_for: 1,
        }
    }
}

impl Paging {
    /// Takes another page, and what asks for the one behind it.
    ///
    /// # Errors
    /// [`S3Error::Unreadable`] where the list comes to a page that it had before, or after so many
    /// pages of nothing that it may have no end.
    pub fn follow<T: Hash>(
        &mut self,
        client: &Client,
        is_empty: bool,
        next: Option<&T>,
    ) -> Result<(), S3Error> {
        self.empty = if is_empty { self.empty + 1 } else { 0 };
        if self.empty >= EMPTY_PAGES {
            return Err(client.unreadable("is one of 1,000 parts of a list in which nothing is"));
        }
        if let Some(next) = next
            && self.is_round(next)
        {
            return Err(client.unreadable(COMES_TO_ITSELF));
        }
        Ok(())
    }

    fn is_round(&mut self, next: &impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        next.hash(&mut hasher);
        let next = Some(hasher.finish());
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
}
