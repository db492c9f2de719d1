//! What can go wrong with sealed copies.

use coffer_replica::ReplicaError;

/// Why a sealed copy was not made, changed or restored.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// None of this name.
    #[error("there is no copy {name:?}: `coffer replica list` shows them")]
    NoSuchCopy {
        /// The name.
        name: String,
    },
    /// One of this name.
    #[error("there is a copy {name:?} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// No name for a copy.
    #[error("{name:?} is no name for a copy: 1 to 63 of a to z, 0 to 9 and -, not first")]
    Name {
        /// What was given.
        name: String,
    },
    /// As many as there may be.
    #[error("there are {max} copies already, and no more can be made at once")]
    TooMany {
        /// How many there may be.
        max: usize,
    },
    /// A keystore is to go along to where what is removed is kept.
    #[error(
        "the store keeps versions of what is removed in the bucket or container of {url}: older \
         keystores would stay there, and open what an erase has destroyed. Turn versioning off \
         there, or choose another bucket for a copy with the keystore in it; no copy was made"
    )]
    KeepsVersions {
        /// Where it is.
        url: String,
    },
    /// What the server knows of copies can't be read.
    #[error(
        "the file `copies` in the data folder does not open: which copies there are is not known. \
         Move it away, and add them again under other URLs"
    )]
    Registry,
    /// Where data is to be restored to.
    #[error("{path} can't be restored into: {problem}")]
    Target {
        /// The folder.
        path: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// What is to be the cache of a gateway.
    #[error("{path} can't be the folder of a gateway: {problem}")]
    Cache {
        /// The folder.
        path: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// What is to be served is something else than what was asked for.
    #[error("{path} can't be served so: {problem}")]
    Served {
        /// The folder.
        path: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A bucket that is to be restored is not in the copy.
    #[error("the copy has no bucket {name:?} as of {as_of}: give a name of that time, or an id")]
    NoSuchBucket {
        /// As it was given.
        name: String,
        /// As of when: RFC 3339.
        as_of: String,
    },
    /// The keystore in the copy is for recipients of age.
    #[error(
        "the keystore in this copy is sealed for recipients of age: name the file of an identity, \
         --identity FILE, or of an engine that has a passphrase or a token in its place, \
         --root-key SOURCE; or put a `keystore` and what opens it into the folder"
    )]
    IdentityMissing,
    /// A standby takes an identity alone.
    #[error(
        "the keystore in this copy is sealed for recipients of age: following it takes the file of \
         an identity, --identity FILE, whatever --root-key says. The identity of an engine that \
         has a passphrase lies in its store, in the object `identity`: `age --decrypt` opens that"
    )]
    FollowingIdentityMissing,
    /// A copy without a keystore can't be followed.
    #[error(
        "this copy holds no keystore, so it can't be followed: make one with `coffer replica add \
         --with-keystore --recipient RECIPIENT`"
    )]
    NoKeystore,
    /// The same of an engine's log, whose store lost it.
    #[error(
        "the engine's store holds its log, and no keystore, without which nothing of it opens: \
         the store lost the object below `keystores/`. Put it back there, under the name that it \
         had. If that can't be had, keep the folders of all gateways as they are: each holds a \
         keystore of its own, by which `coffer offline` reads what else is there"
    )]
    EngineKeystoreLost,
    /// An engine's log lacks what this gateway had read there, or written.
    #[error(
        "ROLLBACK: the engine's store lost the newest part of its log, withholds it, or was put \
         back: number {number} of the log, which this gateway had written or read there, is gone, \
         or another was written in its place. This gateway answers nothing by such a log. Copy its \
         folder first, which may be all that has what is missing; look whether the URL is right, \
         and have the newest in the store again. To go on with what is there on purpose, without \
         what was acknowledged since, start this gateway again"
    )]
    EngineRolledBack {
        /// The newest that is known.
        number: u64,
    },
    /// The keystore in the copy is for other recipients.
    #[error(
        "the keystore in this copy does not open with the identity that was given: it is sealed \
         for other recipients, or was altered in its store. Name the file of the identity whose \
         recipient the copy was made with"
    )]
    OtherIdentity,
    /// The newest keystore in the copy's place is not of the server that is followed.
    #[error(
        "{object} in the copy's place is not of the server that this one follows: it was altered \
         or put there by another. Nothing of it is taken, and what was served is served on. \
         Remove that object from the store; to follow another server, take an empty folder"
    )]
    ForeignKeystore {
        /// Its name in the store.
        object: String,
    },
    /// The server follows no copy.
    #[error("this server is no standby: it was not started with --follow, or was promoted since")]
    NoStandby,
    /// Another standby of the copy was promoted.
    #[error(
        "another standby of this copy was promoted by head {number}, and serves in the original's \
         place: this one is not promoted, for each would take writes that the other has not. \
         Follow a copy of that one; if it is lost for good, `coffer standby promote --without-copy`"
    )]
    OtherPromoted {
        /// The head that shows it.
        number: u64,
    },
    /// A promotion found no room for what the copy has.
    #[error(
        "the disk that {path} is on is full, and the standby is not promoted: make room there, and \
         ask again. {}",
        if *is_original_ended {
            "The copy already says that it takes the original's place, which writes the copy no \
             more, and changes nothing where it is fenced by it"
        } else {
            "The original goes on as it was"
        }
    )]
    NoRoomToPromote {
        /// The folder.
        path: String,
        /// Whether the copy has ended the original's turn.
        is_original_ended: bool,
    },
    /// The original was faster each time.
    #[error(
        "the standby is not promoted: the original lives, and wrote the copy each time just before \
         this one could end its turn. Ask again, or stop the original first"
    )]
    OriginalWrites,
    /// Its target was not reached yet, or not in time.
    #[error("the copy was not reached in time, or not since the server started")]
    NotReached,
    /// A write is stored here, and its synchronous copy did not take it in time.
    #[error(
        "it is stored here and not yet in the synchronous copy {name:?}, which did not take it \
         within {seconds} s: whether it would survive the loss of this machine is in doubt. It is \
         not undone, and goes there as soon as the copy is reached: `coffer replica status` tells \
         how it stands"
    )]
    NotYet {
        /// The copy.
        name: String,
        /// How long it waited.
        seconds: f64,
    },
    /// A write is stored here, and its synchronous copy takes nothing any more.
    #[error(
        "it is stored here and not in the synchronous copy {name:?}, which was given up meanwhile: \
         whether it would survive the loss of this machine is in doubt. `coffer replica status` \
         tells why; until that copy is removed, nothing is acknowledged any more"
    )]
    NotAnyMore {
        /// The copy.
        name: String,
    },
    /// A write waited for the log of an engine, which is not known to have it.
    #[error(
        "the engine's log did not take it in time, or another gateway serves by now: whether it is \
         stored is in doubt. Look, or try again"
    )]
    NotInLog,
    /// A synchronous copy takes nothing any more, so nothing is begun.
    #[error(
        "nothing was stored: the synchronous copy {name:?} was given up, and without it nothing is \
         acknowledged. `coffer replica status` tells why; removing the copy lets writes go on \
         without it"
    )]
    GivenUp {
        /// The copy.
        name: String,
    },
    /// This server serves states of a copy, and what it would write would be lost.
    #[error(
        "this server is a standby, so {what}: ask the server that it follows, or have this one \
         promoted in its place (coffer standby promote)"
    )]
    Standby {
        /// What it does not do, in a sentence.
        what: &'static str,
    },
    /// This gateway of an engine serves states of its log, and what it would write would be lost.
    #[error(
        "this gateway follows, so {what}: ask the gateway of this engine that serves{}",
        at_gateway(.serves)
    )]
    Follows {
        /// What it does not do, in a sentence.
        what: &'static str,
        /// At which address that one is reached by gateways, if it is known.
        serves: Option<String>,
    },
    /// Another server may serve in this one's place.
    #[error(
        "this server is fenced off by its copy {copy}, so it changes nothing, and answers \
         reads: {why}"
    )]
    FencedOff {
        /// The copy's name.
        copy: String,
        /// What shows it.
        why: String,
        /// Whether another serves in its place: else the copy was only not reached.
        is_for_good: bool,
    },
    /// A server that was fenced off is to take changes again.
    #[error(
        "this server was fenced off by its copy {name:?}: {why}. What it took would be missing at \
         the one that serves in its place. With --fenced-by {name} it starts, answers reads and \
         changes nothing; only if none serves in its place any more, start it once with \
         --end-fence: then it goes on by itself"
    )]
    WasFencedOff {
        /// The copy's name.
        name: String,
        /// What showed it.
        why: String,
    },
    /// A server can't be fenced by a copy that it does not know.
    #[error(
        "there is no copy {name:?} to be fenced by: {}. Give the name of one (--fenced-by), or \
         start without and begin it first (`coffer replica add`): with it nothing could be changed",
        copies_told(.there)
    )]
    NoFence {
        /// The name that was given.
        name: String,
        /// The copies that are kept up.
        there: Vec<String>,
    },
    /// This gateway of an engine does not serve any more, or not yet.
    #[error(
        "this gateway does not serve now: its lease on the engine's store has ended, or could not \
         be renewed. Ask again; another gateway serves, or this one does when it has the lease"
    )]
    LeaseEnded,
    /// A blob that is asked for is not here, and could not be fetched.
    #[error(
        "what is asked for is not in this gateway's cache, and could not be fetched from the \
         engine's store: {problem}"
    )]
    NotFetched {
        /// What the store said.
        problem: String,
    },
    /// The identity in the store of an engine opens nothing.
    #[error("the object `identity` in the engine's store {problem}; nothing was changed")]
    EngineIdentity {
        /// What is so with it, and what to do.
        problem: &'static str,
    },
    /// What the log of an engine takes care of.
    #[error("this server is a gateway of an engine: {what}")]
    OfEngine {
        /// What that means.
        what: &'static str,
    },
    /// The disk of what follows a copy or an engine's log has no room for the next state.
    #[error(
        "the disk that {path} is on has no room for what the copy has by now. What is served stays \
         as it was, and it goes on by itself as soon as there is room: make the disk larger, \
         remove what else lies there, or delete objects at the original"
    )]
    NoRoomToFollow {
        /// The folder.
        path: String,
    },
    /// The first round is not done.
    #[error(
        "nothing complete is there yet, for the first state is still being put there: ask again \
         once `coffer replica status`, at the server that keeps the copy up, says `complete as of`"
    )]
    NeverComplete,
    /// The first round of an engine's log is not done.
    #[error(
        "the engine's log is begun and not complete: the gateway that makes it needs some seconds \
         more. If none is at it, more is there than a first start leaves that was ended: put the \
         store back, where it lost anything. If no engine was there before, stop all gateways, \
         empty the store there (`identity` may stay) and their folders, and start them again"
    )]
    EngineNeverComplete,
    /// An engine can't begin on a copy that lacks keys of buckets.
    #[error(
        "no engine can begin on this copy: its keystore leaves out levels that have buckets, which \
         would be missing for good ({levels}). Start the server of the copy again; move the \
         objects of these buckets to buckets of a level that goes along, and delete these; when \
         `coffer replica status` shows no `levels left out` that have buckets, stop it for good"
    )]
    LevelsLeftOut {
        /// Their ids, and their buckets.
        levels: String,
    },
    /// The copy, or its store.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
}

impl CopyError {
    /// Whether it says that nothing is changed here, by what the server is.
    pub fn is_of_standing(&self) -> bool {
        matches!(
            self,
            Self::Standby { .. } | Self::Follows { .. } | Self::FencedOff { .. } | Self::LeaseEnded
        )
    }

    /// Whether it says that a write is not acknowledged.
    pub fn is_of_acknowledgement(&self) -> bool {
        matches!(
            self,
            Self::NotYet { .. } | Self::NotAnyMore { .. } | Self::NotInLog | Self::GivenUp { .. }
        )
    }
}

fn at_gateway(address: &Option<String>) -> String {
    let told = |address| format!(", which other gateways reach at {address}");
    address.as_ref().map_or_else(String::new, told)
}

fn copies_told(there: &[String]) -> String {
    match there {
        [] => "this server keeps up none".to_owned(),
        there => format!("this server keeps up {}", there.join(", ")),
    }
}

impl From<CopyError> for crate::error::VaultError {
    fn from(error: CopyError) -> Self {
        super::BackupError::Copy(error).into()
    }
}

impl From<ReplicaError> for crate::error::VaultError {
    fn from(error: ReplicaError) -> Self {
        CopyError::Replica(error).into()
    }
}
