use super::*;

#[test]
fn what_was_just_changed_may_change_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "12345").unwrap();
    let source = Source::open(&path).unwrap();
    let (seconds, nanos) = source.seen().changed;
    let changed = Duration::new(seconds.try_into().unwrap(), nanos.try_into().unwrap());
    let changed = SystemTime::UNIX_EPOCH + changed;
    for (ms, pause) in [(0, 1000), (999, 1), (1000, 0), (5000, 0)] {
        let now = changed + Duration::from_millis(ms);
        assert_eq!(source.seen().is_fresh(now), pause > 0, "{ms}");
        assert_eq!(source.seen().pause(now), Duration::from_millis(pause));
    }
    // By a clock that was set back.
    let early = changed - Duration::from_secs(60);
    assert!(source.seen().is_fresh(early));
    assert_eq!(source.seen().pause(early), Duration::ZERO);
}

#[test]
fn what_was_found_below_a_folder_is_opened_through_no_link() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["root/a/b", "outside"] {
        std::fs::create_dir_all(at(name)).unwrap();
        std::fs::write(at(name).join("file"), "12345").unwrap();
    }
    let open = |root: &str, name: &str| Source::open_below(&at(root), &at(root).join(name));
    let source = open("root", "a/b/file").unwrap();
    assert_eq!(source.read(&(0..5)).unwrap(), b"12345");
    source.check_unchanged().unwrap();
    // The folder that was named may be a link.
    symlink(at("root"), at("named")).unwrap();
    open("named", "a/b/file").unwrap();
    symlink(at("outside"), at("root/a/link")).unwrap();
    symlink(at("outside/file"), at("root/file")).unwrap();
    for name in ["a/link/file", "file"] {
        Source::open(&at("root").join(name)).unwrap();
        let told = open("root", name).err().unwrap().to_string();
        assert!(told.contains("reached through no link"), "{told}");
    }
    let told = open("root", "a/b").err().unwrap().to_string();
    assert!(told.ends_with("a/b is no file"), "{told}");
    let none = open("root", "a/none").err().unwrap();
    assert!(matches!(none, MoverError::Local { .. }), "{none}");
}

#[test]
fn a_pipe_that_takes_the_place_of_a_file_is_not_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
    let (sender, opened) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // As where it was put there behind the look.
        let folder = openat(CWD, root.path(), FOLDER, Mode::empty()).unwrap();
        let file = open_in(&folder, OsStr::new("file")).unwrap();
        let _ = sender.send(Source::of(file, &path).err());
    });
    let told = opened.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(
        matches!(told, Some(MoverError::Unsuitable { .. })),
        "{told:?}"
    );
}

#[test]
fn times_that_fat_counts_by_two_seconds_settle_later() {
    let seen = Seen {
        device: 1,
        inode: 1,
        bytes: 5,
        modified: (1_700_000_000, 0),
        changed: (1_700_000_000, 0),
    };
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for (ms, pause) in [(0, 2100), (1999, 101), (2099, 1), (2100, 0), (9000, 0)] {
        let now = changed + Duration::from_millis(ms);
        assert_eq!(seen.is_fresh(now), pause > 0, "{ms}");
        assert_eq!(seen.pause(now), Duration::from_millis(pause), "{ms}");
    }
    let finer = Seen {
        changed: (1_700_000_000, 1_000_000),
        ..seen
    };
    assert!(!finer.is_fresh(changed + Duration::from_millis(1001)));
}

#[test]
fn changes_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let open = || {
        std::fs::write(&path, "12345").unwrap();
        Source::open(&path).unwrap()
    };
    let source = open();
    assert_eq!(source.read(&(1..4)).unwrap(), b"234");
    source.check_unchanged().unwrap();
    std::fs::write(&path, "123").unwrap();
    assert!(matches!(
        source.read(&(1..4)),
        Err(MoverError::SourceChanged { .. })
    ));
    assert!(source.check_unchanged().is_err());
    let source = open();
    let later = SystemTime::now() + Duration::from_secs(9);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(later).unwrap();
    assert!(source.check_unchanged().is_err());
    let source = open();
    // The clock of file systems goes in steps.
    std::thread::sleep(Duration::from_millis(50));
    std::fs::write(&path, "54321").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(source.modified()).unwrap();
    let now = std::fs::metadata(&path).unwrap();
    assert_eq!(now.modified().unwrap(), source.modified());
    assert!(source.check_unchanged().is_err());
    assert_ne!(Seen::of(&now).text(), source.seen().text());
    let source = open();
    assert_eq!(
        source.seen().text(),
        Source::open(&path).unwrap().seen().text()
    );
    std::fs::write(folder.path().join("other"), "12345").unwrap();
    std::fs::rename(folder.path().join("other"), &path).unwrap();
    assert!(source.check_unchanged().is_err());
    let source = Source::open(Path::new("/proc/self/status")).unwrap();
    assert_eq!(source.seen().bytes, 0);
    let more = source.check_unchanged().unwrap_err().to_string();
    assert!(more.contains("more bytes than its size says"), "{more}");
    let folder_error = Source::open(folder.path()).err().unwrap();
    assert!(folder_error.to_string().contains("-r"));
}
