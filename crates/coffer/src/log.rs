//! The log, on standard error, by way of a queue. Standard output belongs to the paste lines and
//! `ready`.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::util::SubscriberInitExt;

pub mod queue;

use self::queue::LogQueue;

/// How much to log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// What stops something from working.
    Error,
    /// And what the operator should look at.
    Warn,
    /// And what the server does.
    #[default]
    Info,
    /// And how.
    Debug,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: an object a line.
    Json,
}

/// Starts the log. Does nothing when one runs (tests).
pub fn start(level: LogLevel, format: LogFormat) {
    let Some(queue) = LogQueue::to_stderr() else {
        // No thread could be started, so nothing else will work either.
        return;
    };
    let builder = fmt()
        .with_ansi(std::io::stderr().is_terminal() && wants_colour())
        .with_writer(queue)
        // It would say so on standard error, and panic where that can't be written.
        .log_internal_errors(false)
        .with_env_filter(EnvFilter::new(filter(level)));
    // An error means that a log runs already: then that one stays.
    let started = match format {
        LogFormat::Text => builder.with_target(false).finish().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
    };
    if started.is_ok() {
        log_panics();
    }
}

/// Whether the environment leaves colours be (<https://no-color.org>).
fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Panics are told in the log like all else: the standard way waits for standard error.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        match backtrace.status() {
            BacktraceStatus::Captured => tracing::error!(%panic, %backtrace, "panicked"),
            _ => tracing::error!(%panic, "panicked"),
        }
    }));
}

/// `s3s` is off at every level: it writes whole requests, with object names and signatures. The
/// other libraries do not say more than the name of a setting below a warning, so they may warn.
fn filter(level: LogLevel) -> String {
    let level = match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
    };
    let ours = [
        "coffer",
        "coffer_admin",
        "coffer_s3",
        "coffer_vault",
        "coffer_store",
        "coffer_keys",
    ];
    let mut filter = String::from(if level == "error" { "error" } else { "warn" });
    for target in ours {
        filter.push_str(&format!(",{target}={level}"));
    }
    filter.push_str(",s3s=off");
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3s_stays_silent_at_every_level() {
        for level in [
            LogLevel::Error,
            LogLevel::Warn,
            LogLevel::Info,
            LogLevel::Debug,
        ] {
            let text = filter(level);
            assert!(text.split(',').any(|part| part == "s3s=off"), "{text}");
            EnvFilter::try_new(&text).expect("a filter that parses");
        }
    }
}
