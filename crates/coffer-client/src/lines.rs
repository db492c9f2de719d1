//! An answer that comes as lines.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::administration::AdminClient;
use crate::error::ClientError;
use crate::limits::LINE_BYTES;

/// The lines of an answer, each of them JSON, put together from its frames.
pub struct Lines<'a> {
    server: &'a AdminClient,
    body: Incoming,
    text: Text,
}

impl<'a> Lines<'a> {
    /// The lines of this answer of a server.
    pub fn new(server: &'a AdminClient, body: Incoming) -> Self {
        Self {
            server,
            body,
            text: Text::default(),
        }
    }

    /// The next line: what it says, and how it is written, without its end. `None` at the end of
    /// the answer.
    ///
    /// # Errors
    /// When the answer broke off, a line has no end, or it says something else.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<(T, Vec<u8>)>, ClientError> {
        let Some(line) = self.line().await? else {
            return Ok(None);
        };
        let said = serde_json::from_slice(&line)
            .map_err(|_| self.server.misunderstood("gave an unknown answer"))?;
        Ok(Some((said, line)))
    }

    async fn line(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        loop {
            if let Some(line) = self.text.next() {
                return Ok(Some(line));
            }
            if self.text.0.len() > LINE_BYTES {
                return Err(self.server.misunderstood("gave an answer without an end"));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(_)) => return Err(self.server.broken_off(false)),
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
