//! Names in the order of their bytes, and how a delimiter folds them.
//!
//! Names are UTF-8, so the byte `FF` never occurs in one, and no byte overflows when it is raised
//! by one: bounds are made by such small arithmetic and compared as bytes, valid text or not.

/// How the names of one listing fold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delimiter<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
}

impl<'a> Delimiter<'a> {
    /// Without a delimiter, or with an empty one, nothing folds.
    pub(crate) fn new(prefix: &'a str, delimiter: Option<&'a str>) -> Self {
        Self {
            prefix,
            delimiter: delimiter.filter(|delimiter| !delimiter.is_empty()),
        }
    }

    /// The common prefix that `name` folds into, up to and with the delimiter.
    pub(crate) fn fold<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix(self.prefix)?;
        let delimiter = self.delimiter?;
        let at = rest.find(delimiter)?;
        Some(&name[..self.prefix.len() + at + delimiter.len()])
    }

    /// The least bytes at which a listing may begin that is to show only what comes after
    /// `start_after`, whether name or common prefix.
    pub(crate) fn begin(&self, start_after: Option<&str>) -> Vec<u8> {
        let Some(start_after) = start_after else {
            return self.prefix.into();
        };
        let begin = match self.fold(start_after) {
            // It lies within a common prefix, which therefore does not come after it.
            Some(folded) => end_of(folded),
            None => just_after(start_after),
        };
        begin.max(self.prefix.into())
    }

    /// Greater than every name with the prefix, and not greater than any other that is greater.
    pub(crate) fn end(&self) -> Vec<u8> {
        end_of(self.prefix)
    }
}

/// Greater than everything that begins with `prefix`, by the least.
pub(crate) fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    match end.last_mut() {
        Some(last) => *last += 1,
        None => end.push(0xff),
    }
    end
}

/// Greater than `name`, by the least.
pub(crate) fn just_after(name: &str) -> Vec<u8> {
    let mut after = name.as_bytes().to_vec();
    after.push(0);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold_after_the_prefix_and_with_the_delimiter() {
        let delimiter = Delimiter::new("a/", Some("/"));
        assert_eq!(delimiter.fold("a/b/c"), Some("a/b/"));
        assert_eq!(delimiter.fold("a/b"), None);
        assert_eq!(delimiter.fold("a//"), Some("a//"));
        assert_eq!(delimiter.fold("b/b/c"), None);
        assert_eq!(Delimiter::new("", Some("")).fold("a/b"), None);
        assert_eq!(Delimiter::new("", Some("::")).fold("a::b"), Some("a::"));
    }

    #[test]
    fn bounds_enclose_a_prefix_tightly() {
        for prefix in ["a", "a/", "é", "\u{10ffff}", "\u{7f}", ""] {
            let end = end_of(prefix);
            let longest = format!("{prefix}\u{10ffff}\u{10ffff}");
            assert!(longest.as_bytes() < &end[..]);
        }
        assert!(&end_of("a")[..] <= b"b".as_slice());
        assert_eq!(just_after("a"), b"a\0");
    }
}
