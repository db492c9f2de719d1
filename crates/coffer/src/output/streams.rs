//! Standard streams that can't be used. Rust's library takes one that is open the wrong way for
//! `/dev/null`, and opens that, to read and to write, where one was closed: all in silence.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, major, minor};

use crate::error::Error;

/// Sees whether standard input can be read, and was not closed when the program began.
///
/// # Errors
/// [`Error::Option`], also for a `/dev/null` that was opened to be written as well: it can't be
/// told from one that took the place of a closed input.
pub(crate) fn check_input(input: impl AsFd) -> Result<(), Error> {
    let refused = |problem: &str| Error::Option {
        option: "-",
        problem: problem.to_owned(),
    };
    match access(&input)? {
        OFlags::WRONLY => Err(refused("standard input is open to be written only")),
        OFlags::RDWR if is_null(&input)? => Err(refused(
            "standard input is closed, or none is attached (`docker run -i` attaches one); to \
             store an empty object, write `- </dev/null`",
        )),
        _ => Ok(()),
    }
}

/// Sees whether standard output can be written. One that was closed can't be told from a
/// `/dev/null` that programs give to those that they start, so that passes.
///
/// # Errors
/// [`Error::System`].
pub(crate) fn check_output(output: impl AsFd) -> Result<(), Error> {
    if access(&output)? == OFlags::RDONLY {
        return Err(Error::System {
            doing: "writing to standard output",
            source: io::Error::other("it is open to be read only"),
        });
    }
    Ok(())
}

fn access(stream: &impl AsFd) -> Result<OFlags, Error> {
    let flags = fcntl_getfl(stream).map_err(looking)?;
    Ok(flags & OFlags::RWMODE)
}

/// Whether it is `/dev/null`, which has these numbers (Linux, admin-guide/devices.txt).
fn is_null(stream: &impl AsFd) -> Result<bool, Error> {
    let there = fstat(stream).map_err(looking)?;
    let is_device = FileType::from_raw_mode(there.st_mode) == FileType::CharacterDevice;
    Ok(is_device && (major(there.st_rdev), minor(there.st_rdev)) == (1, 3))
}

fn looking(error: rustix::io::Errno) -> Error {
    Error::System {
        doing: "looking at a standard stream",
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn streams_that_are_closed_or_open_the_wrong_way() {
        let null = |read, write| {
            let mut options = OpenOptions::new();
            options.read(read).write(write).open("/dev/null").unwrap()
        };
        check_input(null(true, false)).unwrap();
        check_input(io::pipe().unwrap().0).unwrap();
        let told = check_input(null(true, true)).unwrap_err().to_string();
        assert!(told.contains("standard input is closed"), "{told}");
        check_input(null(false, true)).unwrap_err();
        check_output(null(false, true)).unwrap();
        check_output(null(true, true)).unwrap();
        check_output(null(true, false)).unwrap_err();
        let file = tempfile::NamedTempFile::new().unwrap();
        check_input(file.as_file()).unwrap();
    }
}
