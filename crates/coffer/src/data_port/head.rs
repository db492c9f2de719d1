//! Heads of requests: a method, a ticket, a length. All else is refused.

use coffer_vault::Ticket;

use crate::limits::DATA_HEADERS_MAX;

/// What a request asks for.
#[derive(Debug)]
pub enum Asked {
    /// The bytes of a ticket.
    Get(Ticket),
    /// To take bytes for a ticket.
    Put {
        /// The ticket.
        ticket: Ticket,
        /// How many bytes.
        length: u64,
        /// Whether the client waits to be told to send them.
        waits: bool,
    },
}

/// Why a request is refused before a ticket is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It can't be understood.
    Malformed,
    /// Its path is that of no ticket.
    NotFound,
    /// Tickets take GET and PUT.
    Method,
    /// It does not say how many bytes it has.
    Length,
}

/// A head.
#[derive(Debug)]
pub struct Head {
    /// What it asks for.
    pub asked: Result<Asked, Refusal>,
    /// Whether the connection may go on after the answer.
    pub keeps_open: bool,
    /// How long the head is, in bytes.
    pub bytes: usize,
}

const PATH: &str = "/transfer/";

/// Reads the head that `bytes` begin with; none while it is not whole.
///
/// # Errors
/// [`Refusal::Malformed`] when it never will be one.
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; DATA_HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Refusal::Malformed),
    };
    let fields = Fields::of(request.headers)?;
    let is_current = request.version == Some(1);
    let asked = asked(&request, &fields);
    Ok(Some(Head {
        // What a refused request brings is not read.
        keeps_open: is_current && !fields.closes && (asked.is_ok() || fields.length == Some(0)),
        asked,
        bytes: length,
    }))
}

fn asked(request: &httparse::Request<'_, '_>, fields: &Fields) -> Result<Asked, Refusal> {
    let path = request.path.ok_or(Refusal::Malformed)?;
    let ticket = path.strip_prefix(PATH).and_then(Ticket::parse);
    let ticket = ticket.ok_or(Refusal::NotFound)?;
    match (request.method, fields.length) {
        (Some("GET"), None | Some(0)) if !fields.is_encoded => Ok(Asked::Get(ticket)),
        (Some("GET"), _) => Err(Refusal::Malformed),
        (Some("PUT"), Some(length)) if !fields.is_encoded => Ok(Asked::Put {
            ticket,
            length,
            waits: fields.waits,
        }),
        (Some("PUT"), _) => Err(Refusal::Length),
        _ => Err(Refusal::Method),
    }
}

/// The header fields that matter.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    is_encoded: bool,
    waits: bool,
    closes: bool,
}

impl Fields {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Self, Refusal> {
        let mut fields = Self::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let value = std::str::from_utf8(header.value).unwrap_or("").trim();
            if is("content-length") {
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let length = value.parse().ok().filter(|_| is_number);
                let length = length.ok_or(Refusal::Malformed)?;
                if fields.length.replace(length).is_some() {
                    return Err(Refusal::Malformed);
                }
            } else if is("transfer-encoding") {
                fields.is_encoded = true;
            } else if is("expect") {
                fields.waits = value.eq_ignore_ascii_case("100-continue");
            } else if is("connection") {
                let mut words = value.split(',').map(str::trim);
                fields.closes |= words.any(|word| word.eq_ignore_ascii_case("close"));
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn head(text: &str) -> Head {
        parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn tickets_are_asked_for_and_sent_to() {
        let text = format!("GET /transfer/{TICKET} HTTP/1.1\r\nHost: h\r\n\r\nmore");
        let got = head(&text);
        assert!(matches!(got.asked, Ok(Asked::Get(_))) && got.keeps_open);
        assert_eq!(got.bytes, text.len() - 4);
        let text = format!(
            "PUT /transfer/{TICKET} HTTP/1.1\r\ncontent-length: 72\r\nExpect: 100-Continue\r\n\
             Connection: close\r\n\r\n"
        );
        let put = head(&text);
        assert!(!put.keeps_open);
        assert!(matches!(
            put.asked,
            Ok(Asked::Put {
                length: 72,
                waits: true,
                ..
            })
        ));
        assert!(!head(&format!("GET /transfer/{TICKET} HTTP/1.0\r\n\r\n")).keeps_open);
    }

    #[test]
    fn all_else_is_refused() {
        let cases = [
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), Refusal::NotFound),
            (
                format!("GET /transfer/{TICKET}?a HTTP/1.1\r\n\r\n"),
                Refusal::NotFound,
            ),
            (
                format!("HEAD /transfer/{TICKET} HTTP/1.1\r\n\r\n"),
                Refusal::Method,
            ),
            (
                format!("PUT /transfer/{TICKET} HTTP/1.1\r\n\r\n"),
                Refusal::Length,
            ),
            (
                format!(
                    "PUT /transfer/{TICKET} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\
                     Content-Length: 5\r\n\r\n"
                ),
                Refusal::Length,
            ),
            (
                format!("GET /transfer/{TICKET} HTTP/1.1\r\nContent-Length: 5\r\n\r\n"),
                Refusal::Malformed,
            ),
        ];
        for (text, refusal) in cases {
            let refused = head(&text);
            assert_eq!(refused.asked.unwrap_err(), refusal, "{text}");
            assert!(!refused.keeps_open, "{text}");
        }
        for text in [
            "\u{0}\u{1}\u{2}",
            "GET /x HTTP/3.0\r\n\r\n",
            "PUT /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "PUT /x HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), Refusal::Malformed);
        }
        assert!(parse(b"GET /transf").unwrap().is_none());
    }
}
