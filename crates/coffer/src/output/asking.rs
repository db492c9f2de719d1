//! Asking a person whether something is meant that can't be undone.

use std::io::{self, IsTerminal, Write};

use crate::error::Error;

/// Whether there is a person to be asked, who reads what is asked.
pub fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks, and has `wanted` typed. `undone` says what is not done otherwise, `scripts` which option
/// answers where none types.
///
/// # Errors
/// When something else is typed, or nothing.
pub fn ask_for(
    wanted: &str,
    question: &str,
    undone: &'static str,
    scripts: &'static str,
) -> Result<(), Error> {
    eprint!("{question}");
    let mut typed = String::new();
    let read = io::stderr()
        .flush()
        .and_then(|()| io::stdin().read_line(&mut typed));
    if read.is_ok() && typed.trim() == wanted {
        return Ok(());
    }
    if !typed.ends_with('\n') {
        eprintln!();
    }
    let said = if typed.trim().is_empty() {
        format!("nothing was typed where `{wanted}` was asked for")
    } else {
        format!("that is not {wanted}")
    };
    Err(Error::NotConfirmed {
        said,
        undone,
        scripts,
    })
}
