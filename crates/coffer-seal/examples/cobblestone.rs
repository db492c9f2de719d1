//! Seals or opens one message between standard input and output: the Rust side of the
//! interoperability tests in `tests/interop`.
//!
//! ```text
//! cobblestone seal KEY_HEX CONTEXT_HEX < plaintext > message
//! cobblestone open KEY_HEX CONTEXT_HEX < message > plaintext
//! cobblestone serve            many messages in one process; see `serve`
//! ```
//!
//! Exits with 1, and writes nothing, when a message does not open; with 2 on wrong use.

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use coffer_seal::limits::KEY_BYTES;
use coffer_seal::{Context, SecretKey, open, seal};

const USAGE: &str = "usage: cobblestone seal|open KEY_HEX CONTEXT_HEX, or cobblestone serve";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["serve"] => serve(),
        [verb, key, context] => once(verb, key, context),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("the message did not open");
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn once(verb: &str, key: &str, context: &str) -> Result<bool, Box<dyn Error>> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let Some(output) = transform(verb, key, context, &input)? else {
        return Ok(false);
    };
    io::stdout().write_all(&output)?;
    Ok(true)
}

/// Answers requests until standard input ends, so that a test of thousands of messages starts one
/// process. A request is a line `VERB KEY_HEX CONTEXT_HEX LENGTH` and that many bytes; the answer
/// a line with the output's length and the output, or the line `failed`. An empty context is `-`.
fn serve() -> Result<bool, Box<dyn Error>> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = String::new();
    while io::BufRead::read_line(&mut input, &mut line)? > 0 {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [verb, key, context, length] = fields[..] else {
            return Err("a request has four fields".into());
        };
        let mut body = vec![0; length.parse()?];
        input.read_exact(&mut body)?;
        match transform(verb, key, context.trim_matches('-'), &body)? {
            Some(answer) => {
                writeln!(output, "{}", answer.len())?;
                output.write_all(&answer)?;
            }
            None => writeln!(output, "failed")?,
        }
        output.flush()?;
        line.clear();
    }
    Ok(true)
}

/// `None`: the message did not open.
fn transform(
    verb: &str,
    key: &str,
    context: &str,
    input: &[u8],
) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
    let key: [u8; KEY_BYTES] = hex::decode(key)?
        .try_into()
        .map_err(|_| "a key is 64 hexadecimal digits")?;
    let key = SecretKey::from_bytes(key);
    let context = Context::raw(hex::decode(context)?);
    match verb {
        "seal" => Ok(Some(seal(&key, &context, input))),
        "open" => Ok(open(&key, &context, input)
            .ok()
            .map(|opened| opened.to_vec())),
        _ => Err(USAGE.into()),
    }
}
