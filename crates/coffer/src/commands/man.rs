//! `coffer man`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::error::Error;

/// `coffer man`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES_OF_MAN)]
pub struct ManArgs {
    /// Folder to write them to; it is made where it is missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Writes a page for the program and one for each of its subcommands.
pub fn man(args: &ManArgs, command_line: Command) -> Result<(), Error> {
    let folder = &args.folder;
    let mut command_line = command_line.disable_help_subcommand(true);
    command_line.build();
    fs::create_dir_all(folder)
        .and_then(|()| write_pages(folder, &command_line))
        .map_err(|source| Error::Unwritable {
            path: folder.clone(),
            source,
        })
}

fn write_pages(folder: &Path, command: &Command) -> io::Result<()> {
    for subcommand in command.get_subcommands() {
        write_pages(folder, subcommand)?;
    }
    let man = Man::new(command.clone())
        .source(concat!("coffer ", env!("CARGO_PKG_VERSION")))
        .manual("coffer");
    let path = folder.join(man.get_filename());
    fs::write(&path, page(&man, command)?)?;
    // The program makes files that only their owner reads; these are for all.
    fs::set_permissions(&path, Permissions::from_mode(0o644))
}

/// What `--help` says. What stands behind the options keeps its lines: there are examples in it.
fn page(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command
        .get_arguments()
        .any(|argument| !argument.is_hide_set())
    {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let (notes, examples) = after.split_once("Examples:\n").unwrap_or((&after, ""));
    for (title, text) in [("NOTES", notes), ("EXAMPLES", examples)] {
        if !text.trim().is_empty() {
            let mut section = Roff::default();
            section.control("SH", [title]).control("nf", []);
            for line in text.trim_end().lines() {
                section.text([roman(line)]);
            }
            section.control("fi", []);
            section.to_writer(&mut page)?;
        }
    }
    Ok(page)
}

const EXAMPLES_OF_MAN: &str = "\
Examples:
  coffer man ./man && man ./man/coffer-serve.1
  coffer man ~/.local/share/man/man1";
