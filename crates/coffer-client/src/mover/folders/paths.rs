//! Names of files to names of objects, and back.

use std::path::{Component, Path, PathBuf};

use crate::s3::ListedObject;

/// The name of the object that a file becomes.
pub(super) fn key_of(path: &Path, folder: &Path, prefix: &str) -> Option<String> {
    let below = path.strip_prefix(folder).ok()?;
    let names = below.iter().map(|name| name.to_str());
    let names: Option<Vec<&str>> = names.collect();
    Some(format!("{prefix}{}", names?.join("/")))
}

/// Where the file of an object lies below a folder: never outside of it, and never elsewhere than
/// its name says. Nothing for the marker of the folder itself.
pub(super) fn path_of(object: &ListedObject, prefix: &str) -> Option<PathBuf> {
    let below = object.key.strip_prefix(prefix)?;
    let names = below.strip_suffix('/').unwrap_or(below);
    if below.is_empty() && prefix.ends_with('/') {
        return Some(PathBuf::new());
    }
    if names.contains('\0') {
        return None;
    }
    let path = PathBuf::from(names);
    let is_plain = |name: &str| !matches!(name, "" | "." | "..");
    let is_path = names.split('/').all(is_plain)
        && path
            .components()
            .all(|it| matches!(it, Component::Normal(_)));
    is_path.then_some(path)
}

/// Where something lies; nothing below a folder is the folder itself.
pub(super) fn path_below(folder: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() {
        folder.to_owned()
    } else {
        folder.join(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_folder() {
        let path = |key: &str, prefix: &str| {
            let object = ListedObject {
                key: key.to_owned(),
                bytes: 0,
                etag: String::new(),
                modified: String::new(),
            };
            path_of(&object, prefix)
        };
        assert_eq!(path("p/a/b c", "p/"), Some(PathBuf::from("a/b c")));
        assert_eq!(path("p/a/", "p/"), Some(PathBuf::from("a")));
        assert_eq!(path("a", ""), Some(PathBuf::from("a")));
        assert_eq!(path("p/", "p/"), Some(PathBuf::new()));
        for bad in [
            "p/../x", "p//x", "p/a//b", "p/./x", "p/a/..", "p/\0", "q/x", "p//",
        ] {
            assert_eq!(path(bad, "p/"), None, "{bad}");
        }
        assert_eq!(path("/etc/passwd", ""), None);
    }

    #[test]
    fn files_have_the_names_of_their_paths() {
        let key = |path: &str| key_of(Path::new(path), Path::new("/f"), "p/");
        assert_eq!(key("/f/a/b c").as_deref(), Some("p/a/b c"));
        use std::os::unix::ffi::OsStrExt;
        let bad = Path::new("/f").join(std::ffi::OsStr::from_bytes(b"\xff"));
        assert_eq!(key_of(&bad, Path::new("/f"), ""), None);
    }
}
