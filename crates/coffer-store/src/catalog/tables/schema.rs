//! The tables of a catalog, by format, and how one comes to be of the newest.

use rusqlite::Connection;

use crate::database::gaps::ZeroizedGaps;
use crate::error::Result;

/// The newest format.
pub(crate) const NEWEST: i32 = 5;

/// What makes a catalog of format 1 one of format 2, with [`FINISHED_UPLOAD`].
const TO_FORMAT_2: &str = "
INSERT INTO meta VALUES('commit_count', 0);
PRAGMA user_version = 2;
";

/// The table that format 2 brought.
const FINISHED_UPLOAD: &str = "
CREATE TABLE finished_upload(
    upload_id BLOB NOT NULL PRIMARY KEY,
    finished_ms INTEGER NOT NULL,
    request BLOB NOT NULL,
    etag TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    checksum TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX finished_upload_by_time ON finished_upload(finished_ms);
";

/// What makes a catalog of format 2 one of format 3: who began each upload, and how many bytes its
/// parts have.
const TO_FORMAT_3: &str = "
ALTER TABLE upload ADD COLUMN made_by TEXT;
ALTER TABLE upload ADD COLUMN size_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE upload SET size_bytes = (
    SELECT coalesce(sum(plaintext_bytes), 0) FROM part WHERE part.upload_id = upload.upload_id
);
PRAGMA user_version = 3;
";

/// What makes a catalog of format 3 one of format 4: versions of objects, locks on them, who owns
/// them and who else may use them. Of a name, the newest version is in `object`, unless it is a
/// delete marker; all others are in `version`.
const TO_FORMAT_4: &str = "
ALTER TABLE object ADD COLUMN version_tag INTEGER;
ALTER TABLE object ADD COLUMN owner TEXT;
ALTER TABLE object ADD COLUMN acl TEXT;
ALTER TABLE object ADD COLUMN lock INTEGER;
ALTER TABLE object ADD COLUMN retain_until_ms INTEGER;
ALTER TABLE upload ADD COLUMN acl TEXT;
ALTER TABLE upload ADD COLUMN lock INTEGER;
ALTER TABLE upload ADD COLUMN retain_until_ms INTEGER;
ALTER TABLE finished_upload ADD COLUMN version TEXT;
ALTER TABLE finished_upload ADD COLUMN encryption TEXT;
CREATE TABLE version(
    name BLOB NOT NULL,
    id INTEGER NOT NULL,
    is_marker INTEGER NOT NULL,
    is_inline INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    etag TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    part_count INTEGER NOT NULL,
    tag_count INTEGER NOT NULL,
    checksum TEXT,
    details TEXT,
    tags TEXT,
    version_tag INTEGER,
    owner TEXT,
    acl TEXT,
    lock INTEGER,
    retain_until_ms INTEGER,
    PRIMARY KEY(name, id DESC)
) STRICT, WITHOUT ROWID;
CREATE INDEX object_locked ON object(lock, retain_until_ms) WHERE lock IS NOT NULL;
CREATE INDEX version_locked ON version(lock, retain_until_ms) WHERE lock IS NOT NULL;
CREATE UNIQUE INDEX version_by_id ON version(id);
CREATE UNIQUE INDEX version_null ON version(name) WHERE version_tag IS NULL;
PRAGMA user_version = 4;
";

/// What makes a catalog of format 4 one of format 5, which has the same tables and more to say in
/// them: checksums of other algorithms, and holds that are off.
const TO_FORMAT_5: &str = "
PRAGMA user_version = 5;
";

/// Shows a catalog of a format before 4 as one of format 4, to a connection that only reads: what
/// it has not is NULL, and it has no versions.
const AS_FORMAT_4: &str = "
CREATE TEMP VIEW object AS
    SELECT *, NULL AS version_tag, NULL AS owner, NULL AS acl, NULL AS lock, NULL AS retain_until_ms
    FROM main.object;
CREATE TEMP VIEW version AS
    SELECT name, id, 0 AS is_marker, is_inline, size_bytes, etag, modified_ms, part_count,
        tag_count, checksum, details, tags, NULL AS version_tag, NULL AS owner, NULL AS acl,
        NULL AS lock, NULL AS retain_until_ms
    FROM main.object WHERE 0;
";

/// The same for uploads, of which formats before 3 don't know who began them.
const UPLOADS_AS_FORMAT_4: &str = "
CREATE TEMP VIEW upload AS
    SELECT *, NULL AS acl, NULL AS lock, NULL AS retain_until_ms FROM main.upload;
";
const UPLOADS_BEFORE_3_AS_FORMAT_4: &str = "
CREATE TEMP VIEW upload AS
    SELECT *, NULL AS made_by, NULL AS acl, NULL AS lock, NULL AS retain_until_ms
    FROM main.upload;
";

/// The tables that all formats have. `docs/FORMAT.md`, "Catalog", says what each column means.
const SCHEMA: &str = "
CREATE TABLE meta(
    name TEXT NOT NULL PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;
CREATE TABLE object(
    name BLOB NOT NULL PRIMARY KEY,
    id INTEGER NOT NULL,
    is_inline INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    etag TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    part_count INTEGER NOT NULL,
    tag_count INTEGER NOT NULL,
    checksum TEXT,
    details TEXT,
    tags TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE inline(
    object_id INTEGER NOT NULL PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE blob(
    object_id INTEGER NOT NULL,
    offset_bytes INTEGER NOT NULL,
    part_number INTEGER NOT NULL,
    blob_id BLOB NOT NULL,
    plaintext_bytes INTEGER NOT NULL,
    key_generation INTEGER NOT NULL,
    wrapped_key BLOB NOT NULL,
    checksum TEXT,
    PRIMARY KEY(object_id, offset_bytes, part_number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX blob_by_id ON blob(blob_id);
CREATE UNIQUE INDEX blob_by_part ON blob(object_id, part_number) WHERE part_number > 0;
CREATE TABLE upload(
    name BLOB NOT NULL,
    upload_id BLOB NOT NULL,
    started_ms INTEGER NOT NULL,
    checksum TEXT,
    details TEXT,
    tags TEXT,
    PRIMARY KEY(name, upload_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX upload_by_id ON upload(upload_id);
CREATE TABLE part(
    upload_id BLOB NOT NULL,
    part_number INTEGER NOT NULL,
    etag TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    blob_id BLOB NOT NULL,
    plaintext_bytes INTEGER NOT NULL,
    key_generation INTEGER NOT NULL,
    wrapped_key BLOB NOT NULL,
    checksum TEXT,
    PRIMARY KEY(upload_id, part_number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX part_by_blob ON part(blob_id);
";

/// The statements that make the catalog of a bucket of this name.
pub(crate) fn of_new(bucket_name: &str) -> String {
    let digits: String = bucket_name
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "{SCHEMA}{FINISHED_UPLOAD}{TO_FORMAT_3}{TO_FORMAT_4}{TO_FORMAT_5}INSERT INTO meta VALUES
             ('bucket_name', CAST(x'{digits}' AS TEXT)),
             ('object_count', 0), ('object_bytes', 0), ('commit_count', 0);"
    )
}

/// Brings a catalog to the newest format.
pub(crate) fn upgrade(connection: &Connection) -> Result<()> {
    let format = connection.query_row("PRAGMA user_version", (), |row| row.get::<_, i32>(0))?;
    if format < NEWEST {
        let all = [
            FINISHED_UPLOAD,
            TO_FORMAT_2,
            TO_FORMAT_3,
            TO_FORMAT_4,
            TO_FORMAT_5,
        ];
        let missing = match format {
            1 => &all[..],
            2 => &all[2..],
            3 => &all[3..],
            _ => &all[4..],
        };
        let _gaps = ZeroizedGaps::of(connection);
        let steps = missing.concat();
        let done = connection.execute_batch(&format!("BEGIN IMMEDIATE;{steps}COMMIT;"));
        if done.is_err() && !connection.is_autocommit() {
            // Fails only when SQLite has rolled back by itself.
            let _ = connection.execute_batch("ROLLBACK");
        }
        done?;
    }
    Ok(())
}

/// Has a connection that only reads see a catalog of any format as one of the newest.
pub(crate) fn as_newest(connection: &Connection) -> Result<()> {
    let format = connection.query_row("PRAGMA user_version", (), |row| row.get::<_, i32>(0))?;
    if format < 4 {
        let uploads = if format < 3 {
            UPLOADS_BEFORE_3_AS_FORMAT_4
        } else {
            UPLOADS_AS_FORMAT_4
        };
        connection.execute_batch(&format!(
            "PRAGMA query_only = OFF;{AS_FORMAT_4}{uploads}PRAGMA query_only = ON;"
        ))?;
    }
    Ok(())
}
