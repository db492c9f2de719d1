//! Subjects: who asks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_label::{Clearance, Label};
use coffer_seal::{BucketId, SubjectId};

use super::access_key::AccessKey;
use super::asked::{Asked, AskedAction, Besides};
use super::own_values::OwnValues;
use super::read_mark::Mark;
use super::rights::Rights;
use super::roles::{Role, Roles};
use crate::cutoff::SubjectCutoff;

/// Rights by bucket.
pub(crate) type Grants = BTreeMap<BucketId, Rights>;

/// Who asks, with what that allows. Only the vault makes them. One never changes: a change makes
/// another one of the same id.
///
/// There is one of a subject as such, and one for each of its access keys, which holds the key that
/// is asked with and is cut off with it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What all that belongs to it is bound to.
    pub(crate) id: SubjectId,
    /// For people; it may change.
    pub(crate) name: Arc<str>,
    /// The key that it asks with; none: the subject as such.
    pub(crate) access_key: Option<Arc<AccessKey>>,
    pub(crate) clearance: Clearance,
    /// Whether what it reads has no bearing on where it writes, within its clearance.
    pub(crate) is_trusted: bool,
    /// What it has read, as far as that bears on where it writes.
    pub(crate) mark: Arc<Mark>,
    pub(crate) roles: Roles,
    /// Rights in the buckets that the subject may use; none: every bucket that the clearance
    /// allows, with every right.
    pub(crate) grants: Option<Arc<Grants>>,
    /// Whether it is disabled, with all of its access keys.
    pub(crate) is_disabled: bool,
    /// When it expires, with all of its access keys, in milliseconds since 1970.
    pub(crate) expires_ms: Option<i64>,
    pub(crate) created_ms: i64,
    pub(crate) cutoff: Arc<SubjectCutoff>,
    /// What it asks for just now, where a policy is to be asked.
    pub(crate) asked: Option<Arc<Asked>>,
}

/// What stands for who signs nothing where subjects have ids.
const ANONYMOUS: SubjectId = SubjectId([0; 16]);

impl Subject {
    /// Who signs nothing: cleared for the lowest label, and granted nothing anywhere.
    pub(crate) fn anonymous() -> Self {
        Self {
            id: ANONYMOUS,
            name: "anonymous".into(),
            access_key: None,
            clearance: Clearance::new(Label::LOWEST, Label::LOWEST)
                .expect("a label is a range of itself"),
            is_trusted: false,
            mark: Arc::default(),
            roles: [Role::DataUser].into_iter().collect(),
            grants: Some(Arc::default()),
            is_disabled: false,
            expires_ms: None,
            created_ms: 0,
            cutoff: Arc::default(),
            asked: None,
        }
    }

    /// Whether it stands for who signs nothing.
    pub fn is_anonymous(&self) -> bool {
        self.id == ANONYMOUS
    }

    /// Whether a text is an id as subjects have them: of one that is there, was there, or never.
    pub(crate) fn is_id(text: &str) -> bool {
        let id = SubjectId::from_hex(text);
        id.is_some_and(|id| id != ANONYMOUS && id.to_string() == text)
    }

    /// Its id, for ever.
    pub fn id(&self) -> SubjectId {
        self.id
    }

    /// The id of the access key that it asks with; public.
    pub fn access_key_id(&self) -> Option<&str> {
        self.access_key.as_ref().map(|key| key.id.as_str())
    }

    /// Its name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the subject may see and write.
    pub fn clearance(&self) -> &Clearance {
        &self.clearance
    }

    /// Whether its clearance is trusted: what it reads has no bearing on where it writes.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// What it has read, where that bears on where it writes: the join of the labels.
    pub fn mark(&self) -> Option<Label> {
        let bears = |mark: &Label| !self.is_trusted && !self.clearance.low().dominates(mark);
        self.mark.label().filter(bears)
    }

    /// Whether what it reads raises its mark.
    pub(crate) fn floats(&self) -> bool {
        !self.is_trusted && self.clearance.low() != self.clearance.high()
    }

    /// What it may have read without raising its mark: join of the labels.
    pub(crate) fn unmarked(&self) -> &Label {
        if self.floats() {
            self.clearance.low()
        } else {
            self.clearance.high()
        }
    }

    /// Its mark once its range changes: all that it may have read until now. What who does not
    /// float has read is not known, so it is taken to be all that it might.
    pub(crate) fn carried_mark(&self) -> Arc<Mark> {
        let read = self.mark.joined(self.unmarked());
        Mark::at((read != Label::LOWEST).then_some(read))
    }

    /// What the subject may do.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// The subject as it asks with an access key, whose cutoff this is.
    pub(crate) fn asking_with(&self, key: AccessKey, cutoff: Arc<SubjectCutoff>) -> Self {
        Self {
            access_key: Some(Arc::new(key)),
            cutoff,
            ..self.clone()
        }
    }

    /// The subject as it asks for this.
    pub fn asking(&self, asked: Asked) -> Self {
        let mut subject = self.clone();
        subject.asked = Some(Arc::new(asked));
        subject
    }

    /// The subject as it asks for more besides, with what all of that has for conditions; as it is
    /// where no policy is to be asked.
    pub(crate) fn asking_besides(&self, more: Vec<AskedAction>, own: OwnValues) -> Cow<'_, Self> {
        let Some(asked) = self.asked.as_deref() else {
            return Cow::Borrowed(self);
        };
        let actions = asked.actions.iter().cloned().chain(more);
        Cow::Owned(self.asking(Asked {
            actions: actions.collect(),
            time: asked.time,
            values: Arc::new(Besides {
                values: asked.values.clone(),
                own,
            }),
            asks: asked.asks.clone(),
        }))
    }

    /// The subject as it asks for the same again, now.
    pub(crate) fn asking_again(&self) -> Self {
        let asked = self.asked.as_deref().map(Asked::again);
        Self {
            asked: asked.map(Arc::new),
            ..self.clone()
        }
    }

    /// Whether it counts at a time, in milliseconds since 1970, and so does the access key that it
    /// asks with. The time is asked for only if it matters.
    pub(crate) fn counts_at(&self, now_ms: impl Fn() -> i64) -> bool {
        let has_expired = |expires_ms| now_ms() >= expires_ms;
        !self.is_disabled
            && !self.expires_ms.is_some_and(has_expired)
            && self
                .access_key
                .as_ref()
                .is_none_or(|key| key.counts_at(&now_ms))
    }
}
