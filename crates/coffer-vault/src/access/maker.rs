//! Whose buckets and uploads are, where it is limited how many one subject may have.

use super::subject::Subject;

/// The subject as rows of `system.db` and catalogs name it.
pub(crate) fn maker(subject: &Subject) -> String {
    subject.id.to_string()
}
