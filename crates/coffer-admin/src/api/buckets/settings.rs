//! What is set of a bucket, in short, as the API tells it.

use coffer_vault::version::Versioning;
use coffer_vault::{DefaultRetention, ObjectLock};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is set of a bucket, in short. What policies and rules say is told over S3.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BucketSettings {
    /// The name of the subject whose it is; absent where it belongs to all who may do everything in
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owner: Option<String>,
    /// Whether versions are kept; absent where it was not opened since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub versioning: Option<VersioningState>,
    /// How objects can be locked; absent where they can't.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub object_lock: Option<LockSettings>,
    /// Whether it has a policy.
    pub policy: bool,
    /// Whether those who sign nothing are let in by the policy or the bucket's list.
    pub public: bool,
    /// How many lifecycle rules it has, those among them that are not in force.
    pub lifecycle_rules: usize,
    /// Whether it has CORS rules.
    pub cors: bool,
}

/// Whether versions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VersioningState {
    /// They never were.
    Never,
    /// They are.
    Enabled,
    /// They were, and no new ones are.
    Suspended,
}

impl VersioningState {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Enabled => "enabled",
            Self::Suspended => "suspended",
        }
    }
}

/// How new objects are locked whose writers ask for nothing; empty: they are not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LockSettings {
    /// `governance` or `compliance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "compliance")]
    pub mode: Option<String>,
    /// For how many days; a year has 365.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub days: Option<u64>,
}

impl From<ObjectLock> for LockSettings {
    fn from(lock: ObjectLock) -> Self {
        let mode = |default: DefaultRetention| {
            let mode = if default.is_compliance {
                "compliance"
            } else {
                "governance"
            };
            mode.to_owned()
        };
        Self {
            mode: lock.default.map(mode),
            days: lock.default.map(DefaultRetention::days),
        }
    }
}

impl From<coffer_vault::BucketSettings> for BucketSettings {
    fn from(settings: coffer_vault::BucketSettings) -> Self {
        let coffer_vault::BucketSettings {
            owner,
            versioning,
            object_lock,
            has_policy,
            is_public,
            lifecycle_rule_count,
            has_cors,
        } = settings;
        Self {
            owner,
            versioning: versioning.map(|state| match state {
                Versioning::Never => VersioningState::Never,
                Versioning::Enabled => VersioningState::Enabled,
                Versioning::Suspended => VersioningState::Suspended,
            }),
            object_lock: object_lock.map(LockSettings::from),
            policy: has_policy,
            public: is_public,
            lifecycle_rules: lifecycle_rule_count,
            cors: has_cors,
        }
    }
}
