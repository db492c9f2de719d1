//! How much of a page an answer has room for. S3 allows pages that are shorter than asked for.

use coffer_vault::record::{ListPage, UploadsPage};
use coffer_vault::{UploadId, VersionsPage};

use crate::limits::{PAGE_MAX_BYTES, PAGE_ROW_BYTES, SHORT_PAGE_BYTES};
use crate::request::answer_room::written_bytes;
use crate::request::memory_budget::Reservation;

/// Rows and common prefixes from the beginning of a page, and the bytes that they are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Length {
    rows: usize,
    prefixes: usize,
    bytes: usize,
}

impl Length {
    /// As much as fits into so many bytes, but one row at least. Names and prefixes are each in
    /// the order of their bytes, as the page is.
    fn within<'a>(
        max_bytes: usize,
        names: impl Iterator<Item = &'a str>,
        prefixes: &'a [String],
    ) -> Self {
        let mut names = names.peekable();
        let mut prefixes = prefixes.iter().map(String::as_str).peekable();
        let mut length = Self::default();
        loop {
            let is_name = match (names.peek(), prefixes.peek()) {
                (Some(name), Some(prefix)) => name < prefix,
                (name, _) => name.is_some(),
            };
            let next = if is_name {
                names.next()
            } else {
                prefixes.next()
            };
            let Some(text) = next else { return length };
            let bytes = length.bytes + PAGE_ROW_BYTES + written_bytes(text);
            if bytes > max_bytes && length != Self::default() {
                return length;
            }
            length.bytes = bytes;
            if is_name {
                length.rows += 1
            } else {
                length.prefixes += 1
            }
        }
    }

    /// Takes room for a page, or for a short one, which always finds some. The last half of the
    /// room is not for pages: what can't be cut needs it.
    fn with_room<'a>(
        answer: &Reservation,
        names: impl Iterator<Item = &'a str> + Clone,
        prefixes: &'a [String],
    ) -> Self {
        let length = Self::within(PAGE_MAX_BYTES, names.clone(), prefixes);
        if answer.has_plenty_for(length.bytes) && answer.set(length.bytes).is_ok() {
            length
        } else {
            Self::within(SHORT_PAGE_BYTES, names, prefixes)
        }
    }
}

/// Cuts a page of objects to what there is room for.
pub(crate) fn cut_objects(page: &mut ListPage, answer: &Reservation) {
    let names = page.objects.iter().map(|object| object.name.expose());
    let length = Length::with_room(answer, names, &page.prefixes);
    if length.rows + length.prefixes == page.objects.len() + page.prefixes.len() {
        return;
    }
    page.objects.truncate(length.rows);
    page.prefixes.truncate(length.prefixes);
    let object = page.objects.last().map(|object| object.name.expose());
    page.next = object
        .max(page.prefixes.last().map(String::as_str))
        .map(str::to_owned);
}

/// Cuts a page of uploads to what there is room for.
pub(crate) fn cut_uploads(page: &mut UploadsPage, answer: &Reservation) {
    let names = page.uploads.iter().map(|upload| upload.name.expose());
    let length = Length::with_room(answer, names, &page.prefixes);
    if length.rows + length.prefixes == page.uploads.len() + page.prefixes.len() {
        return;
    }
    page.uploads.truncate(length.rows);
    page.prefixes.truncate(length.prefixes);
    page.next = last_upload(page);
}

/// Where the rows of a page end, which is where the next begins.
pub(crate) fn last_upload(page: &UploadsPage) -> Option<(String, Option<UploadId>)> {
    let upload = page.uploads.last();
    let upload = upload.map(|upload| (upload.name.expose().to_owned(), Some(upload.id)));
    let prefix = page.prefixes.last().map(|prefix| (prefix.clone(), None));
    upload.max(prefix)
}

/// Cuts a page of versions to what there is room for.
pub(crate) fn cut_versions(page: &mut VersionsPage, answer: &Reservation) {
    let names = page.versions.iter().map(|version| version.name.expose());
    let length = Length::with_room(answer, names, &page.prefixes);
    if length.rows + length.prefixes == page.versions.len() + page.prefixes.len() {
        return;
    }
    page.versions.truncate(length.rows);
    page.prefixes.truncate(length.prefixes);
    let version = page.versions.last();
    let version = version.map(|row| (row.name.expose().to_owned(), Some(row.version)));
    let prefix = page.prefixes.last().map(|prefix| (prefix.clone(), None));
    page.next = version
        .into_iter()
        .chain(prefix)
        .max_by(|a, b| a.0.cmp(&b.0));
}

/// How many of so many parts there is room for.
pub(crate) fn parts(count: usize, answer: &Reservation) -> usize {
    let bytes = count * PAGE_ROW_BYTES;
    if answer.has_plenty_for(bytes) && answer.set(bytes).is_ok() {
        count
    } else {
        count.min(SHORT_PAGE_BYTES / PAGE_ROW_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use coffer_vault::record::{ListedObject, ObjectName};

    use super::*;
    use crate::limits::{ANSWER_FREE_BYTES, ANSWERS_MAX_BYTES};
    use crate::request::memory_budget::MemoryBudget;

    fn page(names: impl Iterator<Item = String>, prefixes: &[&str]) -> ListPage {
        let object = |name: String| ListedObject {
            name: ObjectName::new(name).unwrap(),
            size_bytes: 0,
            etag: String::new(),
            modified_ms: 0,
            checksum: None,
            owner: None,
        };
        ListPage {
            objects: names.map(object).collect(),
            prefixes: prefixes.iter().map(ToString::to_string).collect(),
            next: Some("whole".into()),
        }
    }

    #[test]
    fn pages_of_usual_names_stay_whole() {
        let answer = MemoryBudget::answers().reservation(usize::MAX);
        let whole = page((0..1000).map(|i| format!("{i:0500}")), &[]);
        let mut cut = whole.clone();
        cut_objects(&mut cut, &answer);
        assert_eq!(cut, whole);
    }

    #[test]
    fn pages_of_long_names_are_cut_and_go_on_where_they_end() {
        let answer = MemoryBudget::answers().reservation(usize::MAX);
        let mut cut = page(
            (0..1000).map(|i| "\"".repeat(1000) + &format!("{i:05}")),
            &[],
        );
        cut_objects(&mut cut, &answer);
        let rows = cut.objects.len();
        assert!((300..400).contains(&rows), "{rows}");
        assert_eq!(
            cut.next.as_deref(),
            Some(cut.objects[rows - 1].name.expose())
        );
    }

    #[test]
    fn pages_are_short_while_others_take_the_room() {
        let budget = MemoryBudget::answers();
        let others = budget.reservation(usize::MAX);
        others
            .set(ANSWERS_MAX_BYTES / 2 + ANSWER_FREE_BYTES)
            .unwrap();
        let answer = budget.reservation(usize::MAX);
        let names = || (0..1000).map(|i| format!("{i:04}"));
        let mut cut = page(names(), &["0001/", "00020/", "0500/"]);
        cut_objects(&mut cut, &answer);
        assert_eq!(cut.prefixes, ["0001/", "00020/"]);
        let rows = cut.objects.len();
        assert!((80..100).contains(&rows), "{rows}");
        assert_eq!(
            cut.next.as_deref(),
            Some(cut.objects[rows - 1].name.expose())
        );
        assert!(parts(1000, &answer) < 100);
        drop(others);
        assert_eq!(parts(1000, &answer), 1000);
    }

    #[test]
    fn a_page_can_end_with_a_prefix() {
        let length = Length::within(3 * PAGE_ROW_BYTES, ["a", "c"].into_iter(), &["b".into()]);
        assert_eq!((length.rows, length.prefixes), (1, 1));
        let length = Length::within(0, ["a"].into_iter(), &[]);
        assert_eq!((length.rows, length.prefixes), (1, 0));
    }
}
