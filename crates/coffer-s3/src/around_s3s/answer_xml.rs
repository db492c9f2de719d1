//! Long answers, written here: s3s writes an element as three events of its own kind, from texts
//! that each are an allocation, which for a page of a listing is more than all else it takes. What
//! is written is what s3s would write.

use std::fmt::{Display, Write};

use bytes::Bytes;

/// Stands for the body that s3s wrote, which is thrown away. It may hold any name as it is.
#[derive(Clone, Debug)]
pub(crate) struct Written(pub(crate) Bytes);

/// A document of S3's that grows at its end.
#[derive(Debug)]
pub(crate) struct AnswerXml {
    text: String,
}

impl AnswerXml {
    /// Begins a document whose element is of this name, and which is to be about so long.
    pub(crate) fn begin(root: &'static str, bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?><");
        text.push_str(root);
        text.push_str(" xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        Self { text }
    }

    /// Ends the document.
    pub(crate) fn end(mut self, root: &'static str) -> Written {
        self.close(root);
        Written(self.text.into())
    }

    pub(crate) fn open(&mut self, name: &'static str) {
        self.text.push('<');
        self.text.push_str(name);
        self.text.push('>');
    }

    pub(crate) fn close(&mut self, name: &'static str) {
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// An element that holds text.
    pub(crate) fn element(&mut self, name: &'static str, text: &str) {
        self.with(name, |written| escape(written, text));
    }

    /// An element that holds what needs no escaping: digits, words of S3's.
    pub(crate) fn plain(&mut self, name: &'static str, value: impl Display) {
        self.with(name, |written| {
            // Writing to a String can't fail.
            let _ = write!(written, "{value}");
        });
    }

    /// An element whose content something else writes.
    pub(crate) fn with(&mut self, name: &'static str, content: impl FnOnce(&mut String)) {
        self.open(name);
        content(&mut self.text);
        self.close(name);
    }

    /// Text between elements that were written by their marks.
    pub(crate) fn with_text(&mut self, content: impl FnOnce(&mut String)) {
        content(&mut self.text);
    }

    /// Elements that were written before.
    pub(crate) fn copied(&mut self, xml: &str) {
        self.text.push_str(xml);
    }
}

/// Writes text so that a reader gets it back: a carriage return that is no reference would be
/// read as a line feed, and other control characters make a document unreadable for many.
pub(crate) fn escape(written: &mut String, text: &str) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let reference = match byte {
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'&' => "&amp;",
            b'\'' => "&apos;",
            b'"' => "&quot;",
            b'\t' | b'\n' | 0x20.. => continue,
            control => {
                written.push_str(&text[from..at]);
                let _ = write!(written, "&#x{control:X};");
                from = at + 1;
                continue;
            }
        };
        written.push_str(&text[from..at]);
        written.push_str(reference);
        from = at + 1;
    }
    written.push_str(&text[from..]);
}

#[cfg(test)]
mod tests {
    use quick_xml::events::Event;
    use quick_xml::{Reader, XmlVersion};

    use super::*;

    proptest::proptest! {
        #[test]
        fn any_text_is_read_back_as_it_was(text in "[\u{1}-\u{d7ff}]{0,24}") {
            let mut written = String::new();
            escape(&mut written, &text);
            let mut reader = Reader::from_str(&written);
            let mut read = String::new();
            loop {
                match reader.read_event().unwrap() {
                    Event::Text(part) => {
                        let version = XmlVersion::Implicit1_0;
                        read.push_str(&part.xml_content(version).unwrap());
                    }
                    Event::GeneralRef(name) => match name.resolve_char_ref().unwrap() {
                        Some(character) => read.push(character),
                        None => {
                            let name = name.decode().unwrap();
                            read.push_str(quick_xml::escape::resolve_xml_entity(&name).unwrap());
                        }
                    },
                    Event::Eof => break,
                    other => panic!("{other:?}"),
                }
            }
            proptest::prop_assert_eq!(read, text);
        }
    }
}
