//! A contender: who encrypts, where it runs, with which settings, and whether it can run here.

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// What the settings of contenders that speak TLS say.
pub const TLS_SETTINGS: &str = "TLS 1.3, AES-256-GCM, connected before the measurement";

/// Where the encryption is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Nowhere: what the others are compared with.
    None,
    /// In a user program on the server.
    User,
    /// In the server's kernel.
    Kernel,
    /// At the client: the server moves sealed bytes.
    Client,
}

impl Placement {
    /// In the order of columns.
    pub const ALL: [Self; 4] = [Self::None, Self::User, Self::Kernel, Self::Client];

    /// As it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Client => "client",
        }
    }
}

/// Whether a contender can run on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Availability {
    /// It runs.
    Runs,
    /// It does not. That is not a speed of zero: it is no figure.
    CannotRun {
        /// What is missing.
        why: String,
        /// What the operator can do about it.
        what_would_make_it_run: String,
    },
}

impl Availability {
    /// It can't, and why: each in one line, whatever a system or a program said.
    pub fn cannot(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        let line = |text: String| text.replace(char::is_control, " ");
        Self::CannotRun {
            why: line(why.into()),
            what_would_make_it_run: line(remedy.into()),
        }
    }

    /// What looked as if it could run, but could not be set up (mounts that a container forbids, a
    /// tunnel that never comes up). A contender that is wrong (other bytes, plaintext where there
    /// must be none) is another matter: that stops the lab.
    ///
    /// # Errors
    ///
    /// The error itself, when it is not one of setting up.
    pub fn from_failure(error: LabError) -> Result<Self> {
        match error {
            LabError::Io { .. } | LabError::Program { .. } => Ok(Self::cannot(
                format!("it can't be set up here: {error}"),
                "a machine on which that works; a container may forbid it",
            )),
            other => Err(other),
        }
    }

    /// Whether it can.
    pub fn runs(&self) -> bool {
        *self == Self::Runs
    }
}

/// One that takes part in an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// Its name, the same in all experiments.
    pub name: String,
    /// Where it encrypts.
    pub placement: Placement,
    /// The library, driver or program and its version, as found on this machine.
    pub runs_on: String,
    /// How it was set up, for the reader who wants to repeat it.
    pub settings: Vec<String>,
    /// Whether it can run here.
    pub availability: Availability,
}

impl Contender {
    /// One that runs, without settings.
    pub fn new(name: impl Into<String>, placement: Placement, runs_on: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            placement,
            runs_on: runs_on.into(),
            settings: Vec::new(),
            availability: Availability::Runs,
        }
    }

    /// Adds a setting.
    #[must_use]
    pub fn set(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Whether it asks the system to pass its memory of files.
    pub fn is_direct(&self) -> bool {
        self.name.contains("O_DIRECT")
    }

    /// Says whether it can run.
    #[must_use]
    pub fn available(mut self, availability: Availability) -> Self {
        self.availability = availability;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_can_not_run_and_what_is_wrong_stops_the_lab() {
        let io = LabError::Io {
            action: "waiting for sshd".into(),
            source: std::io::ErrorKind::TimedOut.into(),
        };
        let program = LabError::Program {
            command: "mount".into(),
            what: "permission\ndenied".into(),
        };
        for (failure, why) in [(io, "waiting for sshd"), (program, "permission denied")] {
            match Availability::from_failure(failure).unwrap() {
                Availability::CannotRun { why: said, .. } => assert!(said.contains(why), "{said}"),
                Availability::Runs => panic!("it failed"),
            }
        }
        let data = LabError::Data {
            file: "faulty".into(),
            what: "plaintext goes over the wire".into(),
        };
        let cipher = LabError::Cipher {
            contender: "faulty".into(),
            what: "a chunk does not open".into(),
        };
        let disagree = LabError::Disagree {
            contender: "faulty".into(),
            case: "a vector".into(),
            expected: "00".into(),
            found: "01".into(),
        };
        for wrong in [data, cipher, disagree, LabError::Tag] {
            Availability::from_failure(wrong).unwrap_err();
        }
    }
}
