//! Whether a subject is left that can administer the server. Without one, only the local socket
//! does.

use coffer_durable::now_ms;
use coffer_seal::SubjectId;

use crate::access::{AccessKey, NewAccessKey, Role, Subject};
use crate::error::{AdministrationError, Result};
use crate::limits::ADMINISTRATOR_LEFT_MS;
use crate::system::SubjectEntry;
use crate::vault::Inner;

/// What is to become of a subject.
pub(in crate::admin) enum After<'a> {
    Subject(&'a Subject),
    Keys(&'a [NewAccessKey]),
    Gone,
}

/// How well a subject can administer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Administers {
    No,
    Now,
    /// Now, and by a key of now as long as is asked for.
    Lastingly,
}

impl Inner {
    /// Refuses to make of a subject what leaves none that administers as well. To be called while
    /// nothing else can change one.
    ///
    /// # Errors
    /// [`AdministrationError::LastAdministrator`].
    pub(in crate::admin) fn check_administrator_left(
        &self,
        id: SubjectId,
        after: &After<'_>,
    ) -> Result<()> {
        let Some(before) = self.system.find_subject(&id.to_string()) else {
            return Ok(());
        };
        let now_ms = now_ms();
        let of = |entry: &SubjectEntry| {
            if entry.is_in_doubt {
                return Administers::No;
            }
            Administers::of(&entry.subject, entry.access_keys(), now_ms)
        };
        let had = of(&before);
        let has = match after {
            After::Subject(after) => Administers::of(after, before.access_keys(), now_ms),
            After::Keys(keys) => {
                let keys = keys.iter().map(|new| &new.key);
                Administers::of(&before.subject, keys, now_ms)
            }
            After::Gone => Administers::No,
        };
        if has >= had {
            return Ok(());
        }
        let others = self.system.all_subjects().into_iter();
        let mut others = others.filter(|other| other.subject.id != id);
        if others.any(|other| of(&other) >= had) {
            Ok(())
        } else {
            Err(AdministrationError::LastAdministrator.into())
        }
    }
}

impl Administers {
    fn of<'a>(
        subject: &Subject,
        keys: impl Iterator<Item = &'a AccessKey> + Clone,
        now_ms: i64,
    ) -> Self {
        let counts_at = |at_ms: i64| {
            let mut keys = keys.clone();
            subject.counts_at(|| at_ms) && keys.any(|key| key.counts_at(|| at_ms))
        };
        if !subject.roles.has(Role::SystemAdministrator) || !counts_at(now_ms) {
            Self::No
        } else if counts_at(now_ms.saturating_add(ADMINISTRATOR_LEFT_MS)) {
            Self::Lastingly
        } else {
            Self::Now
        }
    }
}
