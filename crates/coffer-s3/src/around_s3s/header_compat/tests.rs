//! Of headers that s3s would refuse, and of those in the query of a presigned URL.

use s3s::S3ErrorCode;

use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn usual_headers_take_the_short_way() {
    let usual = headers(&[
        ("range", "bytes=0-9"),
        ("if-match", "\"a\""),
        ("if-none-match", "*"),
        ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("expires", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("x-amz-meta-a", "1 = ? what"),
        ("x-amz-copy-source", "/bucket/k?versionId=7"),
        (lock::UNTIL, "2030-01-01T00:00:00Z"),
    ]);
    assert!(odd_headers(&usual).is_empty());
    // One that is sent twice, s3s refuses.
    let twice = headers(&[(lock::UNTIL, "soon"), (lock::UNTIL, "later")]);
    assert!(odd_headers(&twice).is_empty());
}

#[test]
fn odd_headers_are_made_plain() {
    let odd = headers(&[
        ("range", "bytes=0-1,3-4"),
        ("if-none-match", "a, b"),
        ("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT"),
        ("expires", "-1"),
        (lock::UNTIL, "soon"),
        ("x-amz-meta-a", "1"),
        ("x-amz-meta-a", "2"),
        ("x-amz-meta-b", "=?="),
        ("x-amz-meta-c", "plain"),
        ("x-amz-copy-source", "b/k"),
        ("host", "h"),
    ]);
    let plain = plain(&odd, odd_headers(&odd));
    let kept = [
        ("x-amz-meta-c", "plain"),
        ("x-amz-copy-source", ANY_SOURCE),
        ("host", "h"),
    ];
    assert_eq!(plain, headers(&kept));
    let huge = headers(&[("range", "Bytes=5-99999999999999999999")]);
    assert_eq!(
        super::plain(&huge, odd_headers(&huge))["range"],
        "bytes=5-9223372036854775807"
    );
}

#[test]
fn metadata_that_is_no_utf_8_is_read_as_it_came() {
    let mut latin_1 = headers(&[("x-amz-meta-c", "plain")]);
    for (name, value) in [
        ("x-amz-meta-a", &b"f\xfcr"[..]),
        ("x-amz-meta-b", "ü".as_bytes()),
    ] {
        latin_1.insert(name, HeaderValue::from_bytes(value).unwrap());
    }
    assert_eq!(odd_headers(&latin_1), ["x-amz-meta-a"]);
}

#[test]
fn content_headers_that_are_no_ascii_are_read_as_they_came() {
    let mut sent = headers(&[
        ("cache-control", "no-cache"),
        ("content-type", "text/plain"),
    ]);
    assert!(odd_headers(&sent).is_empty());
    for name in ["content-disposition", "content-type"] {
        let value = HeaderValue::from_bytes("a; filename=ä".as_bytes()).unwrap();
        sent.insert(name, value);
    }
    let mut odd = odd_headers(&sent);
    odd.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    assert_eq!(odd, ["content-disposition", "content-type"]);
}

#[test]
fn lists_in_several_headers_are_one() {
    let mut several = headers(&[
        ("content-encoding", "gzip"),
        ("content-encoding", "aws-chunked"),
        ("cache-control", "no-cache"),
    ]);
    join_lists(&mut several);
    let one = [
        ("content-encoding", "gzip, aws-chunked"),
        ("cache-control", "no-cache"),
    ];
    assert_eq!(several, headers(&one));
}

#[test]
fn the_time_of_a_deletion_loses_the_fraction_of_its_second() {
    let name = "x-amz-if-match-last-modified-time";
    let (plain, precise) = (
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37.123 GMT",
    );
    let twice = [(name, precise), (name, plain)];
    for (sent, expected) in [
        (vec![(name, precise)], vec![(name, plain)]),
        (vec![(name, "soon.5 GMT")], vec![(name, "soon GMT")]),
        (twice.to_vec(), twice.to_vec()),
        (vec![("a", precise)], vec![("a", precise)]),
    ] {
        let mut sent = headers(&sent);
        drop_fraction(&mut sent);
        assert_eq!(sent, headers(&expected));
    }
}

#[test]
fn headers_in_a_presigned_address_count() {
    let moved = |text: &str| {
        let moved = moved_headers(&text.parse().unwrap(), &HeaderMap::new()).unwrap();
        moved
            .into_iter()
            .map(|(name, value)| format!("{name}: {value:?}"))
            .collect::<Vec<_>>()
    };
    let signed = "/b/k?X-Amz-Signature=0&X-Amz-Date=1&x-id=PutObject&X-Amz-Meta-A=%C3%A4+b&\
                  x-amz%2Dacl=public-read";
    assert_eq!(
        moved(signed),
        [
            "x-amz-meta-a: \"\\xc3\\xa4 b\"",
            "x-amz-acl: \"public-read\""
        ]
    );
    assert!(moved("/b/k?X-Amz-Signature=0&prefix=x-amz-acl").is_empty());
    for none in ["x-amz-meta-a=1%0A2", "x-amz-meta-a%0A=1"] {
        let uri = format!("/b/k?{none}").parse().unwrap();
        assert!(moved_headers(&uri, &HeaderMap::new()).is_err(), "{none}");
    }
    // As the SDKs for JavaScript, Go and Java write them.
    let checksums = "/b/k?X-Amz-Signature=0&x-amz-checksum-crc32=AAAAAA%3D%3D&\
                     X-Amz-Checksum-Crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32&\
                     x-amz-checksum-algorithm=SHA256";
    assert_eq!(moved(checksums), ["x-amz-checksum-algorithm: \"SHA256\""]);
}

#[test]
fn a_presigned_address_loses_its_signature() {
    let uri = |text: &str| text.parse::<Uri>().unwrap();
    let signed = uri("/b/k?a=%2B1&X-Amz-Signature=0&X%2DAmz-Date=1&versionId=null");
    assert_eq!(
        unsigned(&signed).unwrap(),
        uri("/b/k?a=%2B1&versionId=null")
    );
    let of_version_2 = uri("/b/a+b%2B?AWSAccessKeyId=A&Expires=1&Signature=b&x=+");
    assert_eq!(unsigned(&of_version_2).unwrap(), uri("/b/a%20b%2B?x=+"));
    for same in ["/b/a+b", "/b/a+b?Expires=1&x-id=GetObject"] {
        assert_eq!(unsigned(&uri(same)).unwrap(), uri(same));
    }
    let plus = uri("/b/a+b?X-Amz-Signature=0&a");
    assert_eq!(unsigned(&plus).unwrap(), uri("/b/a+b?a"));
    // It is the signature that tells the version, and not what else was signed.
    let extra = uri("/b/a+b?AWSAccessKeyId=x&X-Amz-Signature=0");
    assert_eq!(unsigned(&extra).unwrap(), uri("/b/a+b?AWSAccessKeyId=x"));
    let in_header = uri("/b/a+b?AWSAccessKeyId=x");
    assert_eq!(unsigned(&in_header).unwrap(), in_header);
}

#[test]
fn what_is_no_length_counts_as_none() {
    let is = |text: &'static str| is_length(&HeaderValue::from_static(text));
    assert!(is("0") && is("9223372036854775807"));
    for none in ["", "abc", "-5", "+5", "5 ", "0x5", "9223372036854775808"] {
        assert!(!is(none), "{none}");
    }
}

#[test]
fn a_body_without_chunks_has_no_other_length_than_it_tells() {
    let adapted = |decoded: &str| {
        let put = http::Request::put("/bucket/key").header(CONTENT_LENGTH, "20");
        let (mut head, ()) = put
            .header(DECODED_LENGTH, decoded)
            .body(())
            .unwrap()
            .into_parts();
        adapt(&mut head, false)
    };
    assert!(adapted("20").is_ok() && adapted("020").is_ok() && adapted("odd").is_ok());
    for other in ["5", "19", "21"] {
        assert_eq!(
            adapted(other).unwrap_err().code(),
            &S3ErrorCode::InvalidRequest
        );
    }
}

#[test]
fn what_is_no_range_is_left_out() {
    for none in ["bytes=-", "bytes=5-4", "lines=0-1"] {
        let sent = headers(&[("range", none)]);
        let plain = plain(&sent, odd_headers(&sent));
        assert!(!plain.contains_key(RANGE), "{none}");
    }
}

#[test]
fn numbers_without_a_value_are_none() {
    let uri = |text: &str| text.parse::<Uri>().unwrap();
    let listed = uri("/b/k?max-parts=&uploadId=u&part-number-marker");
    let without = without_empty_numbers(&listed).unwrap();
    assert_eq!(without, Some(uri("/b/k?uploadId=u")));
    for same in ["/b/k", "/b/k?max-parts=0&uploadId=", "/b?max-keys="] {
        assert_eq!(without_empty_numbers(&uri(same)).unwrap(), None, "{same}");
    }
}
