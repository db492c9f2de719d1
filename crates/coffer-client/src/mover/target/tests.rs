//! Files under another name until they are whole, and what lies there already.

use std::os::fd::AsRawFd;

use super::*;

fn content(etag: &str) -> Content {
    Content {
        endpoint: "e".to_owned(),
        bucket: "b".to_owned(),
        key: "k".to_owned(),
        version_id: None,
        etag: etag.to_owned(),
        modified: String::new(),
        bytes: 9,
        piece_bytes: 4,
        crc: "CRC32".to_owned(),
    }
}

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let (target, pieces) = Target::open(&path, &content("1")).unwrap();
    assert_eq!(pieces, []);
    let piece = Piece {
        start: 4,
        end: 8,
        crc: 1,
    };
    target.write(4, b"5678").unwrap();
    target.note(&piece).unwrap();
    assert!(matches!(
        Target::open(&path, &content("1")),
        Err(MoverError::Busy { .. })
    ));
    drop(target);
    assert!(!path.exists());
    let (target, pieces) = Target::open(&path, &content("1")).unwrap();
    assert_eq!(pieces, [piece]);
    target.write(0, b"1234").unwrap();
    target.write(8, b"9").unwrap();
    let sum = target.sum(0..9, Algorithm::Crc32).unwrap();
    assert_eq!(hex::encode(sum.value), "cbf43926");
    let modified = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(7);
    target.finish(Some(modified)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"123456789");
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn what_nothing_is_known_of_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let piece = Piece {
        start: 4,
        end: 8,
        crc: 1,
    };
    let dated = |modified: &str| Content {
        modified: modified.to_owned(),
        ..content("")
    };
    let note = |content: &Content| {
        let (target, pieces) = Target::open(&path, content).unwrap();
        target.note(&piece).unwrap();
        pieces
    };
    for (content, is_kept) in [
        (content("1"), false),
        (content("1"), true),
        (content(""), false),
        (content(""), false),
        (dated("monday"), false),
        (dated("monday"), true),
        (dated("tuesday"), false),
    ] {
        assert_eq!(!note(&content).is_empty(), is_kept, "{content:?}");
    }
}

#[test]
fn names_that_are_too_long_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n".repeat(256));
    let error = Target::open(&path, &content("1"))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("longer name than files have"), "{error}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn another_content_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let (target, _) = Target::open(&path, &content("1")).unwrap();
    target.write(0, b"old").unwrap();
    target
        .note(&Piece {
            start: 0,
            end: 4,
            crc: 1,
        })
        .unwrap();
    drop(target);
    let (target, pieces) = Target::open(&path, &content("2")).unwrap();
    assert_eq!(pieces, []);
    let zeros = crate::s3::checksum::checksum(Algorithm::Crc32, &[0; 9]);
    assert_eq!(target.sum(0..9, Algorithm::Crc32).unwrap(), zeros);
    target.discard();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn names_of_unfinished_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let (target, _) = Target::open(&path, &content("1")).unwrap();
    target.write(0, b"right").unwrap();
    for name in [
        ".file.coffer-part",
        ".file.coffer-journal",
        ".FILE.Coffer-Part",
    ] {
        let error = Target::open(&folder.path().join(name), &content("2")).err();
        let error = error.unwrap().to_string();
        assert!(error.contains("under another name"), "{error}");
    }
    target.finish(None).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"right\0\0\0\0");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn what_is_no_file_stays_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    for path in [&socket, &link] {
        let error = Target::open(path, &content("1")).err().unwrap().to_string();
        assert!(error.contains("is no regular file: write `-`"), "{error}");
    }
    assert!(Target::open(folder.path(), &content("1")).is_err());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    let link_to_file = folder.path().join("link to file");
    fs::write(folder.path().join("file"), "old").unwrap();
    std::os::unix::fs::symlink("file", &link_to_file).unwrap();
    assert!(Target::open(&link_to_file, &content("1")).is_ok());
}

#[test]
fn what_a_process_has_open_is_no_file_to_replace() {
    let folder = tempfile::tempdir().unwrap();
    let open = File::create(folder.path().join("open")).unwrap();
    let of_process = Path::new("/proc/self/fd").join(open.as_raw_fd().to_string());
    let link = folder.path().join("stdout");
    std::os::unix::fs::symlink(&of_process, &link).unwrap();
    for path in [&of_process, &link] {
        let error = Target::open(path, &content("1")).err().unwrap().to_string();
        assert!(error.contains("is no regular file: write `-`"), "{error}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn long_names_have_short_ones_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    for length in [238, 239, 240, 255] {
        let path = folder.path().join("n".repeat(length));
        let (target, _) = Target::open(&path, &content("1")).unwrap();
        target.finish(None).unwrap();
        assert!(path.exists());
    }
    assert!(is_unfinished(&beside(OsStr::new("a"), PART_END)));
    assert!(!is_unfinished(OsStr::new(".a.part")));
}

#[test]
fn another_file_in_its_place_is_not_taken_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let (part, copy) = (
        folder.path().join(".file.coffer-part"),
        folder.path().join("copy"),
    );
    let (target, _) = Target::open(&path, &content("1")).unwrap();
    let piece = Piece {
        start: 0,
        end: 4,
        crc: 1,
    };
    target.note(&piece).unwrap();
    drop(target);
    fs::copy(&part, &copy).unwrap();
    fs::rename(&copy, &part).unwrap();
    let (target, pieces) = Target::open(&path, &content("1")).unwrap();
    assert_eq!(pieces, []);
    fs::copy(&part, &copy).unwrap();
    fs::rename(&copy, &part).unwrap();
    let error = target.finish(None).unwrap_err();
    assert!(matches!(error, MoverError::Unsuitable { .. }), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/file");
    let error = Target::open(&path, &content("1")).err().unwrap();
    let told = error.to_string();
    assert!(
        told.contains("/missing is no folder that there is"),
        "{told}"
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
