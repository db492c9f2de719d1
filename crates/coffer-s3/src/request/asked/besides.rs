//! What a request does besides its operation, because a header asks for it.

use coffer_vault::policy::Action;
use http::HeaderMap;

/// What few requests have in their headers, found in one look at the names of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rare {
    /// Says which entity tag is to be there: `if-match`.
    pub(super) compares: bool,
    /// Says who else may use what is made: `x-amz-acl`, or `x-amz-grant-…`.
    pub(super) shares: bool,
    /// Gives tags: `x-amz-tagging`.
    pub(super) tags: bool,
    /// Locks what is made: `x-amz-object-lock-…`.
    pub(super) locks: bool,
}

impl Rare {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut rare = Self::default();
        for name in headers.keys() {
            let name = name.as_str();
            match name.strip_prefix("x-amz-") {
                None => rare.compares |= name == "if-match",
                Some("acl") => rare.shares = true,
                Some("tagging") => rare.tags = true,
                Some(own) => {
                    rare.shares |= own.starts_with("grant-");
                    rare.locks |= own.starts_with("object-lock-");
                }
            }
        }
        rare
    }
}

/// The actions that an operation is besides its own. `gives_tags`: whether the object that it makes
/// gets tags that it names.
pub(super) fn of(
    operation: &str,
    headers: &HeaderMap,
    rare: Rare,
    gives_tags: bool,
) -> Vec<Action> {
    let has = |name: &str| headers.contains_key(name);
    let mut besides = Vec::new();
    match operation {
        "PutObject" | "CopyObject" | "CreateMultipartUpload" | "PostObject" => {
            // Only to these two it is a condition on what is there.
            let compares = matches!(operation, "PutObject" | "CopyObject") && rare.compares;
            let retains = rare.locks && has("x-amz-object-lock-mode");
            let holds = rare.locks && has("x-amz-object-lock-legal-hold");
            let more = [
                (compares, Action::GetObject),
                (gives_tags, Action::PutObjectTagging),
                (rare.shares, Action::PutObjectAcl),
                (retains, Action::PutObjectRetention),
                (holds, Action::PutObjectLegalHold),
            ];
            let asked = more.into_iter().filter(|(is_asked, _)| *is_asked);
            besides.extend(asked.map(|(_, action)| action));
        }
        // Whether it is renamed tells of what has the new name, as below.
        "RenameObject"
            if RENAME_COMPARES
                .iter()
                .any(|name| compares_content(headers, name)) =>
        {
            besides.push(Action::GetObject);
        }
        // Whether it is written tells of what is there (User Guide, "conditional writes").
        "CompleteMultipartUpload" if rare.compares => besides.push(Action::GetObject),
        "DeleteObject" | "DeleteObjects" | "PutObjectRetention" => {
            let header = headers.get("x-amz-bypass-governance-retention");
            if header.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true")) {
                besides.push(Action::BypassGovernanceRetention);
            }
        }
        _ => {}
    }
    besides
}

/// Conditions of a rename on what has the new name.
const RENAME_COMPARES: [&str; 4] = [
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
];

/// Whether a condition asks of an object more than whether it is there.
fn compares_content(headers: &HeaderMap, condition: &str) -> bool {
    let value = headers.get(condition);
    value.is_some_and(|value| value.as_bytes().trim_ascii() != b"*")
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::parameters::lock;

    fn rare(names: &[&'static str]) -> Rare {
        let value = HeaderValue::from_static("a");
        let named = names.iter().map(|name| HeaderName::from_static(name));
        Rare::of(&named.map(|name| (name, value.clone())).collect())
    }

    #[test]
    fn each_header_is_found_in_one_look() {
        let usual = ["host", "x-amz-date", "if-none-match", "x-amz-meta-acl"];
        assert_eq!(rare(&usual), Rare::default());
        let all = Rare {
            compares: true,
            shares: true,
            tags: true,
            locks: true,
        };
        let names = ["if-match", "x-amz-tagging"];
        for shares in ["x-amz-acl", "x-amz-grant-read"] {
            for locks in [lock::MODE, lock::UNTIL, lock::HOLD] {
                assert_eq!(rare(&[&names[..], &[shares, locks]].concat()), all);
            }
        }
    }
}
