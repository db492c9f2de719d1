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
