//! Bodies of the fuzz targets: what servers send, with what must hold.

use crate::s3::{Element, objects_page, versions_page};

/// The XML of an answer: what is taken reads the same when it is written again, and lists made of
/// it are lists or errors.
pub fn answer(data: &[u8]) {
    let Ok(document) = Element::parse(data) else {
        return;
    };
    let again = Element::parse(document.to_xml().as_bytes());
    assert_eq!(again.as_ref(), Ok(&document));
    for page in [objects_page(&document)].into_iter().flatten() {
        assert!(page.objects.iter().all(|object| !object.key.is_empty()));
    }
    let _ = versions_page(&document);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_kinds() {
        for text in [
            "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%0A&#10;</Key>\
             </Contents></ListBucketResult>",
            "<ListVersionsResult><DeleteMarker><Key>a</Key></DeleteMarker></ListVersionsResult>",
            "<a>\r\n<b x=\"&lt;\">&#x1;<![CDATA[]]]]></b> text <c/> more </a>",
            "<a xsi:type=\"&quot;\">&#13; </a>",
            "\u{0}",
        ] {
            answer(text.as_bytes());
        }
    }
}
