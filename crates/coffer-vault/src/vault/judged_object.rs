//! Objects that requests were judged by, and that may be others when they are read.

use coffer_store::record::{Access, ObjectHead, ObjectName, Tags};
use coffer_store::version::Which;

use crate::error::{Result, SharingError};

/// What it depended on that something may be done to an object: that it is so of the object that is
/// read, and not only of one that had the name before.
#[derive(Clone, Debug)]
pub(crate) struct JudgedObject {
    /// Whether it was to be read.
    pub(super) is_read: bool,
    pub(super) name: ObjectName,
    pub(super) which: Which,
    /// Owner and list, where the list alone lets it be done.
    pub(super) access: Option<Access>,
    /// The tags where the policy asks for them; none in it where there was no such object.
    pub(super) tags: Option<Option<Tags>>,
}

impl JudgedObject {
    /// Whether an object's owner and list are those that were judged.
    ///
    /// # Errors
    /// [`SharingError::Changed`].
    pub(crate) fn check(
        all: &[Self],
        (name, which): (&ObjectName, Which),
        found: Found<'_>,
    ) -> Result<()> {
        let of_name = || all.iter().filter(|one| one.is_read && one.name == *name);
        let of = |which| of_name().filter(move |one| one.which == which);
        // A version that was found as the newest is read by its own name then.
        let which = if of(which).next().is_some() {
            which
        } else {
            Which::Current
        };
        if of(which).all(|judged| judged.is_as_of(found)) {
            Ok(())
        } else {
            Err(SharingError::Changed.into())
        }
    }

    fn is_as_of(&self, found: Found<'_>) -> bool {
        let access = self.access.as_ref().zip(found.access);
        let tags = self.tags.as_ref().zip(found.tags);
        access.is_none_or(|(judged, found)| judged == found)
            && tags.is_none_or(|(judged, found)| judged.as_ref() == Some(found))
    }
}

/// What was found of an object in the transaction that reads it, as far as it is known.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) access: Option<&'a Access>,
    pub(crate) tags: Option<&'a Tags>,
}

impl<'a> From<&'a ObjectHead> for Found<'a> {
    fn from(head: &'a ObjectHead) -> Self {
        Self {
            access: Some(&head.access),
            tags: Some(&head.tags),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(value: &str) -> Tags {
        vec![("public".to_owned(), value.to_owned())]
    }

    fn judged(which: Which, tags: Option<Tags>) -> JudgedObject {
        JudgedObject {
            is_read: true,
            name: ObjectName::new("k").unwrap(),
            which,
            access: None,
            tags: Some(tags),
        }
    }

    fn is_read(all: &[JudgedObject], which: Which, tags: &Tags) -> bool {
        let found = Found {
            access: None,
            tags: Some(tags),
        };
        JudgedObject::check(all, (&ObjectName::new("k").unwrap(), which), found).is_ok()
    }

    #[test]
    fn only_what_has_the_tags_that_were_judged_is_read() {
        let [yes, no] = ["yes", "no"].map(tagged);
        let null = Which::Version(coffer_store::version::VersionId::Null);
        let newest = [judged(Which::Current, Some(yes.clone()))];
        for which in [Which::Current, null] {
            assert!(is_read(&newest, which, &yes));
            assert!(!is_read(&newest, which, &no));
        }
        // There was none when it was judged.
        assert!(!is_read(
            &[judged(Which::Current, None)],
            Which::Current,
            &no
        ));
        // A copy onto itself looks at both.
        let both = [
            judged(Which::Current, Some(no.clone())),
            judged(null, Some(yes.clone())),
        ];
        assert!(is_read(&both, null, &yes) && !is_read(&both, null, &no));
        assert!(is_read(&[], Which::Current, &no));
    }
}
