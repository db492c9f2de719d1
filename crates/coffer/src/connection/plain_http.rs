//! Clients that speak plain HTTP where TLS is spoken: they get a sentence they can read.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::{LEAVING_TIME, PLAIN_REQUEST_BYTES};

const ANSWER: &str = "HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain\r\n\
    content-length: 65\r\n\
    connection: close\r\n\
    \r\n\
    This port speaks TLS: write https:// in place of http:// for it.\n";

/// Whether a client speaks plain HTTP: requests begin with a letter, handshakes with byte 22.
///
/// # Errors
/// When the connection fails.
pub async fn is_spoken(tcp: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    Ok(tcp.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase())
}

/// Answers, and lets go. A request that is not read would take the answer with it.
pub async fn refuse(mut tcp: TcpStream) {
    let answered = async {
        tcp.write_all(ANSWER.as_bytes()).await?;
        tcp.shutdown().await?;
        let mut rest = tcp.take(PLAIN_REQUEST_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    let _ = timeout(LEAVING_TIME, answered).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_length_that_it_tells() {
        let (head, body) = ANSWER.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
    }
}
