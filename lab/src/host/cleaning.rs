//! What `coffer-lab clean` does: looks at each place where a lab may have left something, removes
//! what it finds, and tells of each place.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::host::folder::MEMORY;
use crate::host::leftovers::{
    self, BLOCK_DEVICES, Leftover, MAPPED, NAMESPACES, WIREGUARD_SOCKETS,
};
use crate::host::note::STATE;

/// How often is looked at most for what was left.
const ROUNDS: usize = 5;

const PROGRAMS: &str = "the programs that this user may look into (/proc)";
const MOUNTS: &str = "mounts (/proc/self/mounts)";

/// What was found and done.
#[derive(Debug, Serialize)]
pub struct Cleaning {
    /// Nothing was to be removed.
    dry_run: bool,
    /// Where was looked, in the order in which things are removed.
    places: Vec<Place>,
}

/// Where was looked.
#[derive(Debug, Serialize)]
struct Place {
    place: String,
    /// Why it could not be looked into.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    found: Vec<Found>,
}

/// What a lab left, or what has a name as if it had.
#[derive(Debug, Serialize)]
struct Found {
    what: String,
    removed: bool,
    /// How it is removed by hand, where it is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_alone: Option<String>,
    /// Why it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

const UNPROVEN: &str = "nothing in it says that a lab made it";
const UNKNOWN: &str =
    "a lab made it in another container, whose processes are not seen here: it may run";

/// Removes what labs left that run no more, in `folders` and `cache` and where the kernel tells of
/// it; or only looks.
pub fn clean(folders: &[PathBuf], cache: &Path, dry_run: bool) -> Cleaning {
    // Without a slash at the end, as what lies there has it.
    let folders: Vec<PathBuf> = folders
        .iter()
        .map(|one| one.components().collect())
        .collect();
    let (folders, cache) = (&folders[..], &cache.components().collect::<PathBuf>());
    // A lab that is still dying, and what it had begun, may leave more while the rest is removed.
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let mut more = leftovers::find(folders, cache).left;
        more.retain(|one| !found.contains(one));
        if more.is_empty() {
            break;
        }
        for one in more.iter().filter(|_| !dry_run) {
            leftovers::remove(one);
        }
        found.extend(more);
    }
    // Another may have removed it meanwhile.
    let there = leftovers::find(folders, cache);
    let left = found.iter().map(|one| {
        let is_there = match one {
            Leftover::Above(_, folders) => folders.iter().any(|one| one.exists()),
            _ => there.left.contains(one),
        };
        (one, !is_there, None)
    });
    let unproven = there.unproven.iter().map(|one| (one, UNPROVEN));
    let alone = unproven.chain(there.unknown.iter().map(|one| (one, UNKNOWN)));
    let alone = alone.map(|(one, why)| (one, false, Some(why)));
    let all: Vec<_> = left.chain(alone).collect();
    let in_place = |(place, unreadable): (String, Option<String>)| Place {
        found: all
            .iter()
            .filter(|(one, ..)| place_of(one) == place)
            .map(|(one, removed, why)| Found {
                what: one.to_string(),
                removed: *removed,
                left_alone: why.map(|_| one.by_hand()),
                why: *why,
            })
            .collect(),
        place,
        unreadable,
    };
    Cleaning {
        dry_run,
        places: places(folders, cache).into_iter().map(in_place).collect(),
    }
}

/// All places, and why those that could not be looked into could not.
fn places(folders: &[PathBuf], cache: &Path) -> Vec<(String, Option<String>)> {
    let kernel = [PROGRAMS, MOUNTS, MAPPED, BLOCK_DEVICES, NAMESPACES];
    let kernel = kernel.map(|place| (place.to_owned(), None));
    let mut files: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    files.extend([MEMORY, WIREGUARD_SOCKETS, STATE].map(Path::new));
    files.push(cache);
    let mut all = kernel.to_vec();
    for folder in files {
        let place = folder.display().to_string();
        if all.iter().all(|(known, _)| *known != place) {
            all.push((place, unreadable(folder)));
        }
    }
    all
}

/// Where it was found.
fn place_of(leftover: &Leftover) -> String {
    let place = match leftover {
        Leftover::Program(..) => PROGRAMS,
        Leftover::Mount(_) => MOUNTS,
        Leftover::Mapped(_) => MAPPED,
        Leftover::Loop(_) => BLOCK_DEVICES,
        Leftover::Namespace(_) => NAMESPACES,
        Leftover::Files(path) => {
            let folder = path.parent().unwrap_or(path);
            return folder.display().to_string();
        }
        Leftover::Above(place, _) => return place.display().to_string(),
    };
    place.to_owned()
}

/// A folder that is not there holds nothing.
fn unreadable(folder: &Path) -> Option<String> {
    let error = fs::read_dir(folder).err()?;
    (error.kind() != ErrorKind::NotFound).then(|| error.to_string())
}

impl Cleaning {
    /// A line for each thing, and for each place where there was nothing.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for place in &self.places {
            let name = &place.place;
            for one in &place.found {
                let what = &one.what;
                text += &match (&one.left_alone, one.why, one.removed) {
                    (Some(by_hand), Some(why), _) => {
                        format!("left alone: {what}: {why}; to remove it: {by_hand}\n")
                    }
                    (.., true) => format!("removed: {what}\n"),
                    (.., false) => format!("left: {what}\n"),
                };
            }
            match &place.unreadable {
                Some(why) => text += &format!("not looked into: {name}: {why}\n"),
                None if place.found.is_empty() => text += &format!("nothing found in {name}\n"),
                None => {}
            }
        }
        text
    }

    /// The same, for programs.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// What should have gone, and did not.
    pub fn stays(&self) -> Vec<&str> {
        let found = self.places.iter().flat_map(|place| &place.found);
        let stays = found.filter(|one| !self.dry_run && !one.removed && one.left_alone.is_none());
        stays.map(|one| one.what.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::note;

    #[test]
    fn each_place_is_told_with_what_was_found_there() {
        let folder = std::env::temp_dir().join(format!("lab-cleaning-{}", std::process::id()));
        // Above the greatest number that Linux gives a process.
        let gone = folder.join("one/coffer-lab-file-99999999");
        let theirs = folder.join("two/coffer-lab-file-99999999");
        fs::create_dir_all(&gone).unwrap();
        fs::create_dir_all(&theirs).unwrap();
        note::plant(&gone.join(note::NAME), 0, |lab| lab.process = 99_999_999);
        let elsewhere = folder.join("two/coffer-lab-net-99999999");
        fs::create_dir(&elsewhere).unwrap();
        note::plant(&elsewhere.join(note::NAME), 0, |lab| {
            (lab.process, lab.numbers) = (99_999_999, "pid:[1]".to_owned());
        });
        fs::write(folder.join("three"), "").unwrap();
        let folders = ["one/", "two", "three"].map(|name| folder.join(name));
        let cache = folder.join("cache");

        let looked = clean(&folders, &cache, true);
        let (there, text) = (gone.exists(), looked.text());
        let cleaned = clean(&folders, &cache, false);
        let stays = theirs.exists() && elsewhere.exists();
        let (gone_now, after) = (!gone.exists() && stays, cleaned.text());
        fs::remove_dir_all(&folder).unwrap();

        let told = |verb: &str| format!("{verb}: {}\n", gone.display());
        assert!(there && text.contains(&told("left")), "{text}");
        assert!(looked.stays().is_empty(), "it was only looked for");
        assert!(gone_now && after.contains(&told("removed")), "{after}");
        let alone = format!("left alone: {}: nothing in it says", theirs.display());
        let by_hand = format!("rm -r '{}'\n", theirs.display());
        assert!(
            after.contains(&alone) && after.contains(&by_hand),
            "{after}"
        );
        let where_made = "a lab made it in another container";
        let alone = format!("left alone: {}: {where_made}", elsewhere.display());
        assert!(after.contains(&alone), "{after}");
        assert!(cleaned.stays().is_empty(), "{after}");
        let nothing = |place: &Path| format!("nothing found in {}\n", place.display());
        for place in [&cache, Path::new(MEMORY)] {
            let is_told = text.contains(&nothing(place));
            // Others may have left something in memory.
            assert!(is_told || place == Path::new(MEMORY), "{text}");
        }
        let one = folder.join("one");
        assert!(!text.contains(&nothing(&one)), "{text}");
        let strange = format!("not looked into: {}: ", folders[2].display());
        assert!(text.contains(&strange), "{text}");
        let json: serde_json::Value = serde_json::from_str(&cleaned.json()).unwrap();
        let places = json["places"].as_array().unwrap();
        let own = places
            .iter()
            .find(|place| place["place"].as_str() == one.to_str());
        assert_eq!(own.unwrap()["found"][0]["removed"], true, "{json}");
    }
}
