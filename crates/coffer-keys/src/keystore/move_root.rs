//! Root keys on their way from one source to another.
//!
//! The keystore does not say which source it has. So the caller records both before a move, and
//! opens the keystore between both while it doesn't know that the move was completed.

use std::path::Path;
use std::sync::Arc;

use coffer_durable::{Access, TwoSlots};

use crate::error::KeysError;
use crate::keystore::copies::{Copies, Repair};
use crate::keystore::state::{Keystore, open_slots};
use crate::root::source::RootSource;

impl Keystore {
    /// Moves the keystore under a new root key in another source, and destroys the root key in the
    /// one before.
    ///
    /// After a power cut the keystore opens with one of the two sources:
    /// [`Keystore::open_between`].
    ///
    /// # Errors
    ///
    /// [`KeysError::RootUnsettled`] when the new source holds a root key; as
    /// [`Keystore::rotate_root`].
    pub fn move_to(&self, source: Box<dyn RootSource>) -> Result<(), KeysError> {
        let mut state = self.settled()?;
        let source: Arc<dyn RootSource> = source.into();
        if !source.candidates()?.is_empty() {
            return Err(KeysError::RootUnsettled {
                place: source.describe(),
            });
        }
        let mut contents = state.contents.clone();
        contents.held.is_outside = false;
        let new_root = source.add().inspect_err(|_| {
            // It may have been made all the same. What is left is in the way only of the next
            // move's, whose caller recorded this one.
            let _ = source.keep_only(None);
        })?;
        let put = contents
            .rewrap(self.id(), &state.root, &new_root)
            .and_then(|()| state.put(contents, new_root));
        if let Err(error) = put {
            // Whether the copy counts is not known: were the new root key destroyed before the
            // copy is mended, a restart might find a keystore that nothing opens.
            state.copies.mend()?;
            source.keep_only(None)?;
            return Err(error);
        }
        state.left_source = Some(std::mem::replace(&mut state.source, source));
        state.is_settled = false;
        state.is_held_outside = false;
        state.settle().map_err(|source| KeysError::Unsettled {
            source: Box::new(source),
        })
    }

    /// Opens a keystore whose root key was being moved from `current` to `next`, and has the one
    /// that it doesn't open with destroy its keys. Where that fails, a warning says so, and every
    /// later change begins with another attempt. The last of the answer: whether it opened with
    /// `next`.
    ///
    /// # Errors
    ///
    /// As [`Keystore::open_accepting`], when it opens with neither. A source that can't be read
    /// counts for nothing if the other opens the keystore.
    pub fn open_between(
        path: &Path,
        current: Box<dyn RootSource>,
        next: Box<dyn RootSource>,
        accepts_rollback: bool,
    ) -> Result<(Self, Repair, bool), KeysError> {
        let slots = open_slots(path, Access::Write)?;
        Self::open_between_on(slots, path, [current, next], accepts_rollback)
    }

    pub(crate) fn open_between_on(
        slots: TwoSlots,
        path: &Path,
        [current, next]: [Box<dyn RootSource>; 2],
        accepts_rollback: bool,
    ) -> Result<(Self, Repair, bool), KeysError> {
        let next: Arc<dyn RootSource> = next.into();
        // The new one first: once the keystore is under it, the old one may be half destroyed.
        let sources = vec![next.clone(), current.into()];
        let (keystore, repair) = Self::open_held(slots, path, sources, accepts_rollback)?;
        let is_moved = Arc::ptr_eq(&keystore.source(), &next);
        Ok((keystore, repair, is_moved))
    }

    /// As [`Keystore::open_read_only`], between one source and perhaps another.
    ///
    /// # Errors
    ///
    /// As [`Keystore::open_between`].
    pub fn open_read_only_between(
        path: &Path,
        current: Box<dyn RootSource>,
        next: Option<Box<dyn RootSource>>,
    ) -> Result<Self, KeysError> {
        let slots = open_slots(path, Access::Read)?;
        let copies = Copies::find(slots, path)?;
        let sources = next.into_iter().chain([current]).map(Arc::from).collect();
        Self::from_copies(copies, sources, false)
    }

    /// Whether the source that the root key was moved away from may hold keys still.
    pub fn is_moving(&self) -> bool {
        self.state().left_source.is_some()
    }
}
