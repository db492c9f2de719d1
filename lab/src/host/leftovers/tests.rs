use super::*;
use crate::host::note::Lab;

#[test]
fn owners_are_read_from_names() {
    assert_eq!(owner_of_folder("coffer-lab-file-1234"), Some(1234));
    assert_eq!(owner_of_folder("coffer-lab-net-77.leaving"), Some(77));
    assert_eq!(owner_of_folder("coffer-lab-upload-5"), Some(5));
    for strange in [
        "coffer-lab-notes-12",
        "coffer-lab-file-",
        "coffer-lab-file-2024-results",
        "coffer-lab-file-2024.tar",
        "lab-file-3",
        "",
    ] {
        assert_eq!(owner_of_folder(strange), None, "{strange}");
    }
    for name in ["", "-0a", "-12b", "-inline", "-probe"] {
        let name = format!("coffer-lab-1234{name}");
        assert_eq!(owner_of_device(&name), Some(1234), "{name}");
    }
    for strange in ["coffer-lab-2024-results", "coffer-lab-7-a", "coffer-lab-x"] {
        assert_eq!(owner_of_device(strange), None, "{strange}");
    }
    assert_eq!(owner_of_run("run-1234-0"), Some(1234));
    assert_eq!(owner_of_run("run-2024-thesis"), None);
    assert_eq!(owner_of_socket("clw1234n0a.sock"), Some(1234));
    assert_eq!(owner_of_socket("clw1234notes"), None);
    // Above the greatest number that Linux gives a process.
    let gone = Path::new("/srv/coffer-lab-file-99999999");
    assert_eq!(folder_of(&gone.join("3/image")), Some(gone));
    assert_eq!(folder_of(Path::new("/srv/image")), None);
    assert_eq!(in_full(r"/a\040b\012c\134040d"), "/a b\nc\\040d");
}

/// A note as a lab of that process left it.
fn plant_note(path: &Path, process: i32, above: usize) {
    note::plant(path, above, |lab| lab.process = process);
}

fn of(found: Vec<Leftover>, folder: &Path) -> Vec<Leftover> {
    let is_there = |one: &Leftover| match one {
        Leftover::Files(path) | Leftover::Above(path, _) => path.starts_with(folder),
        _ => false,
    };
    found.into_iter().filter(is_there).collect()
}

/// Others may call theirs as they like.
#[test]
fn what_has_only_the_name_of_a_leftover_is_none() {
    let folder = std::env::temp_dir().join(format!("lab-named-{}", std::process::id()));
    let cache = folder.join("cache");
    let (bare, run) = (
        folder.join("coffer-lab-file-99999999"),
        cache.join("run-99999999-0"),
    );
    let strange = ["run-99999999-thesis", "run-99999999", "run-x-0"];
    for path in strange
        .iter()
        .map(|name| cache.join(name))
        .chain([bare.clone(), run.clone()])
    {
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("thesis"), "theirs").unwrap();
    }
    // Moved there with its note: another's number.
    plant_note(&bare.join(note::NAME), 99_999_998, 0);
    let found = find(std::slice::from_ref(&folder), &cache);
    assert_eq!(of(found.left, &folder), []);
    let both = [run.clone(), bare.clone()].map(Leftover::Files);
    assert_eq!(of(found.unproven, &folder), both);
    assert_eq!(both[0].by_hand(), format!("rm -r '{}'", run.display()));
    plant_note(&run.join(note::NAME), 99_999_999, 0);
    let found = find(&[], &cache);
    assert_eq!(of(found.left, &folder), both[..1]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn folders_that_were_made_above_go_where_they_are_empty() {
    let folder = std::env::temp_dir().join(format!("lab-above-{}", std::process::id()));
    let place = folder.join("new/er");
    let left = place.join("coffer-lab-file-99999999");
    fs::create_dir_all(&left).unwrap();
    plant_note(&left.join(note::NAME), 99_999_999, 2);
    let places = std::slice::from_ref(&place);
    let look = || of(find(places, Path::new("/no/such/cache")).left, &folder);
    fs::write(folder.join("new/notes"), "theirs").unwrap();
    let deepest = Leftover::Above(place.clone(), vec![place.canonicalize().unwrap()]);
    assert_eq!(look(), [Leftover::Files(left.clone()), deepest]);
    fs::write(place.join("notes"), "theirs").unwrap();
    assert_eq!(look(), [Leftover::Files(left)]);
    fs::remove_file(place.join("notes")).unwrap();
    fs::remove_file(folder.join("new/notes")).unwrap();
    assert!(look().iter().all(remove));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn what_belongs_to_a_lab_that_runs_is_left_alone() {
    let folder = std::env::temp_dir().join(format!("lab-leftovers-{}", std::process::id()));
    let own = folder.join(format!("coffer-lab-file-{}", std::process::id()));
    // Above the greatest number that Linux gives a process.
    let gone = folder.join("coffer-lab-file-99999999");
    for (path, process) in [(&own, Lab::own().process), (&gone, 99_999_999)] {
        fs::create_dir_all(path.join("below")).unwrap();
        plant_note(&path.join(note::NAME), process, 0);
    }
    let found = find(std::slice::from_ref(&folder), &folder.join("cache"));
    let found = of(found.left, &folder);
    assert_eq!(found, [Leftover::Files(gone.clone())]);
    assert!(remove(&found[0]) && own.exists() && !gone.exists());
    assert!(!remove(&found[0]), "it is gone");
    fs::remove_dir_all(folder).unwrap();
}

/// A lab that is gone had the number of one that runs; and a lab in another container has it.
#[test]
fn labs_are_not_told_apart_by_their_numbers_alone() {
    let folder = std::env::temp_dir().join(format!("lab-numbers-{}", std::process::id()));
    let [gone, theirs] = ["file", "net"]
        .map(|purpose| folder.join(format!("coffer-lab-{purpose}-{}", std::process::id())));
    for path in [&gone, &theirs] {
        fs::create_dir_all(path).unwrap();
    }
    note::plant(&gone.join(note::NAME), 0, |lab| lab.started += "0");
    let elsewhere = |lab: &mut Lab| lab.numbers = "pid:[1]".to_owned();
    note::plant(&theirs.join(note::NAME), 0, elsewhere);
    // No process here has that number.
    let other = folder.join("coffer-lab-file-99999999");
    fs::create_dir(&other).unwrap();
    note::plant(&other.join(note::NAME), 0, |lab| {
        lab.process = 99_999_999;
        elsewhere(lab);
    });
    let found = find(std::slice::from_ref(&folder), Path::new("/no/such/cache"));
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(of(found.left, &folder), [Leftover::Files(gone)]);
    let unknown = [other, theirs].map(Leftover::Files);
    assert_eq!(of(found.unknown, &folder), unknown);
}

#[test]
fn what_lies_in_memory_is_found_without_being_named() {
    let upload = Path::new(MEMORY).join("coffer-lab-upload-99999999");
    if fs::create_dir(&upload).is_err() {
        return;
    }
    plant_note(&upload.join(note::NAME), 99_999_999, 0);
    let found = find(&[], Path::new("/no/such/cache")).left;
    let one = Leftover::Files(upload.clone());
    assert!(found.contains(&one) && remove(&one) && !upload.exists());
}
