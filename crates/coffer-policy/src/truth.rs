//! Yes, no, and what can't be known.

/// Whether a condition or a pattern holds. `Unknown` sits between `No` and `Yes`, so that *and* is
/// the lesser, *or* the greater (Kleene's logic of three values).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Truth {
    No,
    Unknown,
    Yes,
}

impl Truth {
    pub(crate) fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
            Self::Yes => Self::No,
        }
    }

    /// The other one, where it says no; for `!value` where the value is `negated`.
    pub(crate) fn not_if(self, negated: bool) -> Self {
        if negated { self.not() } else { self }
    }

    /// Whether one of them holds.
    pub(crate) fn any(all: impl IntoIterator<Item = Self>) -> Self {
        let mut found = Self::No;
        for truth in all {
            if truth == Self::Yes {
                return truth;
            }
            found = found.max(truth);
        }
        found
    }

    /// Whether all of them hold.
    pub(crate) fn all(all: impl IntoIterator<Item = Self>) -> Self {
        let mut found = Self::Yes;
        for truth in all {
            if truth == Self::No {
                return truth;
            }
            found = found.min(truth);
        }
        found
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

#[cfg(test)]
mod tests {
    use super::Truth::{self, No, Unknown, Yes};

    #[test]
    fn what_is_unknown_stays_so_unless_the_rest_decides() {
        assert_eq!(Truth::any([No, Unknown]), Unknown);
        assert_eq!(Truth::any([Unknown, Yes]), Yes);
        assert_eq!(Truth::all([Yes, Unknown]), Unknown);
        assert_eq!(Truth::all([Unknown, No]), No);
        assert_eq!(Truth::any([]), No);
        assert_eq!(Truth::all([]), Yes);
        assert_eq!(Unknown.not(), Unknown);
        assert_eq!(Yes.not_if(true), No);
        assert_eq!(Yes.not_if(false), Yes);
    }
}
