use super::*;

#[test]
fn files_come_in_the_order_of_names_of_objects() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a/b", "a-b", "a.b", "a0", "ä", "b/c/d", "b/c-d"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    let mut files = Files::new(folder.path(), Links::Tell, Path::new("/none"), false);
    let mut keys = Vec::new();
    while let Some(Next::Name(name)) = files.next() {
        keys.push(name.key);
    }
    assert_eq!(keys, ["a-b", "a.b", "a/b", "a0", "b/c-d", "b/c/d", "ä"]);
    assert!(keys.is_sorted());
}

#[test]
fn a_link_to_a_folder_stands_where_the_names_below_it_do() {
    let (away, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(away.path().join("in"), b"1").unwrap();
    std::os::unix::fs::symlink(away.path(), root.path().join("data")).unwrap();
    for name in ["data-old", "data0"] {
        std::fs::write(root.path().join(name), b"2").unwrap();
    }
    let mut files = Files::new(root.path(), Links::Follow, Path::new("/none"), false);
    let mut keys = Vec::new();
    while let Some(Next::Name(name)) = files.next_in_order().unwrap() {
        keys.push(name.key);
    }
    assert_eq!(keys, ["data-old", "data/in", "data0"]);
    let mut files = Files::new(root.path(), Links::Follow, Path::new("/none"), false);
    files.last = Some("e".to_owned());
    assert!(files.next_in_order().is_err(), "it comes too late");
}

#[test]
fn ledgers_are_left_out_and_told() {
    let root = tempfile::tempdir().unwrap();
    let ledgers = root.path().join("state/migrations");
    std::fs::create_dir_all(&ledgers).unwrap();
    for name in ["a", "state/migrations/l", "state/z"] {
        std::fs::write(root.path().join(name), name).unwrap();
    }
    let mut files = Files::new(root.path(), Links::Tell, &ledgers, false);
    let mut seen = Vec::new();
    while let Some(next) = files.next_in_order().unwrap() {
        seen.push(match next {
            Next::Name(name) => name.key,
            Next::Ledgers(_, name) => format!("not {}", name.unwrap()),
            Next::Problem(_) | Next::PassedOver(_) | Next::Folder(_) => panic!("it is no other"),
        });
    }
    assert_eq!(seen, ["a", "not state/migrations", "state/z"]);
}

#[test]
fn folders_with_nothing_in_them_are_told_if_asked() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a", "b", "b/c"] {
        std::fs::create_dir(root.path().join(name)).unwrap();
    }
    std::fs::write(root.path().join("b/c-d"), b"x").unwrap();
    for (tells, expected) in [
        (true, vec!["a empty", "b/c-d", "b/c empty"]),
        (false, vec!["b/c-d"]),
    ] {
        let mut files = Files::new(root.path(), Links::Tell, Path::new("/none"), tells);
        let mut seen = Vec::new();
        while let Some(next) = files.next_in_order().unwrap() {
            seen.push(match next {
                Next::Name(name) => name.key,
                Next::Folder(folder) if folder.is_empty => format!("{} empty", folder.key),
                _ => panic!("it is no other"),
            });
        }
        assert_eq!(seen, expected);
    }
}
