//! What opens a root-key source, from the operator who starts the program: a passphrase, or a
//! token's PIN.
//!
//! Never from an argument or an environment variable, which others can read. In this order: the
//! file descriptor that `--passphrase-fd` names, a credential of systemd (`LoadCredential=` puts
//! it into `$CREDENTIALS_DIRECTORY`), the terminal.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::limits::{PASSPHRASE_MAX_BYTES, PASSPHRASE_MIN_BYTES};

/// The credential of systemd that the passphrase is in.
const PASSPHRASE_CREDENTIAL: &str = "coffer-passphrase";

/// The credential of systemd that a token's PIN is in.
const PIN_CREDENTIAL: &str = "coffer-pin";

/// Options of every command that may need a passphrase.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PassphraseArgs {
    /// Read the passphrase of the root key from this file descriptor: its first line
    #[arg(long, value_name = "N", global = true)]
    pub passphrase_fd: Option<u32>,
}

/// What a passphrase is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It opens what there is.
    Open,
    /// It will open what is made now: at a terminal it is asked for twice, and a short one is
    /// refused.
    Choose,
}

impl PassphraseArgs {
    /// The passphrase of a root-key source.
    ///
    /// # Errors
    /// When none is given, or an empty or unusable one.
    pub fn passphrase(&self, purpose: Purpose) -> Result<Zeroizing<Vec<u8>>, Error> {
        Input::of_program().passphrase(self.passphrase_fd, purpose)
    }
}

/// The PIN of a token, for a source that names no file for it.
///
/// # Errors
/// When none is given, or one that is no text.
pub fn pin() -> Result<Zeroizing<String>, Error> {
    Input::of_program().pin()
}

/// Where secrets come from, beside descriptors.
struct Input {
    credentials: Option<PathBuf>,
    ask: fn(&str) -> io::Result<String>,
}

impl Input {
    fn of_program() -> Self {
        Self {
            credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            ask: |prompt| rpassword::prompt_password(prompt),
        }
    }

    fn passphrase(
        &self,
        descriptor: Option<u32>,
        purpose: Purpose,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        const OPTION: &str = "--passphrase-fd";
        let passphrase = if let Some(number) = descriptor {
            descriptor_of(number)
                .and_then(first_line)
                .map_err(|error| not_readable(OPTION, number, &error))?
        } else if let Some(path) = self.credential(PASSPHRASE_CREDENTIAL) {
            File::open(&path)
                .and_then(first_line)
                .map_err(|error| refused(PASSPHRASE_CREDENTIAL, &error))?
        } else {
            self.ask_passphrase(purpose)?
        };
        check_length(passphrase.len(), purpose)?;
        Ok(passphrase)
    }

    fn ask_passphrase(&self, purpose: Purpose) -> Result<Zeroizing<Vec<u8>>, Error> {
        const NAME: &str = "passphrase";
        let prompt = match purpose {
            Purpose::Open => "Passphrase of the root key: ",
            Purpose::Choose => "New passphrase of the root key: ",
        };
        let given = self.ask(NAME, prompt)?;
        // Before it is typed again in vain.
        check_length(given.len(), purpose)?;
        if purpose == Purpose::Choose && given != self.ask(NAME, "The same again: ")? {
            return Err(Error::Option {
                option: NAME,
                problem: "the two are not the same; nothing was changed".to_owned(),
            });
        }
        Ok(Zeroizing::new(given.as_bytes().to_vec()))
    }

    fn pin(&self) -> Result<Zeroizing<String>, Error> {
        let Some(path) = self.credential(PIN_CREDENTIAL) else {
            return self.ask("PIN", "PIN of the token: ");
        };
        let line = File::open(&path)
            .and_then(first_line)
            .map_err(|error| refused(PIN_CREDENTIAL, &error))?;
        let text = std::str::from_utf8(&line).map_err(|_| Error::Option {
            option: PIN_CREDENTIAL,
            problem: "it is not text".to_owned(),
        })?;
        Ok(Zeroizing::new(text.to_owned()))
    }

    fn credential(&self, name: &str) -> Option<PathBuf> {
        let path = self.credentials.as_ref()?.join(name);
        path.exists().then_some(path)
    }

    fn ask(&self, option: &'static str, prompt: &str) -> Result<Zeroizing<String>, Error> {
        (self.ask)(prompt)
            .map(Zeroizing::new)
            .map_err(|error| Error::Option {
                option,
                problem: format!(
                    "there is no terminal to ask at ({error}): use --passphrase-fd N, or \
                     LoadCredential={PASSPHRASE_CREDENTIAL}:/PATH (a PIN: {PIN_CREDENTIAL}) in \
                     the systemd unit"
                ),
            })
    }
}

/// Refuses a passphrase of so many bytes: an empty one, or a short one that is chosen now.
fn check_length(length: usize, purpose: Purpose) -> Result<(), Error> {
    let problem = match length {
        0 => "the passphrase is empty".to_owned(),
        _ if purpose == Purpose::Choose && length < PASSPHRASE_MIN_BYTES => format!(
            "a passphrase has at least {PASSPHRASE_MIN_BYTES} characters, better six random \
             words: one who has a copy of the data folder may try as many as they like"
        ),
        _ => return Ok(()),
    };
    Err(Error::Option {
        option: "passphrase",
        problem,
    })
}

/// What an inherited descriptor refers to, also one that another user made.
fn descriptor_of(number: u32) -> io::Result<File> {
    // Only the kernel knows whether the descriptor is open, so it is asked for a copy of it.
    let copy = pidfd_open(getpid(), PidfdFlags::empty())
        .and_then(|this| pidfd_getfd(this, number as i32, PidfdGetfdFlags::empty()));
    match copy {
        Ok(copy) => Ok(copy.into()),
        // Where that may not be asked, as in some containers: what it refers to, opened anew. A
        // pipe that another user made can't be.
        Err(_) => File::open(format!("/dev/fd/{number}")),
    }
}

/// What is to be read, up to its first line end.
fn first_line(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // Enough from the beginning, so that no outgrown buffer is given back unzeroized.
    let mut line = Zeroizing::new(vec![0; PASSPHRASE_MAX_BYTES + 2]);
    let mut filled_bytes = 0;
    let mut rest = file.take(line.len() as u64);
    loop {
        match rest.read(&mut line[filled_bytes..])? {
            0 => break,
            read_bytes => filled_bytes += read_bytes,
        }
        // Who types it, or goes on writing, is not to be waited for.
        if line[..filled_bytes].contains(&b'\n') {
            break;
        }
    }
    line.truncate(filled_bytes);
    let end = line.iter().position(|byte| *byte == b'\n');
    line.truncate(end.unwrap_or(filled_bytes));
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    if line.len() > PASSPHRASE_MAX_BYTES {
        let problem = format!("the first line is longer than {PASSPHRASE_MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(line)
}

fn refused(option: &'static str, error: &io::Error) -> Error {
    Error::Option {
        option,
        problem: format!("it could not be read: {error}"),
    }
}

fn not_readable(option: &'static str, number: u32, error: &io::Error) -> Error {
    // One that was not open may be the program's own by now, and has nothing to read.
    let why = match error.kind() {
        io::ErrorKind::WouldBlock => "there is nothing to read".to_owned(),
        _ => error.to_string(),
    };
    let problem = format!("descriptor {number} can't be read ({why}): open it, as {number}< FILE");
    Error::Option { option, problem }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Seek, SeekFrom, Write};
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use super::*;

    const NO_TERMINAL: fn(&str) -> io::Result<String> = |_| Err(io::Error::other("no tty"));

    fn input(credentials: Option<&Path>, ask: fn(&str) -> io::Result<String>) -> Input {
        Input {
            credentials: credentials.map(Path::to_path_buf),
            ask,
        }
    }

    fn given(input: &Input, purpose: Purpose) -> Result<String, String> {
        let given = input.passphrase(None, purpose);
        given
            .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_descriptor_comes_first_and_gives_one_line() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"six random words\r\nand more").unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let number = u32::try_from(file.as_raw_fd()).unwrap();
        let read = input(None, NO_TERMINAL).passphrase(Some(number), Purpose::Open);
        assert_eq!(read.unwrap().as_slice(), b"six random words");
        let closed = input(None, NO_TERMINAL).passphrase(Some(9_999), Purpose::Open);
        let error = closed.unwrap_err().to_string();
        assert!(error.contains("--passphrase-fd"), "{error}");
        assert!(error.contains("open it, as 9999< FILE"), "{error}");
        let own = not_readable("--passphrase-fd", 7, &io::ErrorKind::WouldBlock.into());
        assert!(
            own.to_string()
                .contains("descriptor 7 can't be read (there is nothing")
        );
    }

    #[test]
    fn a_pipe_is_read_up_to_its_line_end_and_not_waited_for() {
        let (reading, mut writing) = io::pipe().unwrap();
        writing.write_all(b"six random words\n").unwrap();
        let number = u32::try_from(reading.as_raw_fd()).unwrap();
        let read = input(None, NO_TERMINAL).passphrase(Some(number), Purpose::Open);
        assert_eq!(read.unwrap().as_slice(), b"six random words");
        drop(writing);
    }

    #[test]
    fn a_credential_comes_before_the_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let asked = input(Some(folder.path()), |_| Ok("from the terminal".to_owned()));
        assert_eq!(given(&asked, Purpose::Open).unwrap(), "from the terminal");
        fs::write(folder.path().join("coffer-passphrase"), "from systemd\n").unwrap();
        fs::write(folder.path().join("coffer-pin"), "648219\n").unwrap();
        assert_eq!(given(&asked, Purpose::Open).unwrap(), "from systemd");
        assert_eq!(asked.pin().unwrap().as_str(), "648219");
    }

    #[test]
    fn a_new_one_is_asked_for_twice_and_must_not_be_short() {
        let same = input(None, |_| Ok("long enough".to_owned()));
        assert_eq!(given(&same, Purpose::Choose).unwrap(), "long enough");
        let differs = input(None, |prompt| Ok(prompt.to_owned()));
        let error = given(&differs, Purpose::Choose).unwrap_err();
        assert!(error.contains("not the same"), "{error}");
        assert!(given(&differs, Purpose::Open).is_ok());
        let short = input(None, |prompt| match prompt {
            "The same again: " => panic!("it is too short already"),
            _ => Ok("short".to_owned()),
        });
        let error = given(&short, Purpose::Choose).unwrap_err();
        assert!(error.contains("at least 8"), "{error}");
        assert_eq!(given(&short, Purpose::Open).unwrap(), "short");
        let empty = input(None, |_| Ok(String::new()));
        assert!(given(&empty, Purpose::Open).is_err());
    }

    #[test]
    fn without_any_of_them_the_error_says_what_to_do() {
        let error = given(&input(None, NO_TERMINAL), Purpose::Open).unwrap_err();
        assert!(error.contains("--passphrase-fd"), "{error}");
        assert!(error.contains("LoadCredential"), "{error}");
    }

    #[test]
    fn a_line_too_long_is_refused_rather_than_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        fs::write(&path, vec![b'x'; PASSPHRASE_MAX_BYTES]).unwrap();
        let line = || first_line(File::open(&path).unwrap());
        assert_eq!(line().unwrap().len(), PASSPHRASE_MAX_BYTES);
        fs::write(&path, vec![b'x'; PASSPHRASE_MAX_BYTES + 1]).unwrap();
        assert!(line().is_err());
    }
}
