//! XML that others wrote, written anew: s3s passes over CDATA sections, refuses character
//! references from U+10000 on, and knows no prefixes. A well-kept parser reads the whole of XML
//! here, and leaves elements, attributes and plain text to s3s.
//!
//! CanonicalXml type declarations are refused: no S3 client sends one, and entities are how a small
//! document becomes a huge one.

use quick_xml::encoding::Decoder;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::name::{NamespaceResolver, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

use crate::around_s3s::xml_elements::Elements;
use crate::http::number;
use crate::limits::XML_ATTRIBUTES_MAX;

/// Elements that hold whole numbers. s3s reads digits as far as there are any, and passes over the
/// rest: `1O0` with a letter in it was 1.
const NUMBERS: [&[u8]; 9] = [
    b"Days",
    b"DaysAfterInitiation",
    b"MaxAgeSeconds",
    b"NewerNoncurrentVersions",
    b"NoncurrentDays",
    b"ObjectSizeGreaterThan",
    b"ObjectSizeLessThan",
    b"PartNumber",
    b"Years",
];

/// The namespace of `xsi:type`, whose prefix s3s takes for granted.
const INSTANCE: &[u8] = b"http://www.w3.org/2001/XMLSchema-instance";

/// Why a document was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum XmlFault {
    /// It is not well-formed, or no XML that a client of S3 sends, or has what S3 does not have.
    #[error("the document is not well-formed")]
    Malformed,
    /// Written anew, it would be longer than it may be.
    #[error("the document is too long")]
    TooLong,
}

impl<E: Into<quick_xml::Error>> From<E> for XmlFault {
    fn from(_: E) -> Self {
        Self::Malformed
    }
}

/// Writes a document anew, in at most `limit_bytes`: without prolog, comments, processing
/// instructions, prefixes of elements and declarations of namespaces, with `xsi` as the prefix of
/// types; text with its references resolved and its CDATA as text, and `&`, `<`, `>` and carriage
/// returns escaped.
pub(crate) fn canonical(document: &[u8], limit_bytes: usize) -> Result<String, XmlFault> {
    let document = std::str::from_utf8(document).map_err(|_| XmlFault::Malformed)?;
    let document = document.strip_prefix('\u{feff}').unwrap_or(document);
    let mut reader = NsReader::from_str(document);
    reader.config_mut().expand_empty_elements = true;
    let mut writer = Writer {
        out: String::with_capacity(document.len().min(limit_bytes)),
        elements: Elements::default(),
        content_at: 0,
    };
    loop {
        let (namespace, event) = reader.read_resolved_event()?;
        if matches!(namespace, ResolveResult::Unknown(_)) {
            return Err(XmlFault::Malformed);
        }
        match event {
            Event::Start(start) => writer.start(&start, reader.decoder(), reader.resolver())?,
            Event::End(end) => writer.end(end.local_name().as_ref())?,
            Event::Text(text) => writer.text(&text.xml10_content()?)?,
            Event::CData(text) => writer.inner_text(&text.xml10_content()?)?,
            Event::GeneralRef(reference) => writer.reference(&reference)?,
            Event::Decl(declaration) => check_encoding(&declaration)?,
            Event::Comment(_) | Event::PI(_) => {}
            Event::DocType(_) | Event::Empty(_) => return Err(XmlFault::Malformed),
            Event::Eof => break,
        }
        if writer.out.len() > limit_bytes {
            return Err(XmlFault::TooLong);
        }
    }
    if !writer.elements.are_closed() || !writer.elements.have_root() {
        return Err(XmlFault::Malformed);
    }
    Ok(writer.out)
}

/// Nothing but UTF-8 is read, so no document may say that it is anything else.
fn check_encoding(declaration: &BytesDecl<'_>) -> Result<(), XmlFault> {
    let Some(encoding) = declaration.encoding() else {
        return Ok(());
    };
    let encoding = encoding.map_err(|_| XmlFault::Malformed)?;
    let known = [&b"utf-8"[..], b"utf8", b"us-ascii"];
    if !known.iter().any(|name| encoding.eq_ignore_ascii_case(name)) {
        return Err(XmlFault::Malformed);
    }
    Ok(())
}

struct Writer {
    out: String,
    elements: Elements,
    /// Where the content begins of the element that was begun last.
    content_at: usize,
}

impl Writer {
    fn start(
        &mut self,
        start: &BytesStart<'_>,
        decoder: Decoder,
        namespaces: &NamespaceResolver,
    ) -> Result<(), XmlFault> {
        let mut declarations = 0;
        self.out.push('<');
        self.name(start.local_name().as_ref())?;
        // Its own check compares each with each.
        let mut attributes = start.attributes();
        for (count, attribute) in attributes.with_checks(false).enumerate() {
            let attribute = attribute.map_err(|_| XmlFault::Malformed)?;
            if count == XML_ATTRIBUTES_MAX {
                return Err(XmlFault::Malformed);
            }
            if attribute.key.as_namespace_binding().is_some() {
                declarations += 1;
                continue;
            }
            let version = XmlVersion::Implicit1_0;
            let value = attribute.decoded_and_normalized_value(version, decoder)?;
            self.out.push(' ');
            match namespaces.resolve_attribute(attribute.key) {
                (ResolveResult::Bound(namespace), name) if namespace.0 == INSTANCE => {
                    self.out.push_str("xsi:");
                    self.name(name.as_ref())?;
                }
                _ => self.name(attribute.key.as_ref())?,
            }
            self.out.push_str("=\"");
            value.chars().for_each(|c| self.character(c, true));
            self.out.push('"');
        }
        self.out.push('>');
        self.content_at = self.out.len();
        if !self
            .elements
            .begin(start.local_name().as_ref(), declarations)
        {
            return Err(XmlFault::Malformed);
        }
        Ok(())
    }

    /// The reader has checked that it is the end of what was begun last.
    fn end(&mut self, name: &[u8]) -> Result<(), XmlFault> {
        self.elements.end();
        let content = self.out[self.content_at..].trim_end();
        let is_number = number::<i64>(content).is_some();
        if NUMBERS.contains(&name) && !is_number {
            return Err(XmlFault::Malformed);
        }
        self.out.push_str("</");
        self.name(name)?;
        self.out.push('>');
        Ok(())
    }

    /// A name must be one: what is written here is read as XML once more.
    fn name(&mut self, name: &[u8]) -> Result<(), XmlFault> {
        let name = std::str::from_utf8(name).map_err(|_| XmlFault::Malformed)?;
        let is_good = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
        if name.is_empty() || !name.chars().all(is_good) {
            return Err(XmlFault::Malformed);
        }
        self.out.push_str(name);
        Ok(())
    }

    /// Text: beside the root, only white space.
    fn text(&mut self, text: &str) -> Result<(), XmlFault> {
        if self.elements.are_closed() && text.bytes().all(|byte| b" \t\r\n".contains(&byte)) {
            return Ok(());
        }
        self.inner_text(text)
    }

    fn inner_text(&mut self, text: &str) -> Result<(), XmlFault> {
        if !self.elements.text(text) {
            return Err(XmlFault::Malformed);
        }
        text.chars().for_each(|c| self.character(c, false));
        Ok(())
    }

    fn character(&mut self, c: char, in_value: bool) {
        match c {
            '&' => self.out.push_str("&amp;"),
            '<' => self.out.push_str("&lt;"),
            '>' => self.out.push_str("&gt;"),
            '\r' => self.out.push_str("&#13;"),
            '"' if in_value => self.out.push_str("&quot;"),
            '\n' if in_value => self.out.push_str("&#10;"),
            '\t' if in_value => self.out.push_str("&#9;"),
            c => self.out.push(c),
        }
    }

    /// `&amp;` and the like, and characters by their number: also control characters, which XML 1.0
    /// has no way to write and names may have.
    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), XmlFault> {
        if let Some(c) = reference.resolve_char_ref()? {
            return self.inner_text(c.encode_utf8(&mut [0; 4]));
        }
        let name = reference.decode()?;
        let text = resolve_xml_entity(&name).ok_or(XmlFault::Malformed)?;
        self.inner_text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::XML_DEPTH_MAX;

    fn written(document: &str) -> Result<String, XmlFault> {
        canonical(document.as_bytes(), 1000)
    }

    #[test]
    fn text_is_what_it_says_however_it_is_written() {
        let cases = [
            ("<a>x<![CDATA[y]]>z</a>", "<a>xyz</a>"),
            ("<a>x<!-- no -->y<?no no?>z</a>", "<a>xyz</a>"),
            ("<a><![CDATA[<&>]]></a>", "<a>&lt;&amp;&gt;</a>"),
            ("<a>&#x1F600;&#128512;\u{1F600}</a>", "<a>😀😀😀</a>"),
            ("<a>&quot;&apos;&amp;lt;</a>", "<a>\"'&amp;lt;</a>"),
            (
                "<a> b\tc\r\nd\re&#13;&#x1;</a>",
                "<a> b\tc\nd\ne&#13;\u{1}</a>",
            ),
            ("<a><b/><c></c></a>", "<a><b></b><c></c></a>"),
            ("<a><Days>30\n</Days></a>", "<a><Days>30\n</Days></a>"),
        ];
        for (document, expected) in cases {
            assert_eq!(written(document).as_deref(), Ok(expected), "{document}");
        }
    }

    #[test]
    fn what_is_no_element_goes() {
        let prolog = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a -->";
        let namespaces =
            "<s:a xmlns:s=\"http://s3\" xmlns=\"x\"><s:b t=\"&lt;1\"/></s:a>\n<!-- b -->";
        let expected = "<a><b t=\"&lt;1\"></b></a>";
        assert_eq!(
            written(&format!("{prolog}{namespaces}")).as_deref(),
            Ok(expected)
        );
    }

    #[test]
    fn types_have_the_prefix_that_s3s_knows() {
        let instance = "http://www.w3.org/2001/XMLSchema-instance";
        for (document, expected) in [
            ("<a xmlns:i='I' i:type='T'/>", "<a xsi:type=\"T\"></a>"),
            ("<a xmlns:xsi='I' xsi:type='T'/>", "<a xsi:type=\"T\"></a>"),
            (
                "<a xmlns:i='I'><b i:type='T'/></a>",
                "<a><b xsi:type=\"T\"></b></a>",
            ),
            (
                "<a xmlns:i='I'><b xmlns:i='o' i:type='T'/><c i:type='T'/></a>",
                "<a><b i:type=\"T\"></b><c xsi:type=\"T\"></c></a>",
            ),
            // Some declare nothing.
            ("<a xsi:type='T'/>", "<a xsi:type=\"T\"></a>"),
            ("<a i:type='T'/>", "<a i:type=\"T\"></a>"),
            ("<a xmlns='I' type='T'/>", "<a type=\"T\"></a>"),
        ] {
            let document = document.replace("'I'", &format!("'{instance}'"));
            assert_eq!(written(&document).as_deref(), Ok(expected), "{document}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        let deep = "<a>".repeat(XML_DEPTH_MAX + 1) + &"</a>".repeat(XML_DEPTH_MAX + 1);
        let many: String = (0..=XML_ATTRIBUTES_MAX)
            .map(|n| format!(" a{n}=''"))
            .collect();
        for bad in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><a/>",
            "<a/>text",
            "<![CDATA[x]]><a/>",
            "<a>&unknown;</a>",
            "<a>&#0;</a>",
            "<a>&#xD800;</a>",
            "<a>& b</a>",
            "<x:a/>",
            "<a b=c/>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
            "<!DOCTYPE a><a/>",
            "<Days>1O0</Days>",
            "<Days>7,5</Days>",
            "<Rule><Years>1e3</Years></Rule>",
            "<PartNumber/>",
            "<MaxAgeSeconds>5<b/></MaxAgeSeconds>",
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>",
            &deep,
            &format!("<a{many}/>"),
        ] {
            assert_eq!(written(bad), Err(XmlFault::Malformed), "{bad}");
        }
        assert_eq!(canonical(b"<a>\xff</a>", 1000), Err(XmlFault::Malformed));
    }

    #[test]
    fn what_grows_is_bounded() {
        let short = format!("<a><![CDATA[{}]]></a>", "&".repeat(500));
        assert_eq!(written(&short), Err(XmlFault::TooLong));
    }
}
