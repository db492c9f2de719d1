//! Where the data is, as it is typed.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

/// Where the data is.
#[derive(Debug, Default, Args)]
pub struct DataArgs {
    /// Data folder [default: ./coffer-data]
    #[arg(
        long,
        value_name = "DIR",
        env = "COFFER_DATA",
        global = true,
        hide_env_values = true
    )]
    pub data: Option<PathBuf>,
    /// Configuration file (TOML); its keys are the names of the options
    #[arg(
        long,
        value_name = "FILE",
        env = "COFFER_CONFIG",
        global = true,
        hide_env_values = true
    )]
    pub config: Option<PathBuf>,
    /// Whether the folder was typed, not said by the environment.
    #[arg(skip)]
    pub is_data_typed: bool,
    /// The same of the configuration file.
    #[arg(skip)]
    pub is_config_typed: bool,
}

impl DataArgs {
    /// Takes in where its values come from: what is typed counts as typed, even where the
    /// environment says the same.
    pub fn take_sources(&mut self, matches: &ArgMatches) {
        let is_typed = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        self.is_data_typed = is_typed("data");
        self.is_config_typed = is_typed("config");
    }
}
