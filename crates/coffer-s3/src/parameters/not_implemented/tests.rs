//! Of what is asked for and missing.

use http::HeaderValue;

use super::*;

fn headers(name: &'static str, value: &'static str) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert(name, HeaderValue::from_static(value));
    check_headers("PutObject", &headers)
        .err()
        .map(|error| error.code().as_str().to_owned())
}

#[test]
fn headers_that_ask_for_more_are_refused() {
    for (name, _) in HEADERS {
        assert_eq!(
            headers(name, "1").as_deref(),
            Some("NotImplemented"),
            "{name}"
        );
    }
    assert_eq!(
        headers("x-amz-storage-class", "GLACIER").as_deref(),
        Some("InvalidStorageClass")
    );
    assert_eq!(headers("x-amz-storage-class", "STANDARD"), None);
    assert_eq!(
        headers("x-amz-bucket-namespace", "account-regional").as_deref(),
        Some("NotImplemented")
    );
    assert_eq!(headers("x-amz-bucket-namespace", "global"), None);
    assert_eq!(
        headers("x-amz-security-token", "t").as_deref(),
        Some("InvalidToken")
    );
    for name in OF_DELETIONS {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static("1"));
        assert!(check_headers("DeleteObject", &headers).is_ok(), "{name}");
        assert!(check_headers("DeleteObjects", &headers).is_err(), "{name}");
    }
    assert_eq!(headers("x-amz-meta-grant-read", "1"), None);
    let a_part = headers("content-range", "bytes 0-2/10");
    assert_eq!(a_part.as_deref(), Some("InvalidRequest"));
    assert_eq!(headers("x-amz-request-payer", "requester"), None);
}

#[test]
fn holds_until_an_event_are_refused_in_documents() {
    for (operation, document) in [
        (
            "PutObjectRetention",
            "<Retention><EventHold>ON</EventHold></Retention>",
        ),
        (
            "PutObjectRetention",
            "<Retention><EventHoldDuration a=\"b\"></EventHoldDuration></Retention>",
        ),
        (
            "PutObjectLockConfiguration",
            "<DefaultRetention><DefaultEventHold></DefaultEventHold></DefaultRetention>",
        ),
    ] {
        let error = check_document(operation, document.as_bytes()).unwrap_err();
        assert_eq!(error.code().as_str(), "NotImplemented", "{document}");
        assert!(check_document("PutObjectTagging", document.as_bytes()).is_ok());
    }
    let none = b"<Retention><Mode>&lt;EventHold></Mode></Retention>";
    assert!(check_document("PutObjectRetention", none).is_ok());
}

#[test]
fn conditions_that_are_not_kept_are_refused() {
    for name in CONDITIONS {
        let mut headers = HeaderMap::new();
        assert!(check_conditions(&headers).is_ok());
        headers.insert(&name, HeaderValue::from_static("*"));
        assert!(check_conditions(&headers).is_err(), "{name}");
    }
}

#[test]
fn what_stands_at_another_place_is_told_so() {
    let code = |operation, query| {
        let refused = check_query(operation, query).err();
        refused.map(|error| error.code().as_str().to_owned())
    };
    for query in ["uploads", "versions", "prefix=a&uploads="] {
        let refused = code("GetObject", query);
        assert_eq!(refused.as_deref(), Some("InvalidRequest"), "{query}");
    }
    let refused = code("PutObject", "uploadId=1");
    assert_eq!(refused.as_deref(), Some("MethodNotAllowed"));
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-copy-source", HeaderValue::from_static("b/k"));
    for operation in NO_COPIES {
        let refused = check_headers(operation, &headers).err().unwrap();
        assert_eq!(refused.code().as_str(), "InvalidArgument", "{operation}");
    }
    assert!(check_headers("CopyObject", &headers).is_ok());
    // Of a commit of what came sealed, a copy would be made of something else.
    headers.insert(TRANSFER, HeaderValue::from_static("a ticket"));
    for operation in COPIES {
        let refused = check_headers(operation, &headers).err().unwrap();
        assert_eq!(refused.code().as_str(), "InvalidRequest", "{operation}");
    }
}

#[test]
fn a_version_is_named_only_where_one_is_taken() {
    let message = |operation, query| {
        let refused = check_query(operation, query).err();
        refused.and_then(|error| error.message().map(str::to_owned))
    };
    let told = Some("This operation does not accept a version-id.".to_owned());
    for (operation, query) in [
        ("UploadPart", "partNumber=1&uploadId=u&versionId=abc"),
        ("UploadPartCopy", "partNumber=1&uploadId=u&versionId="),
        ("CreateMultipartUpload", "uploads&versionId=null"),
        ("ListParts", "uploadId=u&version%49d=1"),
        ("ListObjectsV2", "list-type=2&versionId=1"),
        ("ListObjects", "versionId=1"),
        ("ListObjectVersions", "versions&versionId=1"),
        ("DeleteObjects", "delete&versionId=1"),
        ("GetBucketVersioning", "versioning&versionId=1"),
        ("PutObject", "versionId=abc"),
        ("CopyObject", "versionId"),
        ("HeadBucket", "versionId=1"),
    ] {
        assert_eq!(message(operation, query), told, "{operation} {query}");
    }
    let invalid = Some("Invalid version id specified".to_owned());
    assert_eq!(message("GetBucketAcl", "acl&versionId=1"), invalid);
    for operation in OF_VERSIONS {
        assert_eq!(message(operation, "versionId=1"), None, "{operation}");
    }
    assert_eq!(message("UploadPart", "partNumber=1&uploadId=u"), None);
}

#[test]
fn subresources_are_not_taken_for_the_thing_itself() {
    for (operation, query) in [
        ("DeleteBucket", "acl"),
        ("DeleteBucket", "location="),
        ("DeleteBucket", "metadataAnnotationTable=1"),
        ("DeleteObject", "annotation=1"),
        ("DeleteBucket", "versioning=x"),
        ("DeleteObject", "acl"),
        ("DeleteObject", "never-heard-of"),
        ("PutObject", "uploadId=1"),
        ("PutObject", "renameObject"),
        ("CreateBucket", "%61cl"),
        ("ListObjects", "abac"),
    ] {
        assert!(
            check_query(operation, query).is_err(),
            "{operation} {query}"
        );
    }
    for (operation, query) in [
        ("ListObjects", "prefix=&delimiter=&max-keys=3"),
        (
            "GetObject",
            "response-content-type=&versionId=null&x-id=GetObject",
        ),
        ("PutObject", "X-Amz-Signature=&custom=value"),
        ("PutObject", "x-amz-meta-a=&x-amz-tagging"),
        ("PutBucketAcl", "acl"),
        ("DeleteBucket", ""),
    ] {
        assert!(check_query(operation, query).is_ok(), "{operation} {query}");
    }
}

#[test]
fn of_two_subresources_none_is_passed_over() {
    for (operation, query) in [
        ("DeleteBucketLifecycle", "lifecycle&policy"),
        ("PutBucketVersioning", "versioning&acl="),
        ("ListObjectVersions", "prefix=a&versions&uploads"),
    ] {
        let refused = check_query(operation, query).unwrap_err();
        assert_eq!(refused.code().as_str(), "InvalidArgument", "{query}");
        assert!(refused.message().unwrap().starts_with("Conflicting"));
    }
    for (operation, query) in [
        ("PutObjectTagging", "tagging&tagging"),
        ("GetObjectTagging", "tagging&versionId=3"),
        ("ListMultipartUploads", "uploads&prefix=policy"),
        ("SelectObjectContent", "select&select-type=2"),
    ] {
        check_query(operation, query).unwrap();
    }
}
