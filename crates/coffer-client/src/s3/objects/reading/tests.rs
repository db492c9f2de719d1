//! Answers that are, and are not, what was asked for.

use super::*;

const DATE: &str = "Fri, 27 Nov 2026 10:00:00 GMT";

fn headers(text: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in text.split('|').filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once('=').unwrap();
        let value = value.replace("DATE", DATE);
        headers.insert(
            http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    headers
}

#[test]
fn pages_and_errors_are_no_objects() {
    for (told, expected) in [
        ("etag=\"e\"", true),
        ("etag=\"e\"|content-type=text/html", true),
        ("etag=\"\"|content-type=text/html", false),
        ("x-amz-request-id=1", true),
        ("x-amz-id-2=1|content-type=application/octet-stream", true),
        ("x-amz-request-id=1|content-type=application/xml", false),
        (
            "x-amz-request-id=1|content-type=application/xml|last-modified=DATE",
            true,
        ),
        ("x-amz-request-id=1|content-type=text/html", false),
        (
            "x-amz-request-id=1|content-type=text/html|last-modified=DATE",
            true,
        ),
        ("content-type=image/png|last-modified=DATE", true),
        ("last-modified=DATE", false),
        (
            "content-type=Text/HTML; charset=utf-8|last-modified=DATE",
            false,
        ),
        (
            "content-type=application/xhtml+xml|last-modified=DATE",
            false,
        ),
        ("content-type=text/html|x-amz-cf-id=1", false),
        ("content-type=image/png", false),
    ] {
        assert_eq!(is_of_s3(&headers(told)), expected, "{told}");
    }
}

#[test]
fn answers_are_of_one_content() {
    let wanted = |head: &str| {
        let head = headers(&format!("{head}|content-length=100"));
        Wanted::of(
            &ObjectName::new("b", "k"),
            &ObjectHead::of_headers(head).unwrap(),
        )
    };
    let check = |wanted: &Wanted, told: &str| {
        let told = headers(&format!("{told}|content-range=bytes 10-19/100"));
        wanted.check(StatusCode::PARTIAL_CONTENT, &told, &(10..20))
    };
    let tagged = wanted("etag=\"e\"|last-modified=DATE");
    assert!(tagged.is_marked() && tagged.modified.is_empty());
    assert_eq!(check(&tagged, "etag=W/\"e\""), Ok(()));
    assert_eq!(
        check(&tagged, "etag=\"f\"|last-modified=DATE"),
        Err(Wrong::Content)
    );
    let told = check(&tagged, "x-amz-request-id=1|last-modified=DATE");
    assert_eq!(
        told,
        Err(Wrong::Answer("tells no ETag, though the object has one"))
    );
    let dated = wanted("last-modified=DATE");
    assert_eq!(
        check(&dated, "x-amz-request-id=1|last-modified=DATE"),
        Ok(())
    );
    for other in ["", "|last-modified=Fri, 27 Nov 2026 10:00:01 GMT"] {
        let told = check(&dated, &format!("x-amz-request-id=1{other}"));
        assert_eq!(told, Err(Wrong::Content), "{other}");
    }
    // No more need be told than that time, but by no page.
    assert_eq!(check(&dated, "last-modified=DATE"), Ok(()));
    let page = check(&dated, "last-modified=DATE|content-type=Text/HTML");
    assert_eq!(page, Err(Wrong::Answer(NO_ETAG)));
    assert!(!wanted("x-amz-request-id=1").is_marked());
    assert!(!wanted("etag=\"\"").is_marked());
}

#[test]
fn a_weak_tag_is_no_mark_and_another_one_is_of_another_content() {
    let wanted = |head: &str| {
        let head = headers(&format!("etag=W/\"e\"|content-length=100{head}"));
        Wanted::of(
            &ObjectName::new("b", "k"),
            &ObjectHead::of_headers(head).unwrap(),
        )
    };
    assert!(!wanted("").is_marked() && wanted("").noted_tag().is_empty());
    let dated = wanted("|last-modified=DATE");
    assert!(dated.is_marked() && !dated.has_tag() && dated.condition_of_copy().is_none());
    assert_eq!(dated.noted_tag(), "W/\"e\"");
    for (told, expected) in [
        ("etag=W/\"e\"|last-modified=DATE", Ok(())),
        ("last-modified=DATE|x-amz-request-id=1", Ok(())),
        ("etag=W/\"f\"|last-modified=DATE", Err(Wrong::Content)),
        (
            "etag=W/\"e\"|last-modified=Fri, 27 Nov 2026 10:00:01 GMT",
            Err(Wrong::Content),
        ),
    ] {
        let answer = headers(&format!("{told}|content-range=bytes 10-19/100"));
        let checked = dated.check(StatusCode::PARTIAL_CONTENT, &answer, &(10..20));
        assert_eq!(checked, expected, "{told}");
    }
}

#[test]
fn answers_are_of_the_bytes_that_were_asked_for() {
    let head = headers("etag=e|content-length=10");
    let head = ObjectHead::of_headers(head).unwrap();
    let wanted = Wanted::of(&ObjectName::new("b", "k"), &head);
    let check = |status: u16, told: &str, range: Range<u64>| {
        let told = headers(&format!("etag=e|{told}"));
        let status = StatusCode::from_u16(status).unwrap();
        wanted.check(status, &told, &range).is_ok()
    };
    assert!(check(200, "content-length=10", 0..10) && check(200, "", 0..10));
    assert!(check(206, "content-range=bytes 0-9/10", 0..10));
    assert!(check(
        206,
        "content-range=bytes 2-3/*|content-length=2",
        2..4
    ));
    for (status, told) in [
        (200, "content-length=0"),
        (200, "content-length=9"),
        (200, "content-length=11"),
        (203, "content-length=10"),
        (204, "content-length=0"),
        (206, "content-length=10"),
        (206, "content-range=bytes 0-4/10|content-length=5"),
        (206, "content-range=bytes 0-9/10|content-length=5"),
    ] {
        assert!(!check(status, told, 0..10), "{status} {told}");
    }
    assert!(!check(200, "content-length=10", 2..4));
    let whole = wanted.check(
        StatusCode::OK,
        &headers("etag=e|content-length=10"),
        &(2..4),
    );
    assert_eq!(whole, Err(Wrong::Whole));
    assert!(check(
        206,
        "x-coffer-transfer=sealed|content-length=300",
        2..4
    ));
}

#[test]
fn answers_are_of_what_was_listed() {
    let listed = |etag: &str| ListedObject {
        key: "k".to_owned(),
        bytes: 5,
        etag: etag.to_owned(),
        modified: "2026-11-27T10:00:00.734Z".to_owned(),
    };
    let is = |etag: &str, status: u16, told: &str| {
        let status = StatusCode::from_u16(status).unwrap();
        as_listed(&listed(etag), status, &headers(told)).map(drop)
    };
    let whole = |told: &str| format!("content-length=5|{told}");
    assert_eq!(is("\"e\"", 200, &whole("etag=\"e\"")), Ok(()));
    assert_eq!(is("e", 200, "etag=e|transfer-encoding=chunked"), Ok(()));
    assert_eq!(is("e", 200, &whole("etag=\"f\"")), Err(Wrong::Content));
    assert_eq!(
        is("e", 200, "content-length=4|etag=\"e\""),
        Err(Wrong::Content)
    );
    assert_eq!(
        is("e", 200, &whole("x-amz-request-id=1")),
        Err(Wrong::Content)
    );
    assert_eq!(
        is("e", 206, &whole("etag=\"e\"")),
        Err(Wrong::Answer(NOT_READ))
    );
    // Without an ETag, by its time, also where it is a page.
    assert_eq!(
        is("", 200, &whole("content-type=text/html|last-modified=DATE")),
        Ok(())
    );
    assert_eq!(is("", 200, &whole("etag=\"e\"")), Ok(()));
    let later = "last-modified=Fri, 27 Nov 2026 10:00:02 GMT";
    let told = is("", 200, &whole(&format!("content-type=a/b|{later}")));
    assert_eq!(told, Err(Wrong::Content));
    let told = is("", 200, &whole(&format!("content-type=text/html|{later}")));
    assert_eq!(told, Err(Wrong::Answer(NO_ETAG)));
}

#[test]
fn ranges_are_those_that_were_asked_for() {
    let is = |told: &str| is_content_range(told, &(10..20), 100);
    assert!(is("bytes 10-19/100") && is("bytes 10-19/*") && is("Bytes 10-19/100"));
    for other in [
        "",
        "bytes",
        "bytes */100",
        "bytes 10-20/100",
        "bytes 0-9/100",
        "bytes 10-19/101",
        "items 10-19/100",
        "bytes 10-18446744073709551615/100",
    ] {
        assert!(!is(other), "{other}");
    }
    assert_eq!(bare("W/\"a\""), bare("a"));
}
