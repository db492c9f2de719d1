//! The head of an answer from a data port. All that comes from there may have been changed on the
//! way.

use std::io::{self, Read};

use crate::limits::{TRANSFER_HEAD_BYTES, TRANSFER_HEADERS, TRANSFER_INTERIM_HEADS};

/// What of an answer's head matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// `None` where there is none, or the body is framed otherwise.
    pub(super) content_length: Option<u64>,
    /// Whether another request may follow on the connection.
    pub(super) stays: bool,
}

/// Reads the head of the final answer, and gives the bytes of the body that came with it.
pub(super) fn read_head(stream: &mut impl Read) -> io::Result<(Head, Vec<u8>)> {
    let mut held = Vec::with_capacity(TRANSFER_HEAD_BYTES);
    let mut room = [0; TRANSFER_HEAD_BYTES];
    let mut interim_heads = 0;
    loop {
        if let Some((head, head_bytes)) = parse(&held)? {
            held.drain(..head_bytes);
            if head.status >= 200 {
                return Ok((head, held));
            }
            interim_heads += 1;
            if interim_heads > TRANSFER_INTERIM_HEADS {
                return Err(invalid("answers that are none yet, without an end"));
            }
            continue;
        }
        let left = TRANSFER_HEAD_BYTES - held.len();
        if left == 0 {
            return Err(invalid("an answer without an end of its head"));
        }
        match stream.read(&mut room[..left])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => held.extend_from_slice(&room[..count]),
        }
    }
}

/// A head, if it is whole, and how long it is.
pub(super) fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; TRANSFER_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes);
    let Ok(parsed) = parsed else {
        return Err(invalid("an answer that is not of HTTP"));
    };
    let (httparse::Status::Complete(head_bytes), Some(status)) = (parsed, response.code) else {
        return Ok(None);
    };
    let values = |name: &'static str| {
        let is_so = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        response.headers.iter().filter(is_so)
    };
    let mut lengths = values("content-length");
    let content_length = match (lengths.next(), lengths.next()) {
        (Some(only), None) => number(only.value),
        _ => None,
    };
    let otherwise = values("transfer-encoding").next().is_some();
    let closes = values("connection").any(|header| header.value.eq_ignore_ascii_case(b"close"));
    let head = Head {
        status,
        content_length: content_length.filter(|_| !otherwise),
        stays: response.version == Some(1) && !closes && !otherwise,
    };
    Ok(Some((head, head_bytes)))
}

fn number(digits: &[u8]) -> Option<u64> {
    let all = digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| all)?;
    digits.parse().ok()
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<(Head, Vec<u8>)> {
        read_head(&mut text.as_bytes())
    }

    #[test]
    fn heads_and_the_bytes_behind_them() {
        let (head, rest) =
            read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nabc")
                .unwrap();
        let expected = Head {
            status: 200,
            content_length: Some(12),
            stays: true,
        };
        assert_eq!(head, expected);
        assert_eq!(rest, b"abc");
        for ends in [
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 204 x\r\nConnection: Close\r\n\r\n",
        ] {
            assert!(!read(ends).unwrap().0.stays, "{ends}");
        }
    }

    #[test]
    fn lengths_that_are_unclear_are_none() {
        for unclear in [
            "",
            "content-length: 1\r\ncontent-length: 2\r\n",
            "content-length: 1\r\ntransfer-encoding: chunked\r\n",
            "content-length: +1\r\n",
            "content-length: 99999999999999999999\r\n",
        ] {
            let (head, _) = read(&format!("HTTP/1.1 200 OK\r\n{unclear}\r\n")).unwrap();
            assert_eq!(head.content_length, None, "{unclear}");
        }
    }

    #[test]
    fn what_is_no_head_is_an_error() {
        let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(TRANSFER_HEAD_BYTES));
        for wrong in ["", "HTTP/1.1 200", "SSH-2.0-x\r\n\r\n", &endless] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answers_that_are_none_yet_have_an_end() {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let error = read_head(&mut Endless(interim, 0));
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    /// The same again and again.
    struct Endless(&'static str, usize);

    impl Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let rest = &self.0.as_bytes()[self.1..];
            let count = rest.len().min(out.len());
            out[..count].copy_from_slice(&rest[..count]);
            self.1 = (self.1 + count) % self.0.len();
            Ok(count)
        }
    }
}
