//! Answers as people and programs read them.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::error::Error;
use crate::output::printable::printable;

/// How answers are shown.
#[derive(Debug, Clone, Copy, Args)]
pub struct AnswerArgs {
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// A column: its heading, and on which side it is flush.
pub type Column = (&'static str, Flush);

/// On which side a column is flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Shows an answer: as JSON, or as the lines that `for_people` makes of it. A reader that has read
/// enough, as `head` does, ends that quietly.
pub fn show<T: Serialize>(
    json: bool,
    answer: &T,
    for_people: impl FnOnce(&T) -> String,
) -> Result<(), Error> {
    let printed = print(&text(json, answer, for_people)).map_err(|source| Error::System {
        doing: "writing the answer",
        source,
    });
    unless_read_enough(printed)
}

/// What was printed, where that only tells something: no failure if its reader has read enough.
pub fn unless_read_enough(printed: Result<(), Error>) -> Result<(), Error> {
    match printed {
        Err(error) if error.is_of_reader_gone() => Ok(()),
        printed => printed,
    }
}

/// Shows the answer to an act. Where it can't be written, the error says that the act was done.
pub fn show_done<T: Serialize>(
    json: bool,
    answer: &T,
    for_people: impl FnOnce(&T) -> String,
) -> Result<(), Error> {
    print(&text(json, answer, for_people)).map_err(|source| Error::Unwritten {
        remedy: String::new(),
        source,
    })
}

/// Tells of what has no answer: programs as JSON, people by a line on standard error.
pub fn done<T: Serialize>(json: bool, what: &T, told: &str) -> Result<(), Error> {
    if json {
        return show_done(true, what, |_| String::new());
    }
    let _ = writeln!(io::stderr(), "{}", printable(told));
    Ok(())
}

fn text<T: Serialize>(json: bool, answer: &T, for_people: impl FnOnce(&T) -> String) -> String {
    let mut text = if json {
        serde_json::to_string_pretty(answer).expect("answers came as JSON")
    } else {
        for_people(answer)
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Writes to standard output, to the end.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Refuses to go on where an answer that is given once would be lost: where standard output is
/// closed, which Rust makes `/dev/null` of, or that.
pub fn check_output() -> Result<(), Error> {
    let device = |path: &str| fs::metadata(path).map(|file| file.rdev()).ok();
    let out = device("/proc/self/fd/1");
    if out.is_none() || out != device("/dev/null") {
        return Ok(());
    }
    Err(Error::Option {
        option: "standard output",
        problem: "it is closed or /dev/null, and the answer is given only once: nothing was asked \
                  for"
        .to_owned(),
    })
}

/// A table with a heading, columns two spaces apart.
pub fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|(heading, _)| *heading));
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for (place, (_, flush)) in columns.iter().enumerate() {
        if let Some(column) = table.column_mut(place) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match flush {
                Flush::Left => CellAlignment::Left,
                Flush::Right => CellAlignment::Right,
            });
        }
    }
    lines(table.lines())
}

/// Names and values, a line each.
pub fn sheet(pairs: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, value) in pairs {
        table.add_row([name.to_owned(), printable(&value)]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    lines(table.lines())
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// `yes` or `no`.
pub fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// A moment as the API writes it, for people: to the second, UTC.
pub fn moment(rfc3339: &str) -> String {
    match rfc3339.split_once('.') {
        Some((to_the_second, _)) => to_the_second.replace('T', " "),
        None => rfc3339.to_owned(),
    }
}

/// Something, or a dash.
pub fn or_dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_nothing_moves_the_cursor() {
        let columns = [("NAME", Flush::Left), ("COUNT", Flush::Right)];
        let rows = [["a", "7"], ["long\u{1b}[2J", "12345678"]];
        let text = table(&columns, rows.map(|row| row.map(str::to_owned).to_vec()));
        assert_eq!(
            text,
            "NAME              COUNT\n\
             a                     7\n\
             long\\u{1b}[2J  12345678\n"
        );
        assert_eq!(
            sheet([("a", "1".to_owned()), ("bc", String::new())]),
            "a   1\nbc\n"
        );
    }

    #[test]
    fn moments() {
        assert_eq!(moment("2026-11-20T18:31:03.042Z"), "2026-11-20 18:31:03");
    }
}
