use super::*;

fn parsed(text: &str) -> Element {
    Element::parse(text.as_bytes()).unwrap()
}

#[test]
fn a_page_of_objects() {
    let page = objects_page(&parsed(
        "<ListBucketResult xmlns=\"x\"><EncodingType>url</EncodingType><IsTruncated>true\
         </IsTruncated><NextContinuationToken>t+/=</NextContinuationToken><Contents><Key>\
         a+%2B%0Ab</Key><Size>7</Size><ETag>&quot;e&quot;</ETag></Contents><CommonPrefixes>\
         <Prefix>%C3%BC/</Prefix></CommonPrefixes></ListBucketResult>",
    ));
    let page = page.unwrap();
    assert_eq!(page.objects[0].key, "a +\nb");
    assert_eq!(
        (page.objects[0].bytes, page.objects[0].etag.as_str()),
        (7, "\"e\"")
    );
    assert_eq!(page.prefixes, ["ü/"]);
    assert_eq!(page.next.as_deref(), Some("t+/="));
}

#[test]
fn what_comes_next_is_asked_for_as_the_service_takes_it() {
    let objects = |key: &str, token: &str| {
        let page = objects_page(&parsed(&format!(
            "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
             <NextContinuationToken>{token}</NextContinuationToken><Contents><Key>{key}</Key>\
             <Size>1</Size></Contents></ListBucketResult>"
        )));
        page.unwrap().next.unwrap()
    };
    for (key, token, next) in [
        ("Foto%201000", "Foto%201000", "Foto 1000"),
        ("a%2541", "a%41", "a%41"),
        ("k", "MTpr%3D", "MTpr%3D"),
    ] {
        assert_eq!(objects(key, token), next);
    }
    let versions = |key: &str, marker: &str| {
        let page = versions_page(&parsed(&format!(
            "<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true\
             </IsTruncated><NextKeyMarker>{marker}</NextKeyMarker><Version><Key>{key}</Key>\
             <Size>1</Size></Version></ListVersionsResult>"
        )));
        page.unwrap().next.unwrap().0
    };
    assert_eq!(versions("https%253A", "https%3A"), "https%3A");
    assert_eq!(versions("https%253A", "https%253A"), "https%3A");
    assert_eq!(versions("a+b", "a+b"), "a b");
    assert_eq!(versions("2024%2Bx", "2024+x"), "2024+x");
}

#[test]
fn names_that_are_not_encoded_stay() {
    let page = objects_page(&parsed(
        "<ListBucketResult><Contents><Key>a+%41</Key><Size>0</Size></Contents>\
         </ListBucketResult>",
    ));
    assert_eq!(page.unwrap().objects[0].key, "a+%41");
}

#[test]
fn versions_keep_their_order() {
    let page = versions_page(&parsed(
        "<ListVersionsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>\
         <NextVersionIdMarker>3</NextVersionIdMarker><DeleteMarker><Key>k</Key><VersionId>4\
         </VersionId><IsLatest>true</IsLatest></DeleteMarker><Version><Key>k</Key><VersionId>3\
         </VersionId><IsLatest>false</IsLatest><Size>5</Size></Version></ListVersionsResult>",
    ));
    let page = page.unwrap();
    let seen: Vec<_> = { page.versions.iter() }
        .map(|version| {
            (
                version.version_id.as_str(),
                version.is_marker,
                version.is_latest,
            )
        })
        .collect();
    assert_eq!(seen, [("4", true, true), ("3", false, false)]);
    assert_eq!(page.next, Some(("k".to_owned(), "3".to_owned())));
}

#[test]
fn what_is_no_list_is_told() {
    for wrong in [
        "<html/>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><IsTruncated>maybe</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key><Size>x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key><Size>9223372036854775808</Size></Contents>\
         </ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%FF</Key></Contents>\
         </ListBucketResult>",
    ] {
        assert!(objects_page(&parsed(wrong)).is_err(), "{wrong}");
    }
    for wrong in [
        "<ListBucketResult/>",
        "<ListVersionsResult><IsTruncated>?</IsTruncated></ListVersionsResult>",
    ] {
        assert!(versions_page(&parsed(wrong)).is_err(), "{wrong}");
    }
}
