//! `coffer completions`.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::error::Error;
use crate::output::table::{print, unless_read_enough};

/// `coffer completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Prints the script by which a shell completes this command line.
pub fn completions(args: &CompletionsArgs, mut command_line: Command) -> Result<(), Error> {
    let mut script = Vec::new();
    generate(args.shell, &mut command_line, "coffer", &mut script);
    let printed = print(&String::from_utf8_lossy(&script)).map_err(|source| Error::System {
        doing: "writing the script",
        source,
    });
    unless_read_enough(printed)
}

const EXAMPLES: &str = "\
The Debian package has these scripts where bash, zsh and fish look for them.

Examples:
  coffer completions bash > ~/.local/share/bash-completion/completions/coffer
  coffer completions zsh > ~/.zfunc/_coffer     with fpath+=~/.zfunc before compinit
  coffer completions fish > ~/.config/fish/completions/coffer.fish";
