//! What is under a name at the target, and how it is known again.

use crate::s3::{ListedObject, ListedVersion, ObjectHead, ObjectName, bare, strong};

/// What is under a name at the target, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::migrate) enum Seen {
    /// No object, or a delete marker.
    Nothing,
    /// The object with this entity tag, as it was listed.
    Object(ListedObject),
}

impl Seen {
    /// What a list shows: the newest version of a name.
    pub(in crate::migrate) fn listed(newest: Option<&ListedVersion>) -> Self {
        match newest {
            Some(newest) if !newest.is_marker => Self::Object(newest.object.clone()),
            _ => Self::Nothing,
        }
    }

    /// What this migration has just stored.
    pub(in crate::migrate) fn stored(name: &ObjectName, bytes: u64, etag: &str) -> Self {
        Self::Object(ListedObject {
            key: name.key.clone(),
            bytes,
            etag: etag.to_owned(),
            modified: String::new(),
        })
    }

    /// What has a write be refused where something else is. None holds on
    /// a weak ETag.
    pub(super) fn condition(&self) -> Option<(String, String)> {
        let (name, value) = match self {
            Self::Nothing => ("if-none-match", "*".to_owned()),
            Self::Object(seen) => {
                let etag = strong(&seen.etag)?;
                ("if-match", format!("\"{}\"", bare(etag)))
            }
        };
        Some((name.to_owned(), value))
    }

    /// Whether it is an object whose time was listed.
    pub(super) fn has_time(&self) -> bool {
        matches!(self, Self::Object(seen) if !seen.modified.is_empty())
    }

    /// Whether that is there now: its length and its time have to be those that were listed, too,
    /// for others may have stored the same bytes again.
    pub(super) fn is(&self, now: Option<&ObjectHead>) -> bool {
        let (seen, head) = match (self, now) {
            (Self::Nothing, None) => return true,
            (Self::Object(seen), Some(head)) => (seen, head),
            (Self::Nothing | Self::Object(_), _) => return false,
        };
        let is_told = !bare(&seen.etag).is_empty();
        if is_told && bare(&seen.etag) != bare(&head.etag) {
            return false;
        }
        head.bytes == seen.bytes && head.is_of_then(seen) != Some(false)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn object(etag: &str) -> Seen {
        Seen::Object(ListedObject {
            key: "k".to_owned(),
            bytes: 3,
            etag: etag.to_owned(),
            modified: "2023-11-14T22:13:20.500Z".to_owned(),
        })
    }

    fn head(etag: &str, bytes: u64, second: u8) -> ObjectHead {
        let mut headers = HeaderMap::new();
        let modified = format!("Tue, 14 Nov 2023 22:13:{second} GMT");
        headers.insert("etag", etag.parse().unwrap());
        headers.insert("content-length", bytes.into());
        headers.insert("last-modified", modified.parse().unwrap());
        ObjectHead::of_headers(headers).unwrap()
    }

    #[test]
    fn what_was_seen_is_what_is_replaced() {
        let condition = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        let is = |seen: &Seen, etag: &str| seen.is(Some(&head(etag, 3, 20)));
        for etag in ["\"a\"", "a"] {
            let object = object(etag);
            assert_eq!(object.condition(), condition("if-match", "\"a\""));
            assert!(is(&object, "a") && !is(&object, "b") && !object.is(None));
            assert!(!object.is(Some(&head("a", 3, 50))), "it was stored again");
        }
        assert_eq!(Seen::Nothing.condition(), condition("if-none-match", "*"));
        assert!(Seen::Nothing.is(None) && !is(&Seen::Nothing, "a"));
    }

    #[test]
    fn what_has_a_weak_tag_is_known_by_its_time() {
        let weak = object("W/\"a\"");
        assert_eq!(weak.condition(), None);
        assert!(weak.is(Some(&head("W/\"a\"", 3, 20))));
        for (etag, bytes, second) in [("W/\"b\"", 3, 20), ("W/\"a\"", 4, 20), ("W/\"a\"", 3, 50)] {
            assert!(
                !weak.is(Some(&head(etag, bytes, second))),
                "{etag} {bytes} {second}"
            );
        }
        assert!(!weak.is(None));
        // What this migration has just stored was not listed.
        let name = ObjectName::new("b", "k");
        assert!(Seen::stored(&name, 3, "W/\"a\"").is(Some(&head("W/\"a\"", 3, 50))));
        let untold = object("");
        assert_eq!(untold.condition(), None);
        assert!(untold.is(Some(&head("\"c\"", 3, 20))) && !untold.is(Some(&head("\"c\"", 3, 50))));
    }
}
