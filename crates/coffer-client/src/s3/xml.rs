//! The XML of answers, as a tree. Whatever a server sends becomes one, within limits, or an error:
//! which elements mean what is said where they are asked for.

use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, Event};
use quick_xml::{Reader, XmlVersion};

use crate::limits::{S3_ANSWER_BYTES, XML_DEPTH, XML_ELEMENTS};

/// An answer that is no XML, or more of it than one can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not well-formed")]
pub struct XmlFault;

impl<E: Into<quick_xml::Error>> From<E> for XmlFault {
    fn from(_: E) -> Self {
        Self
    }
}

/// Yes or no, as XML writes it, in whatever letter case; none where a text says neither.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// An element: its name without a prefix, the text in it, the elements in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name, without a prefix.
    pub name: String,
    /// All text directly in it.
    pub text: String,
    /// The elements in it, in order.
    pub children: Vec<Element>,
    /// The value of `xsi:type`, which tells users from groups in access control lists.
    pub kind: Option<String>,
}

impl Element {
    /// Reads a document. Attributes but one, comments and instructions mean nothing; a type
    /// declaration is refused.
    ///
    /// # Errors
    /// [`XmlFault`].
    pub fn parse(document: &[u8]) -> Result<Self, XmlFault> {
        if document.len() > S3_ANSWER_BYTES {
            return Err(XmlFault);
        }
        let text = std::str::from_utf8(document).map_err(|_| XmlFault)?;
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        reader.config_mut().expand_empty_elements = true;
        let mut growing = Growing::default();
        loop {
            match reader.read_event()? {
                Event::Start(start) => {
                    let name = name(start.local_name().as_ref())?;
                    let decoder = reader.decoder();
                    let mut attributes = start.attributes();
                    let kind = { attributes.with_checks(false).flatten() }
                        .find(|attribute| attribute.key.local_name().as_ref() == b"type");
                    let kind = kind.map(|kind| {
                        kind.decoded_and_normalized_value(XmlVersion::Implicit1_0, decoder)
                    });
                    growing.begin(name, kind.transpose()?.map(|kind| kind.into_owned()))?;
                }
                Event::End(_) => growing.end()?,
                Event::Text(text) => growing.text(&text.xml10_content()?)?,
                Event::CData(text) => growing.text(&text.xml10_content()?)?,
                Event::GeneralRef(reference) => growing.reference(&reference)?,
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
                Event::DocType(_) | Event::Empty(_) => return Err(XmlFault),
                Event::Eof => return growing.whole(),
            }
        }
    }

    /// The first element of this name in it.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All elements of this name in it.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the first element of this name in it.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }

    /// The same, if it is not empty.
    pub fn value_of(&self, name: &str) -> Option<&str> {
        self.text_of(name).filter(|text| !text.is_empty())
    }

    /// Whether the first element of this name says that something is so.
    pub fn is_true(&self, name: &str) -> bool {
        self.text_of(name).and_then(truth) == Some(true)
    }

    /// Whether two elements say the same: services write those of different names in orders of
    /// their own, and only the order of those of one name means something.
    pub fn says_the_same(&self, other: &Self) -> bool {
        fn in_order(element: &Element) -> Vec<&Element> {
            let mut children: Vec<&Element> = element.children.iter().collect();
            children.sort_by(|a, b| a.name.cmp(&b.name));
            children
        }
        let (ours, theirs) = (in_order(self), in_order(other));
        (&self.name, &self.text, &self.kind) == (&other.name, &other.text, &other.kind)
            && ours.len() == theirs.len()
            && { ours.iter().zip(theirs) }.all(|(our, their)| our.says_the_same(their))
    }

    /// The element as it is sent, with its text escaped.
    pub fn to_xml(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) {
        out.extend(["<", &self.name]);
        if let Some(kind) = &self.kind {
            out.push_str(" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"");
            out.extend([&escaped(kind), "\""]);
        }
        out.push('>');
        out.push_str(&escaped(&self.text));
        for child in &self.children {
            child.write(out);
        }
        out.extend(["</", &self.name, ">"]);
    }
}

/// Text as it reads the same: white space that parsers change goes by its number.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in quick_xml::escape::escape(text).chars() {
        match c {
            '\r' | '\n' | '\t' => out.push_str(&format!("&#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

fn name(name: &[u8]) -> Result<String, XmlFault> {
    let name = std::str::from_utf8(name).map_err(|_| XmlFault)?;
    let is_good = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(is_good) {
        return Err(XmlFault);
    }
    Ok(name.to_owned())
}

/// A tree that is not whole yet: the elements that have begun, the innermost last.
#[derive(Default)]
struct Growing {
    open: Vec<Element>,
    root: Option<Element>,
    count: usize,
}

impl Growing {
    fn begin(&mut self, name: String, kind: Option<String>) -> Result<(), XmlFault> {
        self.count += 1;
        let is_second = self.open.is_empty() && self.root.is_some();
        if is_second || self.open.len() == XML_DEPTH || self.count > XML_ELEMENTS {
            return Err(XmlFault);
        }
        self.open.push(Element {
            name,
            kind,
            ..Element::default()
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), XmlFault> {
        let done = self.open.pop().ok_or(XmlFault)?;
        match self.open.last_mut() {
            Some(outer) => {
                // White space between elements is no text.
                if outer.text.trim().is_empty() {
                    outer.text.clear();
                }
                outer.children.push(done);
            }
            None => self.root = Some(done),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), XmlFault> {
        match self.open.last_mut() {
            Some(open) if open.children.is_empty() || !text.trim().is_empty() => {
                open.text.push_str(text);
                Ok(())
            }
            Some(_) => Ok(()),
            None if text.trim().is_empty() => Ok(()),
            None => Err(XmlFault),
        }
    }

    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), XmlFault> {
        let open = self.open.last_mut().ok_or(XmlFault)?;
        if let Some(c) = reference.resolve_char_ref()? {
            if open.children.is_empty() || !c.is_whitespace() {
                open.text.push(c);
            }
            return Ok(());
        }
        let name = reference.decode()?;
        open.text
            .push_str(resolve_xml_entity(&name).ok_or(XmlFault)?);
        Ok(())
    }

    fn whole(self) -> Result<Element, XmlFault> {
        self.root.filter(|_| self.open.is_empty()).ok_or(XmlFault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_their_text() {
        let document = "\u{feff}<?xml version=\"1.0\"?>\n<s3:L xmlns:s3=\"urn:x\">\n <a>1 &amp; \
                        2&#10;<![CDATA[<3>]]></a>\n <b/>\n <a> </a><!-- no -->\n</s3:L>\n";
        let root = Element::parse(document.as_bytes()).unwrap();
        assert_eq!((root.name.as_str(), root.text.as_str()), ("L", ""));
        let texts: Vec<_> = root.all("a").map(|a| a.text.as_str()).collect();
        assert_eq!(texts, ["1 & 2\n<3>", " "]);
        assert_eq!(root.text_of("b"), Some(""));
        assert_eq!(root.value_of("b"), None);
        assert_eq!(root.child("c"), None);
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let document = "<A><G xmlns:xsi=\"x\" xsi:type=\"User\"><I>a&lt;&quot;b</I></G></A>";
        let root = Element::parse(document.as_bytes()).unwrap();
        assert_eq!(root.child("G").unwrap().kind.as_deref(), Some("User"));
        assert_eq!(Element::parse(root.to_xml().as_bytes()), Ok(root));
    }

    #[test]
    fn the_order_of_elements_of_one_name_means_something() {
        let says = |a: &str, b: &str| {
            let parse = |text: &str| Element::parse(text.as_bytes()).unwrap();
            parse(a).says_the_same(&parse(b))
        };
        assert!(says(
            "<R><E><D>1</D></E><I/></R>",
            "<R><I/><E><D>1</D></E></R>"
        ));
        assert!(says(
            "<R><M>1</M><I/><M>2</M></R>",
            "<R><M>1</M><M>2</M><I/></R>"
        ));
        for other in [
            "<R><M>2</M><M>1</M></R>",
            "<R><M>1</M></R>",
            "<R><M>1</M><M>2</M><M>3</M></R>",
            "<R><M>1</M><N>2</N></R>",
            "<S><M>1</M><M>2</M></S>",
            "<R><M>1</M><M><A/></M></R>",
        ] {
            assert!(!says("<R><M>1</M><M>2</M></R>", other), "{other}");
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let deep = "<a>".repeat(XML_DEPTH + 1) + &"</a>".repeat(XML_DEPTH + 1);
        let many = format!("<a>{}</a>", "<b/>".repeat(XML_ELEMENTS));
        for wrong in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>x",
            "<a>&unknown;</a>",
            "<!DOCTYPE a [<!ENTITY e \"e\">]><a>&e;</a>",
            "\u{0}",
            &deep,
            &many,
        ] {
            assert_eq!(
                Element::parse(wrong.as_bytes()),
                Err(XmlFault),
                "{wrong:.40}"
            );
        }
        assert_eq!(Element::parse(b"<a>\xff</a>"), Err(XmlFault));
    }
}
