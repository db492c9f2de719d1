//! A set of actions, as bits.

use super::action::{Action, ResourceKind};

/// A set of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ActionSet(u128);

const _: () = assert!(Action::ALL.len() < 128, "a bit for each action");

impl ActionSet {
    /// All actions.
    pub(crate) const ALL: Self = Self((1 << Action::ALL.len()) - 1);

    pub(crate) fn insert(&mut self, action: Action) {
        self.0 |= bit(action);
    }

    pub(crate) fn contains(self, action: Action) -> bool {
        self.0 & bit(action) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The actions that are not in it.
    pub(crate) fn complement(self) -> Self {
        Self(Self::ALL.0 & !self.0)
    }

    /// Whether one of them is done to such a resource.
    pub(crate) fn applies_to(self, kind: ResourceKind) -> bool {
        let of_kind = |action: &&Action| action.resource_kind() == kind;
        let mut candidates = Action::ALL.iter().filter(of_kind);
        candidates.any(|action| self.contains(*action))
    }
}

fn bit(action: Action) -> u128 {
    1 << (action as u32)
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> Self {
        let mut set = Self::default();
        actions.into_iter().for_each(|action| set.insert(action));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in() {
        let set: ActionSet = [Action::GetObject, Action::ListBucket]
            .into_iter()
            .collect();
        assert!(set.contains(Action::GetObject) && !set.contains(Action::PutObject));
        assert!(set.applies_to(ResourceKind::Object) && set.applies_to(ResourceKind::Bucket));
        assert!(!set.applies_to(ResourceKind::Account));
        let rest = set.complement();
        assert!(!rest.contains(Action::GetObject) && rest.contains(Action::PutObject));
        assert_eq!(rest.union(set), ActionSet::ALL);
        assert!(ActionSet::ALL.complement().is_empty());
        assert!(
            Action::ALL
                .iter()
                .all(|action| ActionSet::ALL.contains(*action))
        );
    }
}
