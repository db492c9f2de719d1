//! An answer that comes as lines.

use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::error::Error;
use crate::limits::REPORT_LINE_BYTES;
use crate::remote::Remote;

/// The lines of an answer, put together from its frames.
pub struct Lines {
    body: Incoming,
    text: Text,
}

impl Lines {
    /// The lines of this answer.
    pub fn new(body: Incoming) -> Self {
        Self {
            body,
            text: Text::default(),
        }
    }

    /// The next line, without its end; `None` at the end of the answer.
    ///
    /// # Errors
    /// When the answer broke off, or a line has no end.
    pub async fn next(&mut self, remote: &Remote) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some(line) = self.text.next() {
                return Ok(Some(line));
            }
            if self.text.0.len() > REPORT_LINE_BYTES {
                return Err(remote.nonsense("gave an answer without an end"));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(_)) => return Err(remote.nonsense("broke off its answer")),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.text.0.extend_from_slice(&bytes);
                    }
                }
            }
        }
    }
}

/// What has come and is not taken yet.
#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let rest = self.0.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.0, rest);
        line.pop();
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"{\"a\":1}\n\n{\"b\":2}\nrest";
        for cut in 0..text.len() {
            let mut lines = Text::default();
            let mut got = Vec::new();
            for part in [&text[..cut], &text[cut..]] {
                lines.0.extend_from_slice(part);
                while let Some(line) = lines.next() {
                    got.push(line);
                }
            }
            assert_eq!(got, [&b"{\"a\":1}"[..], b"", b"{\"b\":2}"]);
            assert_eq!(lines.0, b"rest");
        }
    }
}
