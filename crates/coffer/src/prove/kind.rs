//! What may lie where in a data folder; `docs/FORMAT.md`, "Data folder".

use std::path::{Component, Path, PathBuf};

/// What a file or folder of a data folder is, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A folder that belongs there.
    Folder,
    /// All keys above the data keys, sealed.
    Keystore,
    /// How new everything is, sealed.
    Anchor,
    /// Which copies there are, sealed.
    Copies,
    /// Which root-key source: not secret.
    SourceRecord,
    /// The root key, readable by its owner.
    PlainRootKey,
    /// The root key under a passphrase or a token.
    SealedRootKey,
    /// A SQLCipher database: `system.db`, or a bucket's catalog.
    Database,
    /// The write-ahead log of one.
    DatabaseLog,
    /// The index of such a log: numbers of pages.
    DatabaseLogIndex,
    /// Beside a catalog: the number of its newest commit, or why it is in doubt.
    CatalogNote,
    /// What an interrupted creation left: it counts for nothing.
    Unfinished,
    /// A sealed message.
    Blob,
    /// A segment of the audit log, sealed.
    AuditSegment,
    /// Where the audit log ends, sealed.
    AuditHead,
    /// Certificates: public.
    Certificate,
    /// A certificate's key, readable by its owner.
    TlsKey,
    /// The first access key, readable by its owner.
    Credentials,
    /// What a backup says of the copy that it made: not secret.
    BackupRecord,
    /// What a gateway's folder says of itself: not secret.
    CacheRecord,
    /// Which copy a standby follows, and how far it has come: not secret.
    FollowerRecord,
    /// Locked while a server runs; the number of its file then, or nothing.
    Lock,
    /// Empty, or a socket.
    Empty,
}

impl Kind {
    /// What a path, relative to the data folder, must be; `None`: nothing of ours is there.
    pub fn of(relative: &Path, is_folder: bool) -> Option<Self> {
        let mut names = Vec::with_capacity(5);
        for component in relative.components() {
            let Component::Normal(name) = component else {
                return None;
            };
            names.push(name.to_str()?);
        }
        match (is_folder, within(&names)) {
            (true, Some(rest)) => is_known_folder(rest).then_some(Self::Folder),
            (true, None) => is_known_folder(&names).then_some(Self::Folder),
            (false, Some(["state.json"])) => Some(Self::FollowerRecord),
            (false, Some(rest)) => Self::of_file(rest),
            (false, None) => standby(&names).or_else(|| Self::of_file(&names)),
        }
    }

    fn of_file(names: &[&str]) -> Option<Self> {
        match *names {
            [name] => top(name),
            ["tls", name] => tls(name),
            ["audit", name] => audit(name),
            // A blob on its way into the cache of a gateway.
            ["fetching", _] => Some(Kind::Unfinished),
            // Of a round of copies, or a check of one.
            ["copies.scratch", _, name] => top(name),
            ["copies.scratch", _, id, name] if is_hex(id, 32) => database(name, "catalog"),
            ["buckets", id, name] if is_hex(id, 32) => database(name, "catalog"),
            ["buckets", id, "blobs", folder, file]
                if is_hex(id, 32) && is_hex(folder, 2) && is_hex(file, 30) =>
            {
                Some(Self::Blob)
            }
            _ => None,
        }
    }

    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folder => "folders",
            Self::Keystore => "keystore",
            Self::Anchor => "anchor",
            Self::Copies => "list of copies",
            Self::SourceRecord => "root-key source record",
            Self::PlainRootKey => "readable root key",
            Self::SealedRootKey => "sealed root key",
            Self::Database => "databases",
            Self::DatabaseLog => "write-ahead logs",
            Self::DatabaseLogIndex => "log indexes",
            Self::CatalogNote => "notes of commits",
            Self::Unfinished => "left by an interrupted start",
            Self::Blob => "blobs",
            Self::AuditSegment => "audit segments",
            Self::AuditHead => "audit head",
            Self::Certificate => "certificates",
            Self::TlsKey => "TLS keys",
            Self::Credentials => "credentials",
            Self::BackupRecord => "record of a backup",
            Self::CacheRecord => "record of a cache",
            Self::FollowerRecord => "records of a standby",
            Self::Lock => "lock",
            Self::Empty => "socket",
        }
    }

    /// Whether it holds a secret in the clear, which is so by design and told.
    pub fn is_readable_secret(self) -> bool {
        matches!(self, Self::PlainRootKey | Self::TlsKey | Self::Credentials)
    }
}

/// Where a path leads that is the link of a standby's state to a bucket's blobs; none of others.
pub fn blobs_of_state(relative: &Path) -> Option<PathBuf> {
    let names: Option<Vec<_>> = relative.iter().map(|name| name.to_str()).collect();
    match within(&names?)? {
        ["buckets", id, "blobs"] if is_hex(id, 32) && relative.starts_with("standby") => {
            let buckets = Path::new("../../../../../buckets");
            Some(buckets.join(id).join("blobs"))
        }
        _ => None,
    }
}

/// The path in a state that a standby serves, or in what a gateway's cache held before, which have
/// what a data folder has.
fn within<'a>(names: &'a [&'a str]) -> Option<&'a [&'a str]> {
    match names {
        ["before" | "before.moving" | "before.ended", rest @ ..] => Some(rest),
        ["standby", "states", state, rest @ ..] if is_state(state) => Some(rest),
        _ => None,
    }
}

/// States are numbered; a keystore is tried in `keys.new`.
fn is_state(name: &str) -> bool {
    let number = name.strip_suffix(".new").unwrap_or(name);
    let is_number = number.len() <= 20 && number.bytes().all(|byte| byte.is_ascii_digit());
    !number.is_empty() && is_number || name == "keys.new"
}

/// What else a standby keeps.
fn standby(names: &[&str]) -> Option<Kind> {
    match *names {
        [
            "standby",
            "copy.json" | "copy.json.new" | "promoter" | "promoter.new",
        ] => Some(Kind::FollowerRecord),
        ["standby", "segments", name] if is_hex(name.strip_suffix(".new").unwrap_or(name), 32) => {
            Some(Kind::FollowerRecord)
        }
        // The next state of a catalog, which is put together there.
        ["standby", "building", id, name] if is_hex(id, 32) => {
            database(name, "catalog").map(|_| Kind::Unfinished)
        }
        _ => None,
    }
}

fn is_known_folder(names: &[&str]) -> bool {
    match names {
        ["standby"] | ["standby", "states" | "segments" | "building"] => true,
        ["standby", "building", id] => is_hex(id, 32),
        [] | ["tls" | "audit" | "buckets" | "lost+found" | "copies.scratch" | "fetching"] => true,
        ["buckets", id] | ["buckets", id, "blobs"] => is_hex(id, 32),
        ["copies.scratch", _] => true,
        ["copies.scratch", _, id] => is_hex(id, 32),
        ["buckets", id, "blobs", folder] => is_hex(id, 32) && is_hex(folder, 2),
        _ => false,
    }
}

fn top(name: &str) -> Option<Kind> {
    // A file under construction has `.new` behind, and takes the place of the other.
    match name.strip_suffix(".new").unwrap_or(name) {
        "lock" => Some(Kind::Lock),
        "admin.sock" => Some(Kind::Empty),
        "backup.json" => Some(Kind::BackupRecord),
        "engine.json" => Some(Kind::CacheRecord),
        "keystore" => Some(Kind::Keystore),
        "anchor" => Some(Kind::Anchor),
        "copies" => Some(Kind::Copies),
        "keystore.source" => Some(Kind::SourceRecord),
        "root.key" => Some(Kind::PlainRootKey),
        "root.passphrase" | "root-2.passphrase" | "root.token" | "root-2.token" => {
            Some(Kind::SealedRootKey)
        }
        "credentials" => Some(Kind::Credentials),
        _ => database(name, "system"),
    }
}

fn tls(name: &str) -> Option<Kind> {
    match name {
        "ca.pem" | "server.pem" => Some(Kind::Certificate),
        // `ca.new` is a key or a certificate, so it is to be as private as a key.
        "ca.key" | "server.key" | "ca.new" | "server.new" => Some(Kind::TlsKey),
        _ => None,
    }
}

fn audit(name: &str) -> Option<Kind> {
    let is_number = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    match name.strip_suffix(".new").unwrap_or(name) {
        "head" => Some(Kind::AuditHead),
        name if name.strip_suffix(".log").is_some_and(is_number) => Some(Kind::AuditSegment),
        _ => None,
    }
}

fn database(name: &str, stem: &str) -> Option<Kind> {
    match name.strip_prefix(stem)? {
        ".db" => Some(Kind::Database),
        ".db-wal" | ".db-wal.new" => Some(Kind::DatabaseLog),
        ".db-shm" => Some(Kind::DatabaseLogIndex),
        ".newest" | ".in-doubt" if stem == "catalog" => Some(Kind::CatalogNote),
        ".unfinished" | ".unfinished-journal" | ".db-journal" => Some(Kind::Unfinished),
        _ => None,
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Option<Kind> {
        Kind::of(Path::new(path), false)
    }

    #[test]
    fn what_the_server_makes_is_known() {
        let bucket = "buckets/00112233445566778899aabbccddeeff";
        for (path, kind) in [
            ("lock", Kind::Lock),
            ("backup.json", Kind::BackupRecord),
            ("admin.sock", Kind::Empty),
            ("keystore", Kind::Keystore),
            ("anchor", Kind::Anchor),
            ("keystore.source", Kind::SourceRecord),
            ("root.key", Kind::PlainRootKey),
            ("root-2.passphrase", Kind::SealedRootKey),
            ("system.db", Kind::Database),
            ("system.db-wal", Kind::DatabaseLog),
            ("system.db-wal.new", Kind::DatabaseLog),
            ("system.unfinished-journal", Kind::Unfinished),
            ("credentials.new", Kind::Credentials),
            ("tls/ca.pem", Kind::Certificate),
            ("tls/server.key", Kind::TlsKey),
            ("audit/head", Kind::AuditHead),
            ("audit/00000001.log", Kind::AuditSegment),
        ] {
            assert_eq!(file(path), Some(kind), "{path}");
        }
        assert_eq!(file(&format!("{bucket}/catalog.db")), Some(Kind::Database));
        for note in ["catalog.newest", "catalog.in-doubt"] {
            let kind = file(&format!("{bucket}/{note}"));
            assert_eq!(kind, Some(Kind::CatalogNote));
        }
        assert_eq!(file("system.newest"), None);
        let blob = format!("{bucket}/blobs/ab/{}", "c".repeat(30));
        assert_eq!(file(&blob), Some(Kind::Blob));
        for folder in ["", "tls", "buckets", bucket, &format!("{bucket}/blobs/ab")] {
            assert_eq!(
                Kind::of(Path::new(folder), true),
                Some(Kind::Folder),
                "{folder}"
            );
        }
    }

    #[test]
    fn what_standbys_and_gateways_keep_is_known() {
        let bucket = "buckets/00112233445566778899aabbccddeeff";
        for (path, kind) in [
            ("standby/copy.json", Kind::FollowerRecord),
            ("standby/promoter", Kind::FollowerRecord),
            ("standby/states/12/state.json", Kind::FollowerRecord),
            ("standby/states/12/keystore", Kind::Keystore),
            ("standby/states/12/audit/00000001.log", Kind::AuditSegment),
            ("standby/states/12.new/system.db", Kind::Database),
            ("standby/states/keys.new/root.key", Kind::PlainRootKey),
            ("before/system.db", Kind::Database),
            ("before.moving/keystore", Kind::Keystore),
        ] {
            assert_eq!(file(path), Some(kind), "{path}");
        }
        let state = format!("standby/states/3/{bucket}");
        assert_eq!(file(&format!("{state}/catalog.db")), Some(Kind::Database));
        assert_eq!(
            file(&format!("before/{bucket}/catalog.newest")),
            Some(Kind::CatalogNote)
        );
        let to = blobs_of_state(Path::new(&format!("{state}/blobs")));
        let own = Path::new("../../../../..").join(bucket).join("blobs");
        assert_eq!(to, Some(own));
        assert_eq!(blobs_of_state(Path::new(&format!("{bucket}/blobs"))), None);
        for folder in [
            "standby",
            "standby/states/3",
            "standby/building",
            "before",
            &state,
        ] {
            let kind = Kind::of(Path::new(folder), true);
            assert_eq!(kind, Some(Kind::Folder), "{folder}");
        }
        for path in [
            "standby/notes.txt",
            "standby/states/notes.txt",
            "standby/states/3/notes.txt",
            "standby/states/3/standby/copy.json",
            "before/before/keystore",
            "before/notes.txt",
        ] {
            assert_eq!(file(path), None, "{path}");
        }
        assert_eq!(Kind::of(Path::new("standby/states/x"), true), None);
    }

    #[test]
    fn what_it_does_not_make_is_not() {
        let bucket = "buckets/00112233445566778899aabbccddeeff";
        for path in [
            "notes.txt".to_owned(),
            "keystore.bak".to_owned(),
            "system.db2".to_owned(),
            "tls/extra.pem".to_owned(),
            "audit/1.log".to_owned(),
            "buckets/x".to_owned(),
            "buckets/0123/catalog.db".to_owned(),
            format!("{bucket}/system.db"),
            format!("{bucket}/blobs/ab/{}", "C".repeat(30)),
            format!("{bucket}/blobs/{}", "c".repeat(32)),
            "lost+found/00001".to_owned(),
        ] {
            assert_eq!(file(&path), None, "{path}");
        }
        assert_eq!(Kind::of(Path::new("cache"), true), None);
        assert_eq!(Kind::of(Path::new("keystore"), true), None);
    }
}
