//! An HTTP/1.1 answer, taken in piece by piece and checked against what must come back. Bodies
//! are looked at where they were received and not kept.

use crate::error::{BenchError, Result};
use crate::load_client::content::Content;

/// Enough for any answer's status line and headers.
const HEAD_MAX_BYTES: usize = 16_384;
const HEADERS_MAX: usize = 64;

/// How much of an unwelcome answer's body is kept for the message.
const COMPLAINT_MAX_BYTES: usize = 1_000;

/// What a request expects back.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// Any 2xx with any body.
    Success,
    /// A 2xx with this body; of every piece that arrives, the beginning is compared.
    Body(Content),
    /// The same, with every byte compared.
    WholeBody(Content),
}

impl Expected {
    /// The body, where it is known.
    pub fn content(&self) -> Option<Content> {
        match *self {
            Self::Success => None,
            Self::Body(content) | Self::WholeBody(content) => Some(content),
        }
    }
}

/// How far an answer has come.
enum Progress {
    Head(Vec<u8>),
    Body {
        left_bytes: u64,
        offset_bytes: u64,
    },
    Complaint {
        status: u16,
        left_bytes: u64,
        text: Vec<u8>,
    },
}

/// One answer under way.
pub struct Response<'a> {
    request_line: &'a str,
    expected: Expected,
    progress: Progress,
}

impl<'a> Response<'a> {
    /// `request_line`: for messages.
    pub fn new(request_line: &'a str, expected: Expected) -> Self {
        Self {
            request_line,
            expected,
            progress: Progress::Head(Vec::new()),
        }
    }

    /// Takes in what arrived. True: the answer is complete, and it is the right one.
    pub fn receive(&mut self, mut piece: &[u8]) -> Result<bool> {
        if let Progress::Head(head) = &mut self.progress {
            let held_bytes = head.len();
            head.extend_from_slice(&piece[..piece.len().min(HEAD_MAX_BYTES)]);
            let Some((head_bytes, status, body_bytes)) = parse_head(head)? else {
                return Ok(false);
            };
            piece = &piece[head_bytes - held_bytes..];
            self.progress = self.begin_body(status, body_bytes)?;
        }
        match &mut self.progress {
            Progress::Head(_) => Ok(false),
            Progress::Body {
                left_bytes,
                offset_bytes,
            } => {
                let right = match self.expected {
                    Expected::Success => true,
                    Expected::Body(content) => content.begins(*offset_bytes, piece),
                    Expected::WholeBody(content) => content.matches(*offset_bytes, piece),
                };
                let received_bytes = piece.len() as u64;
                if !right || received_bytes > *left_bytes {
                    let request = self.request_line.to_owned();
                    return Err(BenchError::WrongContents {
                        request,
                        offset: *offset_bytes,
                    });
                }
                *offset_bytes += received_bytes;
                *left_bytes -= received_bytes;
                Ok(*left_bytes == 0)
            }
            Progress::Complaint {
                status,
                left_bytes,
                text,
            } => {
                *left_bytes = left_bytes.saturating_sub(piece.len() as u64);
                text.extend_from_slice(piece);
                text.truncate(COMPLAINT_MAX_BYTES);
                if *left_bytes > 0 && text.len() < COMPLAINT_MAX_BYTES {
                    return Ok(false);
                }
                Err(BenchError::Status {
                    status: *status,
                    request: self.request_line.to_owned(),
                    body: String::from_utf8_lossy(text).into_owned(),
                })
            }
        }
    }

    fn begin_body(&self, status: u16, body_bytes: u64) -> Result<Progress> {
        if !(200..300).contains(&status) {
            return Ok(Progress::Complaint {
                status,
                left_bytes: body_bytes,
                text: Vec::new(),
            });
        }
        if let Some(content) = self.expected.content()
            && content.length_bytes != body_bytes
        {
            let request = self.request_line.to_owned();
            let expected = content.length_bytes;
            return Err(BenchError::WrongLength {
                request,
                expected,
                found: body_bytes,
            });
        }
        Ok(Progress::Body {
            left_bytes: body_bytes,
            offset_bytes: 0,
        })
    }
}

/// The length of the head, the status, and the length of the body; None: not all there yet.
fn parse_head(head: &[u8]) -> Result<Option<(usize, u16, u64)>> {
    let bad = |what: &str| BenchError::Http {
        what: what.to_owned(),
    };
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let head_bytes = match answer.parse(head) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if head.len() < HEAD_MAX_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(bad("the head is too long")),
        Err(error) => return Err(bad(&error.to_string())),
    };
    let status = answer.code.ok_or_else(|| bad("no status"))?;
    let length = answer
        .headers
        .iter()
        .find(|h| h.name.eq_ignore_ascii_case("content-length"));
    let body_bytes = match length {
        Some(length) => std::str::from_utf8(length.value)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| bad("content-length is no number"))?,
        None if status == 204 => 0,
        // Chunked bodies have no place in these benchmarks: lengths are known.
        None => return Err(bad(&format!("status {status} without content-length"))),
    };
    Ok(Some((head_bytes, status, body_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(content: Content, length: u64) -> Vec<u8> {
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        answer.extend_from_slice(content.piece(0, 1_000));
        answer
    }

    #[test]
    fn arrives_in_any_pieces() {
        let content = Content::new(1_000, 1);
        let answer = answer(content, 1_000);
        for piece_bytes in [1, 7, 100, answer.len()] {
            let mut response = Response::new("GET", Expected::WholeBody(content));
            let pieces: Vec<_> = answer.chunks(piece_bytes).collect();
            for (index, piece) in pieces.iter().enumerate() {
                assert_eq!(response.receive(piece).unwrap(), index + 1 == pieces.len());
            }
        }
    }

    #[test]
    fn wrong_answers_are_errors() {
        let content = Content::new(1_000, 1);
        let receive = |bytes: &[u8]| Response::new("GET", Expected::Body(content)).receive(bytes);
        assert!(matches!(
            receive(&answer(Content::new(1_000, 2), 1_000)),
            Err(BenchError::WrongContents { .. })
        ));
        assert!(matches!(
            receive(&answer(content, 999)),
            Err(BenchError::WrongLength { .. })
        ));
        let denied = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
        assert!(matches!(
            receive(denied),
            Err(BenchError::Status { status: 403, .. })
        ));
        assert!(matches!(
            receive(b"HTTP/1.1 200 OK\r\n\r\n"),
            Err(BenchError::Http { .. })
        ));
        assert!(matches!(
            receive(b"SSH-2.0\r\n"),
            Err(BenchError::Http { .. })
        ));
    }
}
