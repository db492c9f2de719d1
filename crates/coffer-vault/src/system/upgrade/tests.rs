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

/// With what version 3 had beside: a mark, and a request that waits.
fn make_format_3(path: &Path) {
    make_old(path);
    let mut connection = OLD.open(path, &key()).unwrap();
    let transaction = connection.transaction().unwrap();
    for statement in [TO_2, TO_3].concat() {
        transaction.execute_batch(statement).unwrap();
    }
    let rows = r#"INSERT INTO mark VALUES('ann', 's1');
                  INSERT INTO request VALUES(x'0a', '{"by":"CFA","names":{"CFA":"CFAB"}}');"#;
    transaction.execute_batch(rows).unwrap();
    transaction.pragma_update(None, "user_version", 3).unwrap();
    transaction.commit().unwrap();
}

fn requests(system: &System) -> Vec<String> {
    let read = |connection: &Connection| {
        let mut statement = connection.prepare("SELECT document FROM request").unwrap();
        let rows = statement.query_map((), |row| row.get(0)).unwrap();
        Ok(rows.map(Result::unwrap).collect())
    };
    system.held().read(read).unwrap()
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
    make_format_3(&path);
    let mut first = None;
    for _ in 0..2 {
        let system = System::open(&path, &key()).unwrap();
        assert_eq!(system.buckets()[0].name.as_str(), "notes");
        let ann = system.find_subject("CFA").unwrap().subject;
        assert_eq!(*ann.name, *"ann");
        assert_eq!(*first.get_or_insert(ann.id), ann.id, "made once");
        assert_eq!(ann.mark.label().unwrap().to_string(), "s1");
        let asks = requests(&system);
        assert_eq!(
            asks,
            [format!(
                r#"{{"by":"{0}","names":{{"{0}":"CFAB"}}}}"#,
                ann.id
            )]
        );
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
