//! Clients that speak plain HTTP where TLS is spoken: they get a sentence they can read.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::{LEAVING_TIME, PLAIN_REQUEST_BYTES};

/// What they read.
pub const SENTENCE: &str = "This port speaks TLS: write https:// in place of http:// for it.\n";

fn answer() -> String {
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{SENTENCE}",
        SENTENCE.len()
    )
}

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
        tcp.write_all(answer().as_bytes()).await?;
        tcp.shutdown().await?;
        let mut rest = tcp.take(PLAIN_REQUEST_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    let _ = timeout(LEAVING_TIME, answered).await;
}
