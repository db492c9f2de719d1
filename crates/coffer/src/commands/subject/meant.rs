//! What is meant, though none is left to administer.

/// The address of an act that the server refuses where it leaves no system administrator, unless
/// that is meant.
pub(super) fn meant(path: &str, is_meant: bool) -> String {
    let query = if is_meant {
        "?without_administrator=true"
    } else {
        ""
    };
    format!("{path}{query}")
}
