//! Which elements of an XML body may stand in which, and how many: s3s passes over what it does not
//! know in a document and in a list, and over text where elements are to stand. S3 refuses it: what
//! was written wrongly must take nothing away.

use crate::limits::{
    XML_CHILDREN_MAX, XML_DECLARATIONS_MAX, XML_DEPTH_MAX, XML_ELEMENTS_MAX, XML_PARTS_MAX,
};

/// The elements in which s3s passes over others, and all that S3 has in them. Of these, holds until
/// an event are refused where it is known what is asked for. In the rest, s3s refuses what it does
/// not know.
const CHILDREN: &[(&str, &[&str])] = &[
    ("AccelerateConfiguration", &["Status"]),
    ("AccessControlList", &["Grant"]),
    ("AccessControlPolicy", &["AccessControlList", "Owner"]),
    ("BucketLoggingStatus", &["LoggingEnabled"]),
    ("CORSConfiguration", &["CORSRule"]),
    ("CompleteMultipartUpload", &["Part"]),
    (
        "CreateBucketConfiguration",
        &["Bucket", "Location", "LocationConstraint", "Tags"],
    ),
    ("Delete", &["Object", "Quiet"]),
    ("LegalHold", &["Status"]),
    ("LifecycleConfiguration", &["Rule"]),
    (
        "NotificationConfiguration",
        &[
            "CloudFunctionConfiguration",
            "EventBridgeConfiguration",
            "QueueConfiguration",
            "TopicConfiguration",
        ],
    ),
    ("ObjectLockConfiguration", &["ObjectLockEnabled", "Rule"]),
    ("OwnershipControls", &["Rule"]),
    (
        "PublicAccessBlockConfiguration",
        &[
            "BlockPublicAcls",
            "BlockPublicPolicy",
            "IgnorePublicAcls",
            "RestrictPublicBuckets",
        ],
    ),
    ("RequestPaymentConfiguration", &["Payer"]),
    (
        "RestoreRequest",
        &[
            "Days",
            "Description",
            "GlacierJobParameters",
            "OutputLocation",
            "SelectParameters",
            "Tier",
            "Type",
        ],
    ),
    (
        "Retention",
        &["EventHold", "EventHoldDuration", "Mode", "RetainUntilDate"],
    ),
    ("ServerSideEncryptionConfiguration", &["Rule"]),
    ("TagSet", &["Tag"]),
    ("Tagging", &["TagSet"]),
    ("Tags", &["Tag"]),
    ("TargetGrants", &["Grant"]),
    ("VersioningConfiguration", &["MfaDelete", "Status"]),
];

/// Further elements that hold others and no text, wherever they stand. A filter of a rule in which
/// text was passed over was one for all objects.
const HOLDERS: [&str; 23] = [
    "AbortIncompleteMultipartUpload",
    "And",
    "ApplyServerSideEncryptionByDefault",
    "BlockedEncryptionTypes",
    "CORSRule",
    "CloudFunctionConfiguration",
    "DefaultRetention",
    "EventBridgeConfiguration",
    "Expiration",
    "Filter",
    "Grant",
    "Grantee",
    "LoggingEnabled",
    "NoncurrentVersionExpiration",
    "NoncurrentVersionTransition",
    "Object",
    "Owner",
    "Part",
    "QueueConfiguration",
    "Rule",
    "Tag",
    "TopicConfiguration",
    "Transition",
];

/// The list that may be longer than all others.
const PARTS: &[u8] = b"CompleteMultipartUpload";

/// The elements that were begun and have not ended.
#[derive(Debug, Default)]
pub(crate) struct Elements {
    open: Vec<Element>,
    has_root: bool,
    /// How many there were in all.
    count: usize,
    /// Declarations of namespaces that hold: each name is looked for among them.
    declarations: usize,
}

#[derive(Debug)]
struct Element {
    may_have: Option<&'static [&'static str]>,
    /// Whether it holds elements alone.
    is_holder: bool,
    has_text: bool,
    children: usize,
    children_max: usize,
    declarations: usize,
}

impl Elements {
    /// Whether none is open.
    pub(crate) fn are_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether there was one.
    pub(crate) fn have_root(&self) -> bool {
        self.has_root
    }

    /// Begins an element that declares so many namespaces. Gives whether it may stand here.
    #[must_use]
    pub(crate) fn begin(&mut self, name: &[u8], declarations: usize) -> bool {
        self.count += 1;
        self.declarations += declarations;
        if self.open.len() == XML_DEPTH_MAX
            || self.count > XML_ELEMENTS_MAX
            || self.declarations > XML_DECLARATIONS_MAX
            || !self.has_place(name)
        {
            return false;
        }
        self.has_root = true;
        let row = CHILDREN.iter().find(|(known, _)| known.as_bytes() == name);
        self.open.push(Element {
            may_have: row.map(|(_, children)| *children),
            is_holder: row.is_some() || HOLDERS.iter().any(|known| known.as_bytes() == name),
            has_text: false,
            children: 0,
            children_max: if name == PARTS {
                XML_PARTS_MAX
            } else {
                XML_CHILDREN_MAX
            },
            declarations,
        });
        true
    }

    /// Whether what is open may have such an element, or one more.
    fn has_place(&mut self, name: &[u8]) -> bool {
        let Some(parent) = self.open.last_mut() else {
            return !self.has_root;
        };
        parent.children += 1;
        let is_of = |names: &[&str]| names.iter().any(|known| known.as_bytes() == name);
        parent.children <= parent.children_max
            && !parent.has_text
            && parent.may_have.is_none_or(is_of)
    }

    /// Notes text. Gives whether it may stand here: no element of S3 has text beside elements.
    #[must_use]
    pub(crate) fn text(&mut self, text: &str) -> bool {
        let Some(parent) = self.open.last_mut() else {
            return false;
        };
        if text.bytes().all(|byte| b" \t\r\n".contains(&byte)) {
            return true;
        }
        parent.has_text = true;
        !parent.is_holder && parent.children == 0
    }

    /// Ends the element that was begun last.
    pub(crate) fn end(&mut self) {
        if let Some(ended) = self.open.pop() {
            self.declarations -= ended.declarations;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::around_s3s::xml::{XmlFault, canonical};

    fn is_taken(document: &str) -> bool {
        let written = canonical(document.as_bytes(), 8 << 20);
        assert_ne!(written, Err(XmlFault::TooLong));
        written.is_ok()
    }

    fn is_holder(name: &str) -> bool {
        HOLDERS.contains(&name) || CHILDREN.iter().any(|(known, _)| *known == name)
    }

    #[test]
    fn what_has_no_place_is_refused() {
        for (parent, children) in CHILDREN {
            for child in *children {
                let text = if is_holder(child) { "\n" } else { "1" };
                let good = format!("<{parent}><{child}>{text}</{child}></{parent}>");
                assert!(is_taken(&good), "{good}");
                for bad in [child.to_lowercase(), format!("{child}s")] {
                    let bad = format!("<{parent}><{bad}/></{parent}>");
                    assert!(!is_taken(&bad), "{bad}");
                }
            }
        }
        assert!(is_taken("<Retention/>"));
        assert!(is_taken("<s:Tagging xmlns:s='s'><s:TagSet/></s:Tagging>"));
        assert!(!is_taken(
            "<Tagging><TagSet><Tag/><tag/></TagSet></Tagging>"
        ));
        assert!(!is_taken("<Delete><Object/><a/></Delete>"));
    }

    #[test]
    fn text_has_no_place_among_elements() {
        let holders = CHILDREN.iter().map(|(name, _)| *name).chain(HOLDERS);
        for name in holders {
            assert!(
                is_taken(&format!("<{name}> \t\r\n&#32;</{name}>")),
                "{name}"
            );
            for text in ["logs/", "<![CDATA[x]]>", "&amp;", "&#65;", "\u{a0}"] {
                let bad = format!("<{name}>{text}</{name}>");
                assert!(!is_taken(&bad), "{bad}");
            }
        }
        assert!(is_taken("<a>\n<b>text <!-- c --> and more</b>\n</a>"));
        for bad in ["<a>x<b/></a>", "<a><b/>x</a>", "<a><b>y</b>\n&lt;</a>"] {
            assert!(!is_taken(bad), "{bad}");
        }
    }

    #[test]
    fn lists_are_bounded() {
        let parts = |count: usize| {
            let parts = "<Part/>".repeat(count);
            is_taken(&format!(
                "<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
            ))
        };
        assert!(parts(XML_PARTS_MAX) && !parts(XML_PARTS_MAX + 1));
        let objects = |count: usize| {
            let objects = "<Object/>".repeat(count);
            is_taken(&format!("<Delete>{objects}<Quiet/></Delete>"))
        };
        assert!(objects(XML_CHILDREN_MAX - 1) && !objects(XML_CHILDREN_MAX));
        let wide = format!("<b>{}</b>", "<c/>".repeat(XML_CHILDREN_MAX));
        assert!(is_taken(&format!("<a>{wide}</a>")));
        assert!(!is_taken(&format!("<a>{}</a>", wide.repeat(200))));
    }

    #[test]
    fn declarations_that_hold_are_bounded() {
        let declaring = |from: usize, count: usize| -> String {
            let each = (from..from + count).map(|n| format!(" xmlns:n{n}='u'"));
            each.collect()
        };
        let half = XML_DECLARATIONS_MAX / 2;
        let nested = |inner: usize| {
            let (outer, inner) = (declaring(0, half), declaring(half, inner));
            is_taken(&format!("<a{outer}><b{inner}></b></a>"))
        };
        assert!(nested(half) && !nested(half + 1));
        // Each of a list's elements may have its own, as grantees do.
        let grantees = format!("<b{}/>", declaring(0, 2)).repeat(100);
        assert!(is_taken(&format!("<a xmlns='s'>{grantees}</a>")));
    }
}
