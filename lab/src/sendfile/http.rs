//! As much of HTTP/1.1 as one file needs: a question, and the head of its answer.

use std::io::Read;

use httparse::Status;

use crate::error::{Doing, LabError, Result};

/// What a client asks.
pub(super) const QUESTION: &[u8] = b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The most of a head, in bytes.
const HEAD_BYTES_MAX: usize = 1024;

const HEADERS_MAX: usize = 16;

/// What stands before the bytes of an answer.
pub(super) fn head_of_answer(bytes: u64) -> String {
    let kind = "application/octet-stream";
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\n\r\n")
}

/// Waits for a question, and takes it: nothing comes behind it before it has been answered.
pub(super) fn take_question(stream: &mut (impl Read + ?Sized)) -> Result<()> {
    let mut received = Vec::new();
    loop {
        receive(stream, &mut received)?;
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        match httparse::Request::new(&mut headers).parse(&received) {
            Ok(Status::Complete(count)) if count == received.len() => return Ok(()),
            Ok(Status::Partial) if received.len() < HEAD_BYTES_MAX => {}
            _ => return Err(unwelcome("no question of HTTP")),
        }
    }
}

/// Takes the head of an answer; gives the bytes that follow, and those of them that have come.
pub(super) fn take_head(stream: &mut (impl Read + ?Sized)) -> Result<(u64, Vec<u8>)> {
    let mut received = Vec::new();
    loop {
        receive(stream, &mut received)?;
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut answer = httparse::Response::new(&mut headers);
        match answer.parse(&received) {
            Ok(Status::Complete(count)) if answer.code == Some(200) => {
                let length = length(answer.headers)?;
                return Ok((length, received.split_off(count)));
            }
            Ok(Status::Partial) if received.len() < HEAD_BYTES_MAX => {}
            _ => return Err(unwelcome("no good answer of HTTP")),
        }
    }
}

fn length(headers: &[httparse::Header<'_>]) -> Result<u64> {
    let mut headers = headers.iter();
    let length = headers.find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
    length.ok_or_else(|| unwelcome("an answer without a length"))
}

/// What has come, at least a byte of it, behind what had come before.
fn receive(stream: &mut (impl Read + ?Sized), received: &mut Vec<u8>) -> Result<()> {
    let from = received.len();
    received.resize(from + HEAD_BYTES_MAX, 0);
    match stream
        .read(&mut received[from..])
        .doing(|| "receiving a head".into())?
    {
        0 => Err(unwelcome("over in the middle of a head")),
        count => {
            received.truncate(from + count);
            Ok(())
        }
    }
}

fn unwelcome(what: &str) -> LabError {
    LabError::Data {
        file: "what came over the connection".into(),
        what: format!("is {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_taken_and_what_follows_is_kept() {
        let answer = [head_of_answer(3).as_bytes(), b"abc"].concat();
        let mut rest = &answer[..];
        assert_eq!(take_head(&mut rest).unwrap(), (3, b"abc".to_vec()));
        take_question(&mut &*QUESTION).unwrap();
        take_question(&mut &[QUESTION, b"?"].concat()[..]).unwrap_err();
        take_question(&mut &QUESTION[..9]).unwrap_err();
        let refused = b"HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nabc";
        take_head(&mut &refused[..]).unwrap_err();
        take_head(&mut &answer[..20]).unwrap_err();
        take_head(&mut &[b'a'; 5000][..]).unwrap_err();
    }
}
