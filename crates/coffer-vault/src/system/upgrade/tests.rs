use std::path::Path;

use coffer_seal::SecretKey;
use coffer_store::Database;

use super::super::{APPLICATION_ID, SCHEMA_1, System};
use super::*;

const OLD: Database = Database {
    application_id: APPLICATION_ID,
    format_version: 1,
};

fn key() -> SecretKey {
    SecretKey::from_bytes([0x0d; 32])
}

/// As version 1 left it.
fn make_old(path: &Path) {
    let connection = OLD.create(path, &key(), SCHEMA_1).unwrap();
    let rows = "INSERT INTO bucket VALUES(x'0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b', 'notes', \
                x'00000000000000000000000000000000', 1);
                INSERT INTO subject VALUES('CFA', 'secret', 'ann', 's0-s2', 'auditor', 1, 1, 9, 1);
                INSERT INTO bucket_grant VALUES('CFA', x'0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b', 'read');
                INSERT INTO audit_anchor VALUES(1, 7, \
                x'0000000000000000000000000000000000000000000000000000000000000000');";
    connection.execute_batch(rows).unwrap();
    connection.close().unwrap();
}

/// Names and text of all tables, but for how the text is laid out.
fn tables(system: &System) -> Vec<String> {
    let sql = "SELECT name || ': ' || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let read = |connection: &Connection| {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| row.get(0)).unwrap();
        Ok(rows.map(Result::unwrap).collect())
    };
    system.held().read(read).unwrap()
}

#[test]
fn an_old_database_is_brought_to_this_format_with_all_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("system.db");
    make_old(&path);
    for _ in 0..2 {
        let system = System::open(&path, &key()).unwrap();
        assert_eq!(system.buckets()[0].name.as_str(), "notes");
        let ann = system.subject_named("ann").unwrap();
        assert!(ann.is_disabled && ann.grants.as_ref().unwrap().len() == 1);
        assert_eq!(system.audit_anchor().unwrap().unwrap().sequence, 7);
    }
    let fresh = System::open(&dir.path().join("new.db"), &key()).unwrap();
    let old = System::open(&path, &key()).unwrap();
    assert_eq!(tables(&old), tables(&fresh));
    let refused = OLD.open(&path, &key()).err().unwrap();
    let StoreError::NewerFormat { found, known } = refused else {
        panic!("{refused}");
    };
    assert_eq!((found, known), (FORMAT_VERSION, 1));
}

#[test]
fn an_old_database_that_is_only_read_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("system.db");
    make_old(&path);
    let before = std::fs::read(&path).unwrap();
    let system = System::open_read_only(&path, &key()).unwrap();
    assert_eq!(system.buckets()[0].name.as_str(), "notes");
    assert_eq!(system.audit_anchor().unwrap().unwrap().sequence, 7);
    drop(system);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
