use super::*;

fn open(path: &Path) -> Notes {
    let folder = FolderLine::Folder {
        from: "a".to_owned(),
        to: "s3://b/".to_owned(),
    };
    Notes::open(path, folder).unwrap()
}

#[test]
fn what_was_noted_is_known_and_damaged_lines_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let notes = open(&path);
    assert!(notes.moved.is_empty());
    let marks: Vec<Mark> = (0..4).map(|number| [number; 16]).collect();
    notes.note(&marks[0], &marks[1], true);
    notes.note(&marks[1], &marks[2], false);
    notes.of(marks[3]).unwrap().begin(KeptTime::now().unwrap());
    assert!(matches!(Journal::open(&path), Err(MoverError::Busy { .. })));
    drop(notes);
    let notes = open(&path);
    assert_eq!(notes.moved.len(), 2);
    assert!(notes.of(marks[3]).unwrap().began().is_some());
    notes.of(marks[3]).unwrap().end();
    drop(notes);
    assert!(open(&path).begun.is_empty());
    // A byte that was turned over, and a line that was cut off.
    let mut text = std::fs::read(&path).unwrap();
    let at = text.windows(7).position(|it| it == b"{\"moved").unwrap();
    text[at] = 0xff;
    text.extend_from_slice(b"{\"moved\":[\"00");
    std::fs::write(&path, text).unwrap();
    let notes = open(&path);
    let left = Left {
        at: marks[2],
        was_verified: false,
    };
    assert_eq!(notes.moved, HashMap::from([(marks[1], left)]));
    notes.note(&marks[2], &marks[3], true);
    drop(notes);
    let notes = Arc::new(open(&path));
    assert_eq!(notes.moved.len(), 2);
    notes.end(false);
    assert!(path.exists());
    Arc::new(open(&path)).end(true);
    assert!(!path.exists());
}

#[test]
fn what_was_begun_is_forgotten_where_its_end_has_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let (one, other) = ([1; 16], [2; 16]);
    let notes = open(&path);
    notes.note(&other, &other, true);
    // Of what was not begun, no line says so.
    notes.lines.store(FOLDER_NOTES, Relaxed);
    let late = notes.of(one).unwrap();
    late.begin(KeptTime::now().unwrap());
    late.end();
    let lost = notes.lost().unwrap();
    assert!(lost.problem.contains("lines at most") && !lost.is_all);
    drop(notes);
    let notes = open(&path);
    assert_eq!((notes.moved.len(), notes.begun.len()), (1, 0));
    notes.of(one).unwrap().begin(KeptTime::now().unwrap());
    drop(notes);
    let notes = open(&path);
    assert_eq!((notes.moved.len(), notes.begun.len()), (1, 1));
    notes.lines.store(FOLDER_NOTES, Relaxed);
    notes.of(one).unwrap().end();
    assert!(notes.lost().unwrap().is_all);
    // There is room again.
    notes.note(&one, &other, true);
    assert!(notes.lost().is_none());
    // One line is more than the first, so it is kept.
    Arc::new(notes).end(false);
    let notes = open(&path);
    assert!(notes.begun.is_empty());
    assert!(notes.moved.contains_key(&one) && !notes.moved.contains_key(&other));
}

#[test]
fn marks_are_of_all_their_parts() {
    let one = mark(&["a", "b"]);
    assert_ne!(one, mark(&["ab"]));
    assert_ne!(one, mark(&["a", "c"]));
    assert_eq!(mark_of(&hex::encode(one)), Some(one));
    assert_eq!(mark_of("00"), None);
}
