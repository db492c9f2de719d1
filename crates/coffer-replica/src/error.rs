//! What can go wrong with copies.

use std::io::ErrorKind;

use crate::names::CopyId;

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, ReplicaError>;

/// What went wrong with a copy.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The URL names no place that copies can be made in.
    #[error("{url} is no place for a copy: {problem}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong, and what is right.
        problem: String,
    },
    /// The store failed, or can't be reached.
    #[error("the store of the copy failed: {}", told_of(.0))]
    Store(#[source] Box<object_store::Error>),
    /// The store lets two create the same object.
    #[error(
        "this store has no conditional creation: it let an object be created twice, so two servers \
         could write one copy and neither would know. Choose another store"
    )]
    NoConditions,
    /// The store replaces objects whatever they have become, or never on a condition.
    #[error(
        "this store can't hold an engine: {problem}. It takes a store that replaces an object only \
         if it is still the one that was read (`If-Match`); for copies this one may do"
    )]
    NoSwap {
        /// What it did.
        problem: &'static str,
    },
    /// Something is there already.
    #[error("there is a copy in this place already: choose another URL, or remove what is there")]
    Occupied,
    /// No copy is there.
    #[error(
        "there is no copy in this place: it holds no copy.json. Is the URL right, and where it is \
         a folder, is its disk mounted?"
    )]
    NoCopy,
    /// What the copy says of itself is not there, and its heads are.
    #[error(
        "copy.json is missing in this place, and there are heads of a copy: its store lost or \
         removed it. A server that keeps that copy up, or a gateway that serves or follows, puts \
         it there again; where none runs that knows it, put back what was there"
    )]
    RecordLost,
    /// Nothing is there any more of the log of an engine.
    #[error(
        "the engine's log was not in its store when this gateway looked: it held no head. This \
         gateway serves no more, and follows when the log is there again"
    )]
    LogGone,
    /// What the copy says of itself can't be read.
    #[error(
        "copy.json in this place says nothing that a copy says of itself: it was altered in its \
         store. A server that keeps that copy up, or a gateway that serves or follows, puts it \
         right; where none runs that knows it, put back what was there"
    )]
    RecordUnreadable,
    /// What lies in the copy's place says that it is another.
    #[error(
        "copy.json in this place is of copy {found}, and not of {own}: another one was begun \
         there, or it was altered in its store. Nothing is read or written there any more, and \
         nothing is removed. If no other is to be there, put back what was there, or remove \
         copy.json alone, and start again what keeps that copy up, which puts it there; if another \
         is, take another URL for this one, and for a gateway another folder, too"
    )]
    OtherCopy {
        /// The id that it says.
        found: CopyId,
        /// The id of the copy that was looked for.
        own: CopyId,
    },
    /// Nothing opens by the id that it says.
    #[error(
        "copy.json in this place says that the copy is {found}, and none of its newest and oldest \
         heads opens by that, {newest} among them: copy.json was altered in its store, or \
         another's was put there, or all these heads were altered. Put back the copy.json that was \
         there; or remove it alone, and have the server or gateway that keeps the copy up put it \
         there again"
    )]
    OtherId {
        /// The id that it says.
        found: CopyId,
        /// The name of its newest head in the store.
        newest: String,
    },
    /// It says of this copy that its server has another keystore.
    #[error(
        "copy.json of the copy says that its keystore is {found}, and it is {own}: it was altered \
         in its store. Remove it: who keeps the copy up puts it there again"
    )]
    OtherKeystore {
        /// The id that it says.
        found: String,
        /// The id that is right.
        own: String,
    },
    /// No head is there.
    #[error(
        "the copy has no heads: either nothing was ever put there, or its store lost all of them, \
         and nothing tells what it held"
    )]
    NoHeads,
    /// A format of a later version.
    #[error("the copy has format {found}, and this version knows {known}: use a newer coffer")]
    NewerFormat {
        /// What was found.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// It was made by another server.
    #[error("the copy is of another server: its keystore is {found}")]
    ForeignCopy {
        /// The keystore's id.
        found: String,
    },
    /// Something is not there that a head or a segment names.
    #[error("the copy lacks {object}, which is named in it: the store lost or removed it")]
    Missing {
        /// Its name in the store.
        object: String,
    },
    /// Something is not what was written.
    #[error("{object} of the copy is not what was written there: {problem}")]
    Altered {
        /// Its name in the store.
        object: String,
        /// What shows it.
        problem: &'static str,
    },
    /// The newest keystore is withheld.
    #[error(
        "the store shows keystore {found} as the newest, and the newest head of the copy names \
         {named}: the store lost or withholds it, and the older one may hold keys that were \
         destroyed since"
    )]
    OldKeystore {
        /// The generation of what is there.
        found: u64,
        /// The generation that the head names.
        named: u64,
    },
    /// The store was put back, or its newest heads removed.
    #[error(
        "the copy was put back, or lost its newest part: its newest head is {found}, and head \
         {known} had been written. Look whether the URL is right, and whether its store was \
         restored or withholds what is newer, and have the newest there again. To go on from what \
         is there on purpose: `coffer restore` takes it where `--head` is left out or names an \
         earlier head, and what is later is lost; a server writes there no more, so `coffer \
         replica remove` the copy and add one elsewhere"
    )]
    RolledBack {
        /// The newest that is there.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// What had been written last was lost, and another wrote on in its place.
    #[error("number {number} of the log was lost in its store, and another was written there")]
    Replaced {
        /// Which.
        number: u64,
    },
    /// There is no state of that moment, or none any more.
    #[error(
        "the copy has nothing of that moment: it was complete for the first time as of {first}, \
         and keeps {kept} of what was before; its newest state is as of {newest}"
    )]
    TooEarly {
        /// As of when it was complete for the first time: RFC 3339.
        first: String,
        /// How long it keeps what was.
        kept: String,
        /// As of when the newest head is: RFC 3339.
        newest: String,
    },
    /// What has this number is out of the window, or holds nothing.
    #[error("head {number} can't be restored: {why}. The copy keeps heads {first} to {newest} now")]
    NotKept {
        /// The number that was asked for.
        number: u64,
        /// Why not.
        why: &'static str,
        /// The lowest that is there.
        first: u64,
        /// The newest.
        newest: u64,
    },
    /// Of which moment what it has is can't be told, and what was before for certain is gone.
    #[error(
        "which state of the copy is of that moment can't be told: the clock of who wrote it was \
         put back from {to} to {from}, and no state that was before for certain is kept. By the \
         clock after that it is head {head}, written at {written}: `--at-head {head}` restores it"
    )]
    WrongClock {
        /// To when the clock was put back: RFC 3339.
        from: String,
        /// From when: RFC 3339.
        to: String,
        /// What was written at that moment, or last before it, by the clock that was put back.
        head: u64,
        /// When that was: RFC 3339.
        written: String,
    },
    /// The heads of that moment are damaged.
    #[error(
        "the copy has nothing of that moment that opens: heads {first} to {last} were altered. \
         What opens is as of {from} and later, up to {newest}"
    )]
    Unreadable {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
        /// As of when the one after them is: RFC 3339.
        from: String,
        /// As of when the newest head is: RFC 3339.
        newest: String,
    },
    /// Another server writes this copy.
    #[error(
        "another server writes this copy, as one does that was a standby of it and was promoted: \
         it wrote head {number}. This one writes there no more; one copy is for one server"
    )]
    Fenced {
        /// The head that shows it.
        number: u64,
    },
    /// The same, as a keystore shows.
    #[error(
        "another server writes this copy, as one does that was a standby of it and was promoted: \
         {object} is a keystore of epoch {epoch}, and this server's are of epoch {own}. This one \
         writes there no more; one copy is for one server. Where no other writes there, that \
         object was put there by hand: remove it, and start this server again"
    )]
    FencedByKeystore {
        /// Where it is in the store.
        object: String,
        /// Its epoch.
        epoch: u32,
        /// The epoch of what this server writes.
        own: u32,
    },
    /// A standby that followed this copy serves in the server's place.
    #[error(
        "a standby that followed this copy was promoted by head {number}, and serves in place of \
         the server that wrote it: nothing is copied there any more. Stop that server, so that \
         clients go to the promoted one; where it is to go on by itself, begin a copy elsewhere"
    )]
    Promoted {
        /// The head that shows it.
        number: u64,
    },
    /// Gateways of an engine serve in the server's place.
    #[error(
        "this copy is the log of an engine, as its head {number} says: gateways serve in place of \
         the server that wrote it, and nothing of that server is copied there any more. Stop it \
         for good; if it is to go on by itself, begin a copy elsewhere"
    )]
    OfEngine {
        /// The head that shows it.
        number: u64,
    },
    /// What was to be copied changed its length meanwhile, or can't be read.
    #[error("a file could not be read: {0}")]
    File(#[from] std::io::Error),
    /// The store did otherwise than it was asked, or than it said: what became of it is not known.
    #[error("{0}")]
    NotDone(&'static str),
    /// The store took too long.
    #[error("the store did not answer within {seconds} seconds")]
    NoAnswer {
        /// How long it was waited for.
        seconds: u64,
    },
    /// More than the format allows.
    #[error("{what} is larger than a copy can hold")]
    TooLarge {
        /// What is.
        what: &'static str,
    },
}

/// A list of a store that has more, or goes on longer, than any of a copy.
#[derive(Debug, thiserror::Error)]
#[error("the store lists more in {folder} than was ever written")]
pub(crate) struct Endless {
    pub(crate) folder: String,
}

impl ReplicaError {
    /// Of a list that has no end.
    pub(crate) fn endless(folder: &impl ToString) -> Self {
        Self::Altered {
            object: folder.to_string(),
            problem: "the store lists more in it than was ever written",
        }
    }

    /// Whether it may pass by itself.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Store(_) | Self::File(_) | Self::NotDone(_) | Self::NoAnswer { .. }
        )
    }

    /// Whether the store has no room for what was to be put there.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(error) if says_full(error))
    }
}

/// What servers answer that have no room: the status of HTTP for it, and codes of S3.
const FULL: [&str; 4] = [
    "507 Insufficient Storage",
    "<Code>StorageFull</Code>",
    "<Code>XMinioStorageFull</Code>",
    "<Code>QuotaExceeded</Code>",
];

fn says_full(error: &object_store::Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let of_disk = cause.downcast_ref::<std::io::Error>();
        if of_disk.is_some_and(|error| kinds.contains(&error.kind())) {
            return true;
        }
        next = cause.source();
    }
    let text = error.to_string();
    FULL.iter().any(|said| text.contains(said))
}

/// What it says, and what stands at the bottom of its causes, which is why; where it is that TLS
/// does not trust the store, also what to do.
fn told_of(error: &object_store::Error) -> String {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    let mut text = String::new();
    while let Some(cause) = next {
        text = cause.to_string();
        if let Some((_, why)) = text.split_once("invalid peer certificate: ") {
            return format!(
                "its certificate is not trusted ({why}): name a file with the certificate of its \
                 authority in the URL, by `?ca=FILE`, or `&ca=FILE` where a `?` is there already"
            );
        }
        next = cause.source();
    }
    let told = match error {
        // Before it stands what the kind of store is called in a library.
        object_store::Error::Generic { source, .. } => source.to_string(),
        error => error.to_string(),
    };
    let told = if told.contains(&text) {
        told
    } else {
        format!("{told}: {text}")
    };
    missing_bucket(&told).unwrap_or(told)
}

/// What is told of a bucket that the store does not have: in the library's words stands the URL
/// that was asked for, and the answer with the bucket's name.
fn missing_bucket(told: &str) -> Option<String> {
    if !told.contains("<Code>NoSuchBucket</Code>") {
        return None;
    }
    let url = &told[told.find("http")?..];
    let (scheme, rest) = url.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    let named = told.split_once("<BucketName>");
    let named = named.and_then(|(_, rest)| Some(rest.split_once("</BucketName>")?.0));
    let bucket = named.or_else(|| path.split(['/', '?', ' ']).next())?;
    Some(format!(
        "there is no bucket {bucket} at {scheme}://{host}: make it there, or correct the URL"
    ))
}

impl From<object_store::Error> for ReplicaError {
    fn from(error: object_store::Error) -> Self {
        if let object_store::Error::Generic { source, .. } = &error
            && let Some(Endless { folder }) = source.downcast_ref()
        {
            return Self::endless(folder);
        }
        Self::Store(Box::new(error))
    }
}
