//! The ways to write and read a file in pieces.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, Result};
use crate::file::pieces::UNDER_WAY;

/// How a file is written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::file) struct Way {
    pub(super) encrypts: bool,
    direct: bool,
    pub(super) ring: bool,
}

const fn way(encrypts: bool, direct: bool, ring: bool) -> Way {
    Way {
        encrypts,
        direct,
        ring,
    }
}

impl Way {
    /// All that are not a plain file's.
    pub(in crate::file) const ALL: [Self; 6] = [
        way(false, true, false),
        way(false, false, true),
        way(true, false, false),
        way(true, true, false),
        way(true, false, true),
        way(true, true, true),
    ];

    pub(in crate::file) fn contender(self) -> Contender {
        let mut name = if self.encrypts {
            "AES in the program".to_owned()
        } else {
            "none".to_owned()
        };
        for (used, word) in [(self.ring, "io_uring"), (self.direct, "O_DIRECT")] {
            if used {
                name = format!("{name}, {word}");
            }
        }
        let (placement, runs_on) = if self.encrypts {
            (Placement::User, "AES-128-CTR by OpenSSL")
        } else {
            (Placement::None, "a file in a folder")
        };
        let mut contender = Contender::new(name, placement, runs_on).set("pieces of 1 MiB");
        if self.encrypts {
            contender = contender.set("not authenticated");
        }
        if self.ring {
            contender = contender
                .set(format!("tokio-uring, {UNDER_WAY} pieces under way"))
                .available(ring_availability());
        }
        contender
    }

    pub(super) fn open(self, options: &mut OpenOptions, path: &Path) -> Result<File> {
        if self.direct {
            options.custom_flags(libc::O_DIRECT);
        }
        let opened = options.open(path);
        opened.doing(|| format!("opening {}{}", path.display(), self.flag()))
    }

    pub(super) fn flag(self) -> &'static str {
        if self.direct { " with O_DIRECT" } else { "" }
    }
}

/// Whether this kernel has it for programs.
fn ring_availability() -> Availability {
    match tokio_uring::Runtime::new(&tokio_uring::builder()) {
        Ok(_) => Availability::Runs,
        Err(error) => Availability::cannot(
            format!("io_uring can’t be set up here: {error}"),
            "a kernel with CONFIG_IO_URING, and kernel.io_uring_disabled at 0; a container may \
             forbid it",
        ),
    }
}
