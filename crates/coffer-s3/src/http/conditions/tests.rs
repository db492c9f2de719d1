//! Of entity tags and dates in headers of conditions.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
    let value = |text: &str| HeaderValue::from_str(text).unwrap();
    pairs
        .iter()
        .map(|(name, text)| (name.clone(), value(text)))
        .collect()
}

fn one_of(etags: &[&str]) -> Option<EtagMatch> {
    Some(EtagMatch::OneOf(
        etags.iter().map(|etag| (*etag).to_owned()).collect(),
    ))
}

#[test]
fn entity_tags_come_quoted_weak_bare_and_in_lists() {
    let strong = |value: &str| EtagItem::Strong(value.into());
    assert_eq!(etag_list("\"a\""), [strong("a")]);
    assert_eq!(etag_list("0123abc-4"), [strong("0123abc-4")]);
    assert_eq!(etag_list("*"), [EtagItem::Any]);
    assert_eq!(etag_list("\"*\""), [strong("*")]);
    assert_eq!(
        etag_list(" \"a,b\" , W/\"c\",d,"),
        [strong("a,b"), EtagItem::Weak("c".into()), strong("d")]
    );
    assert_eq!(etag_list("\"open"), [strong("open")]);
    assert_eq!(etag_list(""), []);
}

#[test]
fn weak_tags_match_reads_that_must_not_but_never_those_that_must() {
    let both = headers(&[(IF_MATCH, "W/\"a\", \"b\""), (IF_NONE_MATCH, "W/\"a\"")]);
    let conditions = of_read(&both);
    assert_eq!(conditions.if_match, one_of(&["b"]));
    assert_eq!(conditions.if_none_match, one_of(&["a"]));
}

#[test]
fn a_range_may_depend_on_the_object() {
    let of = |text: &'static str| of_range(&headers(&[(IF_RANGE, text)])).unwrap();
    assert_eq!(of("\"a\"").if_match, one_of(&["a"]));
    assert_eq!(of("W/\"a\"").if_match, one_of(&[]));
    let date = of("Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(date.if_unmodified_since_ms, Some(784_111_777_000));
    assert_eq!(date.if_match, None);
    assert_eq!(of_range(&HeaderMap::new()), None);
}

#[test]
fn dates_that_are_none_are_ignored() {
    let since = headers(&[(IF_MODIFIED_SINCE, "soon")]);
    assert_eq!(of_read(&since), Conditions::default());
}

#[test]
fn writes_take_what_they_can_keep() {
    let write = |pairs: &[(HeaderName, &str)]| of_write(&headers(pairs)).ok();
    assert_eq!(write(&[]), Some(Precondition::None));
    assert_eq!(write(&[(IF_NONE_MATCH, "*")]), Some(Precondition::Absent));
    assert_eq!(write(&[(IF_MATCH, "*")]), Some(Precondition::Present));
    assert_eq!(
        write(&[(IF_MATCH, "\"a\"")]),
        Some(Precondition::Etag("a".into()))
    );
    let entry = |text| of_entry(text).ok();
    assert_eq!(entry("*"), Some(Precondition::Present));
    assert_eq!(entry("\"*\""), Some(Precondition::Etag("*".into())));
    assert_eq!(entry("a-1"), Some(Precondition::Etag("a-1".into())));
    for refused in ["", "W/\"a\"", "\"a\", \"b\"", "*, *"] {
        assert_eq!(entry(refused), None, "{refused}");
    }
    assert_eq!(write(&[(IF_NONE_MATCH, "\"a\"")]), None);
    assert_eq!(write(&[(IF_MATCH, "\"a\", \"b\"")]), None);
    assert_eq!(write(&[(IF_MATCH, "\"a\""), (IF_NONE_MATCH, "*")]), None);
    assert_eq!(
        write(&[(IF_UNMODIFIED_SINCE, "Sun, 06 Nov 1994 08:49:37 GMT")]),
        None
    );
}

#[test]
fn conditions_of_changes_are_kept_or_refused() {
    let of_bytes = |name: &HeaderName, value: &[u8]| {
        let value = HeaderValue::from_bytes(value).unwrap();
        HeaderMap::from_iter([(name.clone(), value)])
    };
    for value in ["\"ä\"".as_bytes(), &b"\"\xe4\""[..]] {
        let etag = Precondition::Etag("ä".into());
        assert_eq!(of_write(&of_bytes(&IF_MATCH, value)).unwrap(), etag);
        assert!(of_write(&of_bytes(&IF_NONE_MATCH, value)).is_err());
        let copy = of_copy_source(&of_bytes(&COPY_IF_MATCH, value)).unwrap();
        assert_eq!(copy.if_match, one_of(&["ä"]));
    }
    for none in ["", ",", " , "] {
        for name in [&IF_MATCH, &IF_NONE_MATCH] {
            let headers = of_bytes(name, none.as_bytes());
            assert!(of_write(&headers).is_err(), "{name} {none:?}");
            assert_eq!(of_read(&headers), Conditions::default());
        }
    }
    for date in ["", "soon", "2020-01-01T00:00:00Z"] {
        let copy = of_bytes(&COPY_IF_UNMODIFIED_SINCE, date.as_bytes());
        assert!(of_copy_source(&copy).is_err(), "{date}");
        let rename = of_bytes(&RENAME_IF_MODIFIED_SINCE, date.as_bytes());
        assert!(of_rename_source(&rename).is_err(), "{date}");
        let target = of_bytes(&IF_UNMODIFIED_SINCE, date.as_bytes());
        assert!(of_rename_target(&target).is_err(), "{date}");
    }
    let date = of_bytes(&COPY_IF_MODIFIED_SINCE, b"Sun, 06 Nov 1994 08:49:37 GMT");
    let copy = of_copy_source(&date).unwrap();
    assert_eq!(copy.if_modified_since_ms, Some(784_111_777_000));
}

#[test]
fn copies_pass_over_that_the_source_was_modified_since_a_time_to_come() {
    let date = "Fri, 31 Dec 9999 23:59:59 GMT";
    let modified = headers(&[(COPY_IF_MODIFIED_SINCE, date), (COPY_IF_MATCH, "\"a\"")]);
    let conditions = of_copy_source(&modified).unwrap();
    assert_eq!(conditions.if_modified_since_ms, None);
    assert_eq!(conditions.if_match, one_of(&["a"]));
    let unmodified = headers(&[(COPY_IF_UNMODIFIED_SINCE, date)]);
    assert!(
        of_copy_source(&unmodified)
            .unwrap()
            .if_unmodified_since_ms
            .is_some()
    );
}

proptest! {
    #[test]
    fn lists_are_read_back(etags in prop::collection::vec("[a-z0-9 ,*-]{1,9}", 0..5)) {
        let text = etags.iter().map(|etag| format!("\"{etag}\"")).collect::<Vec<_>>();
        let expected: Vec<_> = etags.into_iter().map(EtagItem::Strong).collect();
        prop_assert_eq!(etag_list(&text.join(", ")), expected);
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,40}") {
        etag_list(&text);
    }
}
