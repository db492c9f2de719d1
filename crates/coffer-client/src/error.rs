//! What can go wrong between a client and its server. A message is one line: what happened, and
//! what to do.

use std::io;
use std::path::PathBuf;

/// Why a server could not be asked, or did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server answers on the data folder's socket.
    #[error(
        "no server runs on {data} ({source}); start one with `coffer serve --data {data}`, \
         or name another folder with --data",
        data = data.display()
    )]
    NoServer {
        /// The data folder.
        data: PathBuf,
        /// Why the socket could not be reached.
        source: io::Error,
    },
    /// The data folder's socket is another user's.
    #[error(
        "the server on {data} cannot be asked: permission denied; \
         run this as root or as the user that the server runs as",
        data = data.display()
    )]
    NotOwner {
        /// The data folder.
        data: PathBuf,
    },
    /// That is no address of a server.
    #[error("--endpoint: write an address such as https://coffer.example.org:9001")]
    NoAddress,
    /// There is no address of an S3 service, or what was given is none.
    #[error("{option}: {problem}")]
    Endpoint {
        /// What gave it.
        option: &'static str,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// A file with an access key, or the environment, does not say what it should.
    #[error("{place}: {problem}")]
    Credentials {
        /// Where the access key was looked for.
        place: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A header can't be sent.
    #[error(
        "the header {name} can't be sent: its value has a line break or another control character"
    )]
    Header {
        /// Its name.
        name: String,
    },
    /// The certificates of the authority to be trusted could not be used.
    #[error(
        "{path}: {problem}; \
         give the server's certificate authority with {option}, such as DATA/tls/ca.pem",
        path = path.display()
    )]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What names one.
        option: &'static str,
    },
    /// A server could not be reached over the network.
    #[error("{endpoint} cannot be reached: {problem}")]
    Unreachable {
        /// Where it should be.
        endpoint: String,
        /// Why not.
        problem: String,
        /// Whether it may pass: nothing listens there, as where a server starts, or the network
        /// reset the connection.
        may_pass: bool,
    },
    /// A server answered, but not in this version's language.
    #[error("the server on {place} {problem}; is it of the same version as this program?")]
    Answer {
        /// Data folder or endpoint.
        place: String,
        /// What it did.
        problem: String,
    },
    /// A server closed the connection before its answer was whole.
    #[error(
        "the server on {place} closed the connection before it had answered, as one does that is \
         stopped or killed. {}",
        told_after(*.may_be_done)
    )]
    BrokenOff {
        /// Data folder or endpoint.
        place: String,
        /// Whether what was asked for changes something, and may have.
        may_be_done: bool,
    },
    /// The server said no.
    #[error("{message}")]
    Refused {
        /// For programs: a word that stays the same.
        code: String,
        /// The server's words.
        message: String,
    },
}

/// What is so after an answer that broke off, and what to do.
fn told_after(may_be_done: bool) -> &'static str {
    if may_be_done {
        "Whether what was asked for was done is in doubt. When the server runs again, `coffer \
         audit show` tells whether it was begun and how it ended, and lists show what is there \
         now; an erase that was ordered is completed by the next start, and `coffer receipt list` \
         has it"
    } else {
        "What came of the answer is not all of it: ask again when the server runs"
    }
}

/// The option that names an S3 service.
pub(crate) const ENDPOINT_BY: &str = "--endpoint";

impl ClientError {
    /// The same, where the address may be the source of a migration, which another argument names.
    pub(crate) fn of_source(mut self, is_source: bool) -> Self {
        if let Self::Endpoint { option, .. } = &mut self
            && is_source
        {
            *option = "SOURCE";
        }
        self
    }
}
