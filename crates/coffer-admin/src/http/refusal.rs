//! Refusals: every error of the API, as JSON with a status that fits.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::response::{IntoResponse, Response};
use coffer_keys::{KeysError, TokenSetupError};
use coffer_vault::limits::SIGN_IN_WINDOW;
use coffer_vault::{
    AdministrationError, BackupError, CopyError, VaultError, looks_like_access_key_id,
};
use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What happened.
    pub error: ErrorDetail,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// For programs: a word that stays the same.
    #[schema(example = "no_such_level")]
    pub code: String,
    /// For people: one line.
    #[schema(example = "there is no level of this name")]
    pub message: String,
}

/// Why a request of the API is not done.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refusal {
    /// A refusal with a code for programs and a message, one line, for people.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    /// Its code and its message, for what is told within an answer.
    pub(crate) fn told(self) -> (String, String) {
        (self.code.to_owned(), self.message)
    }

    /// The request makes no sense.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// The caller must sign in.
    pub(crate) fn sign_in_required() -> Self {
        let message = "sign in with an access key id and its secret (HTTP Basic)";
        Self::new(StatusCode::UNAUTHORIZED, "sign_in_required", message)
    }

    /// All that serves administration is at work.
    pub(crate) fn busy() -> Self {
        let message = "as many requests are under way as may be: try again soon";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    /// Too many failures from one address.
    pub(crate) fn too_many_failures() -> Self {
        let message = "too many sign-ins failed from this address: wait a minute";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self {
            status,
            code,
            message,
        } = self;
        let mut headers = HeaderMap::new();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Basic realm=\"coffer\", charset=\"UTF-8\"");
            headers.insert(WWW_AUTHENTICATE, scheme);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(RETRY_AFTER, SIGN_IN_WINDOW.as_secs().into());
        }
        let error = ErrorDetail {
            code: code.to_owned(),
            message,
        };
        (status, headers, Json(ErrorBody { error })).into_response()
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let message = "the request's body is larger than is allowed";
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                let message = "the request's body must be JSON, with content-type application/json";
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message)
            }
            _ => Self::invalid(one_line(&rejection.body_text())),
        }
    }
}

impl From<PathRejection> for Refusal {
    fn from(rejection: PathRejection) -> Self {
        Self::invalid(one_line(&rejection.body_text()))
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(one_line(&rejection.body_text()))
    }
}

fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
}

impl From<VaultError> for Refusal {
    fn from(error: VaultError) -> Self {
        use StatusCode as S;
        let (status, code) = match &error {
            VaultError::NoSuchLevel => (S::NOT_FOUND, "no_such_level"),
            VaultError::NoSuchBucket => (S::NOT_FOUND, "no_such_bucket"),
            VaultError::BucketAlreadyOwnedByYou => (S::CONFLICT, "bucket_exists"),
            VaultError::NoSuchSubject => (S::NOT_FOUND, "no_such_subject"),
            VaultError::SubjectExists => (S::CONFLICT, "subject_exists"),
            VaultError::TooManySubjects { .. } => (S::CONFLICT, "too_many_subjects"),
            VaultError::BucketNotEmpty => (S::CONFLICT, "bucket_not_empty"),
            VaultError::TooManyBuckets { .. } => (S::CONFLICT, "too_many_buckets"),
            VaultError::SubjectLimit(_) => (S::SERVICE_UNAVAILABLE, "busy"),
            VaultError::AccessDenied => (S::FORBIDDEN, "access_denied"),
            VaultError::TooManyFailures => (S::TOO_MANY_REQUESTS, "too_many_failures"),
            VaultError::SignInFailed => (S::UNAUTHORIZED, "sign_in_failed"),
            VaultError::Invalid { .. } => (S::BAD_REQUEST, "invalid_request"),
            VaultError::NoSuchRequest => (S::NOT_FOUND, "no_such_request"),
            VaultError::NoSuchReceipt => (S::NOT_FOUND, "no_such_receipt"),
            VaultError::ReadAbove { .. } => (S::FORBIDDEN, "read_above"),
            VaultError::SettlesItself => (S::FORBIDDEN, "another_person_needed"),
            VaultError::AnotherPersonNeeded => (S::FORBIDDEN, "another_person_needed"),
            VaultError::RequesterGone => (S::CONFLICT, "requester_gone"),
            VaultError::EraseUnsettled { .. } | VaultError::ReceiptUnsettled { .. } => {
                (S::INTERNAL_SERVER_ERROR, "erase_unsettled")
            }
            VaultError::OutOfFiles => (S::SERVICE_UNAVAILABLE, "out_of_files"),
            VaultError::SystemInDoubt => (S::INTERNAL_SERVER_ERROR, "in_doubt"),
            VaultError::BucketInDoubt => (S::SERVICE_UNAVAILABLE, "in_doubt"),
            VaultError::StorageFull | VaultError::NoRoomForLog { .. } => {
                (S::INSUFFICIENT_STORAGE, "storage_full")
            }
            VaultError::Damaged => (S::INTERNAL_SERVER_ERROR, "damaged"),
            VaultError::AuditUnavailable(_) => (S::SERVICE_UNAVAILABLE, "audit_unavailable"),
            VaultError::EndNotRecorded(_) => (S::INTERNAL_SERVER_ERROR, "end_not_recorded"),
            VaultError::EndNotHeld(_) => (S::INTERNAL_SERVER_ERROR, "end_not_held"),
            VaultError::CatalogRolledBack(_)
            | VaultError::CatalogReplaced
            | VaultError::SystemRolledBack { .. } => (S::INTERNAL_SERVER_ERROR, "rolled_back"),
            VaultError::Backup(error) => of_backups(error),
            VaultError::Administration(error) => of_administration(error),
            VaultError::ShuttingDown => (S::SERVICE_UNAVAILABLE, "not_ready"),
            error if error.is_of_read_only_disk() => {
                tracing::warn!(%error, "the disk takes no writes");
                (S::SERVICE_UNAVAILABLE, "storage_read_only")
            }
            error if error.over_quota().is_some() => (S::FORBIDDEN, "quota_exceeded"),
            VaultError::Keys(error) => of_keys(error),
            _ => (S::INTERNAL_SERVER_ERROR, "internal"),
        };
        if status == S::INTERNAL_SERVER_ERROR {
            tracing::error!(%error, "an administrative request failed");
        }
        Self::new(status, code, one_line(&error.to_string()))
    }
}

fn of_backups(error: &BackupError) -> (StatusCode, &'static str) {
    use StatusCode as S;
    match error {
        BackupError::NoRoom { .. } => (S::INSUFFICIENT_STORAGE, "storage_full"),
        BackupError::DamagedSource { .. }
        | BackupError::BucketUnreadable { .. }
        | BackupError::BucketLost { .. } => (S::CONFLICT, "damaged"),
        BackupError::RootKeyChanging => (S::CONFLICT, "root_key_changing"),
        BackupError::ListenerGone => (S::CONFLICT, "broken_off"),
        BackupError::Copy(error) => of_copies(error),
        _ => (S::BAD_REQUEST, "no_backup_folder"),
    }
}

fn of_copies(error: &CopyError) -> (StatusCode, &'static str) {
    use StatusCode as S;
    match error {
        CopyError::NoSuchCopy { .. } => (S::NOT_FOUND, "no_such_replica"),
        CopyError::Exists { .. } => (S::CONFLICT, "replica_exists"),
        CopyError::TooMany { .. } => (S::CONFLICT, "too_many_replicas"),
        CopyError::Registry => (S::CONFLICT, "damaged"),
        CopyError::NotYet { .. } | CopyError::NotAnyMore { .. } | CopyError::NotInLog => {
            (S::SERVICE_UNAVAILABLE, "in_doubt")
        }
        CopyError::GivenUp { .. } => (S::SERVICE_UNAVAILABLE, "replica_given_up"),
        CopyError::Standby { .. } => (S::SERVICE_UNAVAILABLE, "standby"),
        CopyError::Follows { .. } => (S::SERVICE_UNAVAILABLE, "follows"),
        CopyError::FencedOff { .. } => (S::SERVICE_UNAVAILABLE, "fenced_off"),
        CopyError::LeaseEnded => (S::SERVICE_UNAVAILABLE, "lease_ended"),
        CopyError::NotFetched { .. } => (S::BAD_GATEWAY, "store_failed"),
        CopyError::OfEngine { .. } => (S::CONFLICT, "of_engine"),
        CopyError::NoStandby => (S::CONFLICT, "no_standby"),
        CopyError::OtherPromoted { .. } => (S::CONFLICT, "promoted"),
        CopyError::OriginalWrites => (S::CONFLICT, "original_writes"),
        CopyError::NoRoomToPromote { .. } => (S::INSUFFICIENT_STORAGE, "storage_full"),
        CopyError::Replica(error) if error.is_passing() => (S::BAD_GATEWAY, "store_failed"),
        _ => (S::BAD_REQUEST, "no_place_for_a_replica"),
    }
}

fn of_administration(error: &AdministrationError) -> (StatusCode, &'static str) {
    use StatusCode as S;
    match error {
        AdministrationError::SameLabel { .. } => (S::CONFLICT, "same_label"),
        AdministrationError::LevelGoing { .. } => (S::CONFLICT, "level_exists"),
        AdministrationError::ConfigurationsFull { .. } => (S::CONFLICT, "too_much_configuration"),
        AdministrationError::TooManyRequests { .. } => (S::CONFLICT, "too_many_requests"),
        AdministrationError::EraseLocked(_) | AdministrationError::StrayLocked { .. } => {
            (S::CONFLICT, "locked")
        }
        AdministrationError::BucketKeyDestroyed { .. } => (S::CONFLICT, "key_destroyed"),
        AdministrationError::BucketLevelGone { .. } => (S::CONFLICT, "level_missing"),
        AdministrationError::BucketKeyMissing { .. } => (S::CONFLICT, "key_missing"),
        AdministrationError::AuditUnreadable { .. } => {
            (S::INTERNAL_SERVER_ERROR, "audit_unreadable")
        }
        AdministrationError::SystemWrittenOver { .. } => (S::INTERNAL_SERVER_ERROR, "rolled_back"),
        AdministrationError::NoQuota { .. } => (S::NOT_FOUND, "no_such_quota"),
        AdministrationError::RoleMissing { .. } => (S::FORBIDDEN, "access_denied"),
        AdministrationError::LastAdministrator => (S::CONFLICT, "last_administrator"),
        AdministrationError::NoSuchAccessKey => (S::NOT_FOUND, "no_such_access_key"),
        AdministrationError::TooManyAccessKeys { .. } => (S::CONFLICT, "too_many_access_keys"),
        _ => (S::INTERNAL_SERVER_ERROR, "internal"),
    }
}

/// Results that say what they are about: the vault's errors don't, for over S3 the client knows.
pub(crate) trait About<T> {
    /// The refusal names what was asked for.
    fn about(self, name: &str) -> Result<T, Refusal>;
}

impl<T> About<T> for Result<T, VaultError> {
    fn about(self, name: &str) -> Result<T, Refusal> {
        self.map_err(|error| {
            let told = match &error {
                VaultError::NoSuchLevel => Some(format!("there is no level {name}")),
                VaultError::NoSuchBucket => Some(format!("there is no bucket {name}")),
                // Subjects are found by their access keys, too.
                VaultError::NoSuchSubject if looks_like_access_key_id(name) => Some(format!(
                    "there is no access key {name}: `coffer subject key list NAME` shows those of \
                     a subject"
                )),
                VaultError::NoSuchSubject => Some(format!("there is no subject {name}")),
                VaultError::NoSuchRequest => Some(format!("{name}: {error}")),
                VaultError::NoSuchReceipt => Some(format!("there is no receipt {name}")),
                VaultError::Administration(AdministrationError::NoQuota { .. }) => {
                    Some(format!("{name}: {error}"))
                }
                VaultError::BucketAlreadyOwnedByYou => {
                    Some(format!("there is a bucket {name} already"))
                }
                VaultError::BucketNotEmpty => Some(format!("{name}: {error}")),
                VaultError::SubjectExists => Some(format!("there is a subject {name} already")),
                _ => None,
            };
            let refusal = Refusal::from(error);
            let shown = |text: String| text.chars().map(visible).collect();
            Refusal {
                message: told.map_or(refusal.message, shown),
                ..refusal
            }
        })
    }
}

/// A name that is none may hold anything.
fn visible(letter: char) -> char {
    if letter.is_control() { '?' } else { letter }
}

fn of_keys(error: &KeysError) -> (StatusCode, &'static str) {
    use StatusCode as S;
    match error {
        KeysError::LevelName
        | KeysError::LevelNameIsRegion { .. }
        | KeysError::Approvals { .. } => (S::BAD_REQUEST, "invalid_request"),
        KeysError::NotExportable { .. } | KeysError::NoBackup { .. } => {
            (S::FORBIDDEN, "not_exportable")
        }
        KeysError::ExportDidNotOpen | KeysError::Malformed { what: "export" } => {
            (S::BAD_REQUEST, "export_does_not_open")
        }
        KeysError::SameLabel { .. } => (S::CONFLICT, "same_label"),
        KeysError::LevelPresent { .. } | KeysError::BucketExists { .. } => {
            (S::CONFLICT, "level_exists")
        }
        KeysError::SameSource { .. }
        | KeysError::SourceWithin { .. }
        | KeysError::WrongPin { .. }
        | KeysError::TokenSetup(TokenSetupError::NoSuchToken { .. })
        | KeysError::RootTaken { .. }
        | KeysError::PassphraseMissing
        | KeysError::PinMissing => (S::BAD_REQUEST, "source_refused"),
        KeysError::LevelExists { .. } => (S::CONFLICT, "level_exists"),
        KeysError::TooManyLevels { .. } => (S::CONFLICT, "too_many_levels"),
        KeysError::TooManyBuckets { .. } => (S::CONFLICT, "too_many_buckets"),
        KeysError::NoSuchLevel { .. } => (S::NOT_FOUND, "no_such_level"),
        KeysError::NoSuchBucket { .. } => (S::NOT_FOUND, "no_such_bucket"),
        _ => (S::INTERNAL_SERVER_ERROR, "internal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_key_in_a_subjects_place_is_told() {
        let told = |name| Err::<(), _>(VaultError::NoSuchSubject).about(name);
        let told = |name| told(name).unwrap_err().message;
        assert_eq!(told("ann"), "there is no subject ann");
        assert!(told("CFAAAAAAAAAAAAAAAAAA").starts_with("there is no access key CFAAA"));
    }

    #[test]
    fn errors_of_the_vault_have_fitting_statuses() {
        let level_exists = KeysError::LevelExists {
            name: "a".to_owned(),
        };
        for (error, status, code) in [
            (VaultError::NoSuchLevel, 404, "no_such_level"),
            (VaultError::AccessDenied, 403, "access_denied"),
            (VaultError::Keys(level_exists), 409, "level_exists"),
            (
                VaultError::Keys(KeysError::LevelName),
                400,
                "invalid_request",
            ),
            (VaultError::Keys(KeysError::WrongRoot), 500, "internal"),
            (VaultError::ShuttingDown, 503, "not_ready"),
        ] {
            let refusal = Refusal::from(error);
            assert_eq!((refusal.status.as_u16(), refusal.code), (status, code));
        }
    }
}
