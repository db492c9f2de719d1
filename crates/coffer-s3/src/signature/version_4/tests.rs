//! Signatures as in the examples of AWS.

use http::Request;

use super::*;
use crate::http::percent::form_pairs;
use crate::signature::signer::tests::{ID, SECRET};

const AT: i64 = 1_369_353_600;
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn signed_by(scope: Scope<'_>, at: DateTime<'_>) -> S3Result<Signer> {
    assert_eq!(scope.access_key_id, ID);
    Ok(Signer::new(SECRET, scope, at))
}

fn code<T>(result: S3Result<T>) -> Option<String> {
    result.err().map(|error| error.code().as_str().to_owned())
}

/// AWS's example "GET Object", with its headers or others.
fn get_object(range: &str, now: i64) -> Option<String> {
    let request = Request::get("/test.txt")
        .header("host", "examplebucket.s3.amazonaws.com")
        .header("range", range)
        .header("x-amz-content-sha256", NOTHING)
        .header("x-amz-date", "20130524T000000Z");
    let head = request.body(()).unwrap().into_parts().0;
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={ID}/20130524/us-east-1/s3/aws4_request,\
         SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=\
         f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    );
    code(check_header(
        Authorization::parse(&authorization).unwrap(),
        &head,
        &Pairs::new(),
        now,
        signed_by,
    ))
}

#[test]
fn headers_are_signed_as_in_the_example_of_aws() {
    assert_eq!(get_object("bytes=0-9", AT), None);
    assert_eq!(get_object(" bytes=0-9 ", AT + 900), None);
    let wrong = get_object("bytes=0-8", AT);
    assert_eq!(wrong.as_deref(), Some("SignatureDoesNotMatch"));
    for late in [AT + 901, AT - 901] {
        let skewed = get_object("bytes=0-9", late);
        assert_eq!(skewed.as_deref(), Some("RequestTimeTooSkewed"));
    }
}

/// A request that has no `x-amz-date`, signed at [`AT`].
fn dated(date: &str, signed: &str) -> Option<String> {
    let request = Request::get("/test.txt")
        .header("host", "examplebucket.s3.amazonaws.com")
        .header("x-amz-content-sha256", NOTHING)
        .header("date", date);
    let head = request.body(()).unwrap().into_parts().0;
    let credential = format!("{ID}/20130524/us-east-1/s3/aws4_request");
    let scope = Scope::parse(&credential).unwrap();
    let at = DateTime::parse("20130524T000000Z").unwrap();
    let sent = (&head, &head.headers);
    let canonical = canonical_request(sent, "/test.txt", &Pairs::new(), signed, NOTHING);
    let signature = Signer::new(SECRET, scope, at).sign(&canonical);
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={signed},Signature={signature}"
    );
    let query = Pairs::new();
    let said = Authorization::parse(&authorization).unwrap();
    code(check_header(said, &head, &query, AT, signed_by))
}

#[test]
fn the_date_header_tells_the_time_where_there_is_no_other() {
    let signed = "date;host;x-amz-content-sha256";
    let http = "Fri, 24 May 2013 00:00:00 GMT";
    assert_eq!(dated(http, signed), None);
    assert_eq!(dated("20130524T000000Z", signed), None);
    let later = dated("Fri, 24 May 2013 00:01:00 GMT", signed);
    assert_eq!(later.as_deref(), Some("SignatureDoesNotMatch"));
    let skewed = dated("Fri, 24 May 2013 01:00:00 GMT", signed);
    assert_eq!(skewed.as_deref(), Some("RequestTimeTooSkewed"));
    for (date, signed) in [(http, "host;x-amz-content-sha256"), ("yesterday", signed)] {
        assert_eq!(
            dated(date, signed).as_deref(),
            Some("AccessDenied"),
            "{date}"
        );
    }
}

#[test]
fn urls_are_presigned_as_in_the_example_of_aws() {
    let check = |more: &str, now: i64| {
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={ID}%2F20130524%2Fus-east-1%2F\
             s3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&\
             X-Amz-SignedHeaders=host&X-Amz-Signature=\
             aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404{more}"
        );
        let request = Request::get(format!("/test.txt?{query}"))
            .header("host", "examplebucket.s3.amazonaws.com");
        let head = request.body(()).unwrap().into_parts().0;
        code(check_presigned(
            &head,
            &form_pairs(&query).unwrap(),
            now,
            signed_by,
        ))
    };
    assert_eq!(check("", AT + 86_400), None);
    assert_eq!(check("", AT + 86_401).as_deref(), Some("AccessDenied"));
    assert_eq!(check("", AT - 901).as_deref(), Some("AccessDenied"));
    for added in ["&versionId=null", "&X-Amz-Signature=0", "&X-Amz-Date=1"] {
        let more = check(added, AT);
        assert_eq!(more.as_deref(), Some("SignatureDoesNotMatch"), "{added}");
    }
}

#[test]
fn queries_and_headers_have_one_form() {
    let request = Request::get("/a")
        .header("x-amz-meta-a", "  one   two ")
        .header("x-amz-meta-a", "three");
    let head = request.body(()).unwrap().into_parts().0;
    let query = form_pairs("b=/+&a-=1&a=2&a=1&c").unwrap();
    let sent = (&head, &head.headers);
    let canonical = canonical_request(sent, "/a", &query, "x-amz-meta-a;host", "x");
    let expected = "GET\n/a\na=1&a=2&a-=1&b=%2F%20&c=\nhost:\nx-amz-meta-a:one two,three\n\n\
                    host;x-amz-meta-a\nx";
    assert_eq!(String::from_utf8(canonical).unwrap(), expected);
}

/// A request with metadata that is no UTF-8, signed by what a client has in its place.
fn latin_1(signed_value: &[u8]) -> Option<String> {
    let request = |value: &[u8]| {
        let request = Request::put("/a")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("x-amz-content-sha256", NOTHING)
            .header("x-amz-date", "20130524T000000Z")
            .header("x-amz-meta-a", HeaderValue::from_bytes(value).unwrap());
        request.body(()).unwrap().into_parts().0
    };
    let credential = format!("{ID}/20130524/us-east-1/s3/aws4_request");
    let scope = Scope::parse(&credential).unwrap();
    let at = DateTime::parse("20130524T000000Z").unwrap();
    let names = "host;x-amz-content-sha256;x-amz-date;x-amz-meta-a";
    let signed = request(signed_value);
    let sent = (&signed, &signed.headers);
    let canonical = canonical_request(sent, "/a", &Pairs::new(), names, NOTHING);
    let signature = Signer::new(SECRET, scope, at).sign(&canonical);
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={names},Signature={signature}"
    );
    let said = Authorization::parse(&authorization).unwrap();
    let head = request(b"f\xfcr");
    code(check_header(said, &head, &Pairs::new(), AT, signed_by))
}

#[test]
fn what_is_sent_in_latin_1_is_signed_as_that_or_as_utf_8() {
    assert_eq!(latin_1(b"f\xfcr"), None);
    assert_eq!(latin_1("f\u{fc}r".as_bytes()), None);
    let other = latin_1(b"fur");
    assert_eq!(other.as_deref(), Some("SignatureDoesNotMatch"));
}

#[test]
fn a_wrong_signature_is_told_what_was_to_be_signed_and_no_key() {
    let told = |name: &'static str| {
        let request = Request::get("/a%20b")
            .header("host", "h")
            .header("x-amz-content-sha256", NOTHING)
            .header("x-amz-date", "20130524T000000Z")
            .header(name, "value");
        let head = request.body(()).unwrap().into_parts().0;
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={ID}/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;{name};x-amz-content-sha256;x-amz-date,Signature=0f"
        );
        let said = Authorization::parse(&authorization).unwrap();
        let refused = check_header(said, &head, &Pairs::new(), AT, signed_by).unwrap_err();
        details::xml_of(&refused).unwrap()
    };
    let whole = told("range");
    let sent = format!(
        "<AWSAccessKeyId>{ID}</AWSAccessKeyId><SignatureProvided>0f</SignatureProvided>\
         <StringToSign>AWS4-HMAC-SHA256\n20130524T000000Z\n\
         20130524/us-east-1/s3/aws4_request\n"
    );
    assert!(whole.starts_with(&sent), "{whole}");
    assert!(
        whole.contains("<StringToSignBytes>41 57 53 34 2d "),
        "{whole}"
    );
    let canonical = "<CanonicalRequest>GET\n/a%20b\n\nhost:h\nrange:value\n";
    assert!(whole.contains(canonical), "{whole}");
    assert!(!whole.contains(SECRET), "{whole}");
    let without = told("x-amz-server-side-encryption-customer-key");
    assert!(without.contains("<StringToSign>"), "{without}");
    assert!(!without.contains("value"), "{without}");
    assert!(!without.contains("CanonicalRequest"), "{without}");
}
