//! What is said of requests.

use coffer_vault::policy::Values;
use http::HeaderValue;

use super::*;
use crate::request::memory_budget::MemoryBudget;
use crate::request::signed::{Signed, SignedForm};

type Headers<'a> = &'a [(&'static str, &'static str)];

/// What a signed request says of itself.
fn described(operation: &str, headers: Headers<'_>) -> Asked {
    with_request(operation, headers, |request| describe(request).unwrap())
}

fn with_request<T>(
    operation: &str,
    headers: Headers<'_>,
    work: impl FnOnce(&Described<'_>) -> T,
) -> T {
    let mut sent = HeaderMap::new();
    for (name, value) in headers {
        sent.append(*name, HeaderValue::from_static(value));
    }
    let context = RequestContext::new(&MemoryBudget::answers());
    context.set_signed(Signed {
        form: SignedForm::Header,
        at_seconds: None,
        content_sha256: None,
    });
    work(&Described {
        operation,
        bucket: "bucket",
        object: Some("k"),
        query: "",
        headers: &sent,
        around_form: None,
        xml: &[],
        tags: None,
        lock_now_ms: &|| 0,
        asks: None,
        context: &Arc::new(context),
    })
}

#[test]
fn a_request_has_what_its_operation_takes_from_headers_and_when_it_was_signed() {
    let date = ("x-amz-date", "20260101T000000Z");
    let sent = [
        date,
        ("if-match", "\"a\""),
        ("x-amz-acl", "private"),
        ("x-amz-checksum-crc32", "AAAAAA=="),
    ];
    let has = |asked: &Asked, key| asked.values.value(&key).is_some();
    let get = described("GetObject", &sent);
    assert!(has(&get, Key::IfMatch) && has(&get, Key::SignatureAge));
    assert!(!has(&get, Key::Acl) && !has(&get, Key::ChecksumCrc32));
    let put = described("PutObject", &sent);
    assert!(has(&put, Key::Acl) && has(&put, Key::ChecksumCrc32));
    let http = described("GetObject", &[("date", "Thu, 01 Jan 2026 00:00:00 GMT")]);
    assert!(has(&http, Key::SignatureAge));
    for unknown in [&[date, date][..], &[]] {
        assert!(!has(&described("GetObject", unknown), Key::SignatureAge));
    }
}

#[test]
fn what_no_condition_asks_for_is_not_looked_for() {
    let sent = [
        ("x-amz-date", "20260101T000000Z"),
        ("if-match", "\"a\""),
        ("referer", "https://a.example"),
        ("user-agent", "b"),
        ("x-amz-server-side-encryption", "AES256"),
    ];
    let keys = [
        Key::IfMatch,
        Key::Referer,
        Key::ServerSideEncryption,
        Key::SignatureAge,
        Key::UserAgent,
    ];
    let said = |asked: Option<&[Key]>| {
        with_request("PutObject", &sent, |request| {
            let parts = given::parts_of(request.operation);
            values(request, (parts, Rare::default(), asked), Vec::new())
        })
    };
    let all = said(None);
    assert!(keys.iter().all(|key| all.value(key).is_some()));
    for key in &keys {
        let one = said(Some(std::slice::from_ref(key)));
        assert!(one.value(key).is_some(), "{key}");
    }
    let none = said(Some(&[Key::SourceIp, Key::ObjectLockMode][..]));
    assert!(keys.iter().all(|key| none.value(key).is_none()));
}

#[test]
fn each_action_is_on_the_object() {
    let sent = [("if-match", "\"a\""), ("x-amz-tagging", "a=b")];
    let asked = described("PutObject", &sent);
    let actions: Vec<_> = asked.actions.iter().map(|ask| ask.action).collect();
    let besides = [Action::GetObject, Action::PutObjectTagging];
    assert_eq!(actions, [&[Action::PutObject][..], &besides].concat());
    let on = AskedOf::Object(ObjectName::new("k").unwrap(), Which::Current);
    assert!(asked.actions.iter().all(|ask| ask.on == on));
    let mut buckets = asked.actions.iter().map(|ask| ask.bucket.as_str());
    assert!(buckets.all(|bucket| bucket == "bucket"));
}
