use super::*;
use crate::s3::ListedObject;

/// Entries as words: `v` a version or `m` a marker, the second of its time, with a `b` for another
/// of that second, and a star for the newest. Names stand before a slash; without one, it is `a`.
fn entries(words: &str) -> Vec<ListedVersion> {
    let entry = |word: &str| {
        let is_latest = word.ends_with('*');
        let word = word.trim_end_matches('*');
        let (key, word) = word.split_once('/').unwrap_or(("a", word));
        let modified = match word[1..].trim_end_matches('b').parse::<u64>() {
            Ok(seconds) => format!("2026-01-01T00:{:02}:{:02}Z", seconds / 60, seconds % 60),
            Err(_) => String::new(),
        };
        ListedVersion {
            object: ListedObject {
                key: key.to_owned(),
                bytes: 0,
                etag: String::new(),
                modified,
            },
            version_id: word.to_owned(),
            is_latest,
            is_marker: word.starts_with('m'),
        }
    };
    words.split_whitespace().map(entry).collect()
}

fn ids(versions: &[ListedVersion]) -> String {
    let ids: Vec<&str> = versions.iter().map(|it| it.version_id.as_str()).collect();
    ids.join(" ")
}

/// The order of a name whose pages stand between bars, or what is wrong with it.
fn ordered(listed: &str, kinds: Kinds) -> Result<String, &'static str> {
    let found = in_order(listed.split('|').map(entries).collect(), kinds);
    match found.problem {
        None => Ok(ids(&found.versions)),
        Some(problem) => Err(problem),
    }
}

#[test]
fn a_right_list_counts_as_it_is() {
    for listed in [
        "v1*",
        "m1*",
        "v3* v2 v1",
        "v3* m2 v1",
        "m4* v3 m2 v1",
        "v4* m3 | v2 m1",
        // An object that was deleted before it was ever stored, and one that was deleted twice.
        "v3* v2 m1",
        "m3* m2 v1",
        "m5* v5 v5b",
        // Clocks were put back.
        "v1* v9 v2",
        "v1* m9 v2",
        "v4* v3 v2 v301 m300",
        "v4* v3 m300",
        // An upload in parts has the time of its beginning.
        "v40* v10 v20 m1",
    ] {
        let expected = listed.replace("| ", "").replace('*', "");
        for kinds in [Kinds::Unknown, Kinds::Interleaved] {
            assert_eq!(ordered(listed, kinds), Ok(expected.clone()), "{listed}");
        }
    }
}

#[test]
fn markers_that_are_listed_apart_come_to_their_places() {
    for (listed, kinds, expected) in [
        // The newest leads the other kind.
        ("v3 v1 m4* m2", Kinds::Unknown, "m4 v3 m2 v1"),
        ("v3 v1 | m4* m2", Kinds::Unknown, "m4 v3 m2 v1"),
        ("v3 v1 m4* m2", Kinds::Interleaved, "m4 v3 m2 v1"),
        ("m3 m1 v4* v2", Kinds::Unknown, "v4 m3 v2 m1"),
        ("v5 m4* | v3", Kinds::Unknown, "m4 v5 v3"),
        // Other names have shown it.
        ("v4* v2 m3 m1", Kinds::Apart, "v4 m3 v2 m1"),
        ("v4* v2 | m3 m1", Kinds::Apart, "v4 m3 v2 m1"),
        ("v5* v3 m4 | v2 v0 m1", Kinds::Apart, "v5 m4 v3 v2 m1 v0"),
        ("m4* m2 v3 v1", Kinds::Apart, "m4 v3 m2 v1"),
        ("v3* m1", Kinds::Apart, "v3 m1"),
        // Those of one kind keep their order.
        ("v40* v10 v20 m1", Kinds::Apart, "v40 v10 v20 m1"),
    ] {
        assert_eq!(ordered(listed, kinds), Ok(expected.to_owned()), "{listed}");
    }
}

#[test]
fn what_cannot_be_told_is_no_order() {
    let (unknown, apart) = (Kinds::Unknown, Kinds::Apart);
    for (listed, kinds, problem) in [
        ("v4* v2 m3 m1", unknown, APART),
        ("v4* v2 | m3 m1", unknown, APART),
        ("v4* | v2 m3 m1", unknown, APART),
        ("v4* v2 m3", unknown, APART),
        ("m4* m2 v3 v1", unknown, APART),
        ("m4* m2 | v3 v1", unknown, APART),
        // Two times are the same, or none is told.
        ("v5* v4 m4", unknown, APART),
        ("v5* v5b m5", apart, APART),
        ("v5* v? m4", unknown, APART),
        // What is newer than a version stands behind an older one.
        ("v9* v2 v6 m4", apart, APART),
        ("v3 v1", unknown, NO_NEWEST),
        ("v3", unknown, NO_NEWEST),
        ("v3* m2 v1*", unknown, SEVERAL),
        ("v1* v2* v3*", unknown, SEVERAL),
        ("v2 v3* v1", unknown, NOT_FIRST),
        ("v2 m1 v3*", unknown, NOT_FIRST),
        ("v3 m4* v1", unknown, NOT_FIRST),
        ("v3 m2 m4* v1", unknown, NOT_FIRST),
    ] {
        assert_eq!(ordered(listed, kinds), Err(problem), "{listed}");
    }
}

#[test]
fn a_list_may_have_the_oldest_first() {
    assert_eq!(
        ordered("v1 m2 | v3*", Kinds::Unknown),
        Ok("v3 m2 v1".to_owned())
    );
    assert_eq!(ordered("v1 v3*", Kinds::Unknown), Ok("v3 v1".to_owned()));
}

#[test]
fn each_is_listed_once() {
    assert_eq!(
        ordered("v2* v1 v2*", Kinds::Unknown),
        Ok("v2 v1".to_owned())
    );
    assert_eq!(
        ordered("v2* | v2* v1", Kinds::Unknown),
        Ok("v2 v1".to_owned())
    );
}

#[test]
fn a_page_shows_how_kinds_are_listed() {
    let page = |listed: &str| VersionsPage {
        versions: entries(listed),
        ..VersionsPage::default()
    };
    let seen = |listed: &str| Kinds::Unknown.seen(&page(listed));
    assert_eq!(seen("a/v3 a/v1 b/v1* a/m4* a/m2"), Kinds::Apart);
    assert_eq!(seen("b/m2* a/v3* b/v1"), Kinds::Apart);
    assert_eq!(seen("a/v3* a/m2 a/v1 b/v1*"), Kinds::Interleaved);
    for listed in [
        "",
        "a/v3* a/v1 a/m2",
        "a/m2* a/v1 b/v2* b/m1",
        "b/v1* a/v1*",
    ] {
        assert_eq!(seen(listed), Kinds::Unknown, "{listed}");
        let mut ours = page(listed);
        ours.is_of_coffer = true;
        assert_eq!(Kinds::Unknown.seen(&ours), Kinds::Interleaved, "{listed}");
    }
    let page = page("a/v3* b/v1* a/m2");
    assert_eq!(Kinds::Interleaved.seen(&page), Kinds::Apart);
    let sorted = by_name(page.versions);
    assert_eq!(ids(&sorted), "v3 m2 v1");
}

#[test]
fn hosts_of_amazon_list_kinds_between_each_other() {
    for host in [
        "s3.eu-west-1.amazonaws.com",
        "b.s3.cn-north-1.amazonaws.com.cn:443",
    ] {
        assert_eq!(Kinds::of(host), Kinds::Interleaved, "{host}");
    }
    for host in [
        "127.0.0.1:9000",
        "amazonaws.com.example.org",
        "notamazonaws.com",
    ] {
        assert_eq!(Kinds::of(host), Kinds::Unknown, "{host}");
    }
}

/// Lives of a name by a clock that is put back, listed rightly and page by page: their order is
/// never another, and of a service that is known, it can always be told.
#[test]
fn no_right_list_is_changed() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let mut told = 0;
    for _ in 0..20_000 {
        let (mut clock, mut life) = (300, Vec::new());
        for id in 0..1 + below(7) {
            clock = if below(4) == 0 {
                clock - below(9)
            } else {
                clock + below(5)
            };
            let kind = if below(2) == 0 { "v" } else { "m" };
            let mut entry = entries(&format!("{kind}{clock}")).remove(0);
            entry.version_id = id.to_string();
            life.insert(0, entry);
        }
        life[0].is_latest = true;
        let size = 1 + below(4) as usize;
        let pages = || life.chunks(size).map(<[_]>::to_vec).collect();
        let known = in_order(pages(), Kinds::Interleaved);
        assert_eq!((ids(&known.versions), known.problem), (ids(&life), None));
        let found = in_order(pages(), Kinds::Unknown);
        assert_eq!(ids(&found.versions), ids(&life));
        told += u32::from(found.problem.is_none());
    }
    assert!(told > 10_000, "only {told} of 20000 could be told");
}
