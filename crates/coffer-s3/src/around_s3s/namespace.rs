//! The namespace of S3's documents, which s3s writes in most of them and leaves out in some.

/// Documents that s3s writes without it.
const WITHOUT: [&str; 9] = [
    "CopyObjectResult",
    "CopyPartResult",
    "LegalHold",
    "ObjectLockConfiguration",
    "OwnershipControls",
    "PolicyStatus",
    "PublicAccessBlockConfiguration",
    "Retention",
    "ServerSideEncryptionConfiguration",
];

const NAMESPACE: &str = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

/// A document with the namespace, if it is one of those.
pub(crate) fn with_namespace(document: &[u8]) -> Option<Vec<u8>> {
    let declared = document.strip_prefix(b"<?xml")?;
    let start = declared.iter().position(|byte| *byte == b'<')?;
    let element = &declared[start + 1..];
    let length = element.iter().position(|byte| *byte == b'>')?;
    let name = &element[..length];
    if !WITHOUT.iter().any(|known| known.as_bytes() == name) {
        return None;
    }
    let at = document.len() - element.len() + length;
    let (before, after) = document.split_at(at);
    Some([before, NAMESPACE.as_bytes(), after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

    #[test]
    fn documents_without_the_namespace_get_it() {
        for name in WITHOUT {
            let body = format!("<A>1</A></{name}>");
            let named = with_namespace(format!("{START}<{name}>{body}").as_bytes());
            let expected = format!("{START}<{name}{NAMESPACE}>{body}");
            assert_eq!(named.as_deref(), Some(expected.as_bytes()), "{name}");
        }
    }

    #[test]
    fn others_stay_as_they_are() {
        for same in [
            "",
            START,
            "<Retention></Retention>",
            "<?xml version=\"1.0\"?><Retention",
            "<?xml version=\"1.0\"?><PostResponse><Key>k</Key></PostResponse>",
            "<?xml version=\"1.0\"?><Tagging xmlns=\"x\"></Tagging>",
        ] {
            assert_eq!(with_namespace(same.as_bytes()), None, "{same}");
        }
    }
}
