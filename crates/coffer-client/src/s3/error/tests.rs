use http::HeaderValue;

use super::*;

fn refused(status: u16, headers: &[(&'static str, &str)], body: &str) -> S3Error {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().unwrap());
    }
    let status = StatusCode::from_u16(status).unwrap();
    let now = OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap();
    S3Error::of_answer(status, &map, body.as_bytes(), now)
}

#[test]
fn what_the_server_says_is_told_with_what_to_do() {
    let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code>\
                <Message>no\u{1b}[2J &lt;bucket&gt;.</Message></Error>";
    let error = refused(404, &[], body);
    assert_eq!(error.code(), Some("NoSuchBucket"));
    assert!(error.is_absent() && !error.is_passing());
    let told = "the server answered NoSuchBucket: no [2J <bucket>; `coffer ls` lists the \
                buckets there are";
    assert_eq!(error.to_string(), told);
    let told = error.of_bucket("nix").to_string();
    assert!(
        told.contains("; there is no bucket nix: `coffer ls` lists"),
        "{told}"
    );
}

#[test]
fn the_port_of_administration_is_known_by_its_answer() {
    let body = r#"{"error":{"code":"nothing_here","message":"there is nothing here"}}"#;
    let told = refused(404, &[], body).to_string();
    assert!(told.contains("S3 has a port of its own, 9000"), "{told}");
    let told = refused(404, &[], r#"{"code": 5}"#).to_string();
    assert_eq!(told, "the server answered NotFound: Not Found");
}

#[test]
fn a_lock_is_no_matter_of_the_access_key() {
    let denied = |message: &str| {
        let code = "<Code>AccessDenied</Code>";
        let body = format!("<Error>{code}<Message>{message}</Message></Error>");
        refused(403, &[], &body).to_string()
    };
    let locked = denied("Access Denied because object protected by object lock.");
    assert!(
        locked.contains("no access key may, while a lock"),
        "{locked}"
    );
    assert!(!locked.contains("this access key"), "{locked}");
    assert!(denied("Access Denied").contains("this access key may not do that: an"));
}

#[test]
fn answers_without_a_body_have_a_code_too() {
    assert_eq!(refused(404, &[], "").code(), Some("NotFound"));
    assert_eq!(
        refused(412, &[], "<html/>").code(),
        Some("PreconditionFailed")
    );
    assert!(refused(412, &[], "").is_changed());
    let told = refused(403, &[], "").to_string();
    assert!(
        told.contains("the access key may be unknown, its secret wrong"),
        "{told}"
    );
}

#[test]
fn what_passes() {
    for status in [429, 500, 502, 503, 504] {
        assert!(refused(status, &[], "").is_passing(), "{status}");
    }
    let slow = "<Error><Code>SlowDown</Code></Error>";
    let error = refused(400, &[("retry-after", "3")], slow);
    assert!(error.is_passing());
    let S3Error::Refused { retry_after, .. } = error else {
        panic!()
    };
    assert_eq!(retry_after, Some(Duration::from_secs(3)));
    for status in [400, 403, 404, 409, 412, 501] {
        assert!(!refused(status, &[], "").is_passing(), "{status}");
    }
}

#[test]
fn only_a_sentence_of_tls_shows_a_port_for_it() {
    let plain = HeaderValue::from_static("text/plain");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, plain)]);
    let shows = |body: &str| is_for_https(StatusCode::BAD_REQUEST, &headers, body.as_bytes());
    assert!(shows("Client sent an HTTP request to an HTTPS server.\n"));
    assert!(!shows("") && !shows("Bad Request"));
}

#[test]
fn clocks_are_compared() {
    let skewed = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
    // 22:13:20 on the clock of the test.
    let date = [("date", "Tue, 14 Nov 2023 21:43:20 GMT")];
    let told = refused(403, &date, skewed).to_string();
    assert!(told.contains("30 minutes ahead of the server's"), "{told}");
    let told = refused(403, &[], skewed).to_string();
    assert!(told.contains("set this machine's clock"), "{told}");
}

#[test]
fn what_to_do_about_a_source_names_its_own_options() {
    for (code, way) in [
        ("InvalidAccessKeyId", "with --source-profile"),
        ("NoSuchBucket", "lists the source's buckets"),
        ("PermanentRedirect", "as the source"),
    ] {
        let body = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
        let told = refused(403, &[], &body).of_source().to_string();
        assert!(told.contains(way), "{told}");
        assert!(!told.contains(" --profile"), "{told}");
    }
    let other = refused(403, &[], "<Error><Code>ExpiredToken</Code></Error>");
    assert!(
        other
            .of_source()
            .to_string()
            .ends_with("get a new session token")
    );
    let unknown = refused(403, &[], "<Error><Code>InvalidAccessKeyId</Code></Error>");
    assert!(
        unknown
            .to_string()
            .contains("may have expired or been disabled")
    );
}
