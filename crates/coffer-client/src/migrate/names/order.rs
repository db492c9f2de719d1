//! The versions of a name, the newest first, where a service lists them in another order.

use crate::s3::ListedVersion;

fn newest_before(a: &ListedVersion, b: &ListedVersion) -> std::cmp::Ordering {
    (b.is_latest, &b.object.modified).cmp(&(a.is_latest, &a.object.modified))
}

/// Some services list delete markers behind all versions, of a page or of a name. Where a name's
/// stand so and their times say otherwise, these tell the order; elsewhere that of the list counts,
/// for clocks are put back, and an upload in parts may have the time of its beginning.
pub(super) fn in_order(mut page: Vec<ListedVersion>) -> Vec<ListedVersion> {
    page.sort_by(|a, b| a.object.key.cmp(&b.object.key));
    for name in page.chunk_by_mut(|a, b| a.object.key == b.object.key) {
        let are_apart = !name[0].is_marker
            && name.iter().any(|it| it.is_marker)
            && name.is_sorted_by_key(|it| it.is_marker);
        let is_by_time = name.is_sorted_by(|a, b| a.object.modified >= b.object.modified);
        if are_apart && !is_by_time {
            name.sort_by(newest_before);
        }
    }
    page
}

/// The versions of a name, as they were listed: each once, and in another order where the first is
/// not the newest. Where none is called so, the order of the list counts.
pub(super) fn newest_first(mut versions: Vec<ListedVersion>) -> Vec<ListedVersion> {
    if versions.len() < 2 {
        return versions;
    }
    let mut seen = std::collections::HashSet::new();
    versions.retain(|it| seen.insert(it.version_id.clone()) || it.version_id == "null");
    // Of what has no id, only the same is the same.
    versions.dedup();
    if versions.iter().any(|it| it.is_latest) && !versions[0].is_latest {
        versions.sort_by(newest_before);
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::ListedObject;

    fn version(key: &str, modified: &str, is_latest: bool, is_marker: bool) -> ListedVersion {
        ListedVersion {
            object: ListedObject {
                key: key.to_owned(),
                bytes: 0,
                etag: String::new(),
                modified: modified.to_owned(),
            },
            version_id: modified.to_owned(),
            is_latest,
            is_marker,
        }
    }

    fn times(versions: &[ListedVersion]) -> Vec<&str> {
        let times = versions.iter().map(|it| it.object.modified.as_str());
        times.collect()
    }

    #[test]
    fn markers_behind_all_versions_come_to_their_names() {
        let page = in_order(vec![
            version("a", "1", false, false),
            version("b", "1", true, false),
            version("a", "2", true, true),
        ]);
        let seen: Vec<_> = { page.iter() }
            .map(|it| (it.object.key.as_str(), it.is_marker))
            .collect();
        assert_eq!(seen, [("a", true), ("a", false), ("b", false)]);
        let of_one_name = in_order(vec![
            version("a", "3", true, false),
            version("a", "1", false, false),
            version("a", "2", false, true),
        ]);
        assert_eq!(times(&of_one_name), ["3", "2", "1"]);
    }

    #[test]
    fn markers_of_the_only_name_come_to_their_places() {
        let page = in_order(vec![
            version("a", "3", false, false),
            version("a", "1", false, false),
            version("a", "4", true, true),
            version("a", "2", false, true),
        ]);
        assert_eq!(times(&page), ["4", "3", "2", "1"]);
    }

    #[test]
    fn the_newest_is_the_first_and_each_is_listed_once() {
        let (old, new) = (
            version("a", "1", false, false),
            version("a", "2", true, false),
        );
        let listed = newest_first(vec![old.clone(), new.clone(), old.clone()]);
        assert_eq!(times(&listed), ["2", "1"]);
        // Times may be those at which uploads were begun.
        let late = version("a", "3", false, false);
        let listed = newest_first(vec![new.clone(), old.clone(), late.clone()]);
        assert_eq!(times(&listed), ["2", "1", "3"]);
        let untold = |mut it: ListedVersion| {
            it.is_latest = false;
            it
        };
        let listed = newest_first(vec![untold(old), untold(new)]);
        assert_eq!(times(&listed), ["1", "2"]);
    }

    #[test]
    fn a_clock_that_was_put_back_changes_no_order() {
        // The page ends with its one marker.
        let page = in_order(vec![
            version("a", "1", true, false),
            version("a", "2", false, false),
            version("b", "3", true, true),
        ]);
        assert_eq!(times(&page), ["1", "2", "3"]);
    }
}
