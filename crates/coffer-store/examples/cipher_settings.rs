//! Compares SQLCipher's settings for what a catalog does: durable commits in groups of 32 objects
//! of 4 KiB, and point reads of them.
//!
//! `cargo run --release -p coffer-store --example cipher_settings [-- DIR]`
//!
//! A table with a line for each setting, in microseconds of CPU time: a put, an overwrite and a
//! delete of one object; reading one object over and over, and random ones, mostly from the
//! kernel's page cache. Each is the least of some rounds, for others may be at work as well.

#![expect(clippy::unwrap_used, reason = "a measurement that fails may stop")]

use std::path::Path;
use std::time::Duration;

use coffer_seal::random_bytes;
use rusqlite::{Connection, params};

const OBJECTS: usize = 10_000;
const GROUPS: usize = 100;
const GROUP: usize = 32;

struct Setting {
    page_bytes: u32,
    hmac: Option<&'static str>,
    secure_delete: &'static str,
}

fn main() {
    let dir = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "target".to_owned());
    let mut settings = Vec::new();
    for page_bytes in [4096, 8192, 16384] {
        for hmac in [None, Some("SHA1"), Some("SHA256"), Some("SHA512")] {
            settings.push(Setting {
                page_bytes,
                hmac,
                secure_delete: "ON",
            });
        }
    }
    settings.push(Setting {
        page_bytes: 4096,
        hmac: Some("SHA256"),
        secure_delete: "OFF",
    });
    let mut least = vec![[f64::MAX; 5]; settings.len()];
    for _ in 0..rounds() {
        for (setting, least) in settings.iter().zip(&mut least) {
            let costs = measure(Path::new(&dir), setting);
            *least = std::array::from_fn(|index| least[index].min(costs[index]));
        }
    }
    println!("page   code   secure_delete     put overwrite  delete     one  random");
    for (
        Setting {
            page_bytes,
            hmac,
            secure_delete,
        },
        costs,
    ) in settings.iter().zip(least)
    {
        let [put, overwrite, delete, one, random] = costs;
        println!(
            "{page_bytes:5}  {:7} {secure_delete:12} {put:7.1} {overwrite:9.1} {delete:7.1} \
             {one:7.2} {random:7.2}",
            hmac.unwrap_or("(plain)"),
        );
    }
}

fn rounds() -> usize {
    std::env::args()
        .nth(2)
        .and_then(|count| count.parse().ok())
        .unwrap_or(3)
}

fn open(path: &Path, setting: &Setting) -> Connection {
    let connection = Connection::open(path).unwrap();
    if let Some(hmac) = setting.hmac {
        let key = "00112233445566778899aabbccddeeff".repeat(2);
        connection
            .execute_batch(&format!(
                "PRAGMA key = \"x'{key}'\";
                 PRAGMA cipher_page_size = {};
                 PRAGMA cipher_hmac_algorithm = HMAC_{hmac};",
                setting.page_bytes
            ))
            .unwrap();
    } else {
        connection
            .execute_batch(&format!("PRAGMA page_size = {}", setting.page_bytes))
            .unwrap();
    }
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
             PRAGMA secure_delete = {}; PRAGMA cache_size = -8192; PRAGMA cell_size_check = ON;
             PRAGMA mmap_size = 0; PRAGMA wal_autocheckpoint = {};
             PRAGMA journal_size_limit = 25165824;",
            setting.secure_delete,
            16 * 1024 * 1024 / setting.page_bytes,
        ))
        .unwrap();
    connection
}

fn measure(dir: &Path, setting: &Setting) -> [f64; 5] {
    let dir = tempfile::tempdir_in(dir).unwrap();
    let path = dir.path().join("settings.db");
    let writer = open(&path, setting);
    writer
        .execute_batch(
            "CREATE TABLE object(name BLOB PRIMARY KEY, id INTEGER, etag TEXT, details TEXT)
                 WITHOUT ROWID;
             CREATE TABLE inline(object_id INTEGER PRIMARY KEY, data BLOB NOT NULL);",
        )
        .unwrap();
    let mut names: Vec<[u8; 24]> = Vec::new();
    for _ in 0..OBJECTS / 500 {
        put(&writer, &mut names, 500);
    }
    let groups = |work: &mut dyn FnMut()| {
        let began = cpu();
        for _ in 0..GROUPS {
            work();
        }
        (cpu() - began).as_secs_f64() * 1e6 / (GROUPS * GROUP) as f64
    };
    let puts = groups(&mut || put(&writer, &mut names, GROUP));
    let overwrites = groups(&mut || overwrite(&writer, &names));
    let reader = open(&path, setting);
    let one = read(&reader, |_| 17, &names);
    let random = read(&reader, |round| (round * 7_919) % names.len(), &names);
    let deletes = groups(&mut || delete(&writer, &mut names));
    [puts, overwrites, deletes, one, random]
}

fn put(connection: &Connection, names: &mut Vec<[u8; 24]>, count: usize) {
    let transaction = connection.unchecked_transaction().unwrap();
    let mut object = connection
        .prepare_cached("INSERT INTO object VALUES(?, ?, ?, ?)")
        .unwrap();
    let mut inline = connection
        .prepare_cached("INSERT INTO inline VALUES(?, ?)")
        .unwrap();
    for _ in 0..count {
        let name: [u8; 24] = random_bytes();
        let id = names.len();
        object
            .execute(params![
                name,
                id as i64,
                "0123456789abcdef0123456789abcdef",
                r#"{"headers":{"content_type":"binary/octet-stream"}}"#
            ])
            .unwrap();
        inline.execute(params![id as i64, [name[0]; 4096]]).unwrap();
        names.push(name);
    }
    transaction.commit().unwrap();
}

fn overwrite(connection: &Connection, names: &[[u8; 24]]) {
    let transaction = connection.unchecked_transaction().unwrap();
    let mut inline = connection
        .prepare_cached("UPDATE inline SET data = ? WHERE object_id = ?")
        .unwrap();
    for _ in 0..GROUP {
        let pick = u64::from_le_bytes(random_bytes()) as usize % names.len();
        inline
            .execute(params![[pick as u8; 4096], pick as i64])
            .unwrap();
    }
    transaction.commit().unwrap();
}

fn delete(connection: &Connection, names: &mut Vec<[u8; 24]>) {
    let transaction = connection.unchecked_transaction().unwrap();
    let mut object = connection
        .prepare_cached("DELETE FROM object WHERE name = ?")
        .unwrap();
    let mut inline = connection
        .prepare_cached("DELETE FROM inline WHERE object_id = ?")
        .unwrap();
    for _ in 0..GROUP {
        let name = names.pop().unwrap();
        object.execute([name]).unwrap();
        inline.execute([names.len() as i64]).unwrap();
    }
    transaction.commit().unwrap();
}

fn read(connection: &Connection, mut pick: impl FnMut(usize) -> usize, names: &[[u8; 24]]) -> f64 {
    const READS: usize = 20_000;
    let mut statement = connection
        .prepare_cached(
            "SELECT etag, details, data FROM object LEFT JOIN inline ON object_id = id
             WHERE name = ?",
        )
        .unwrap();
    let began = cpu();
    for round in 0..READS {
        let mut rows = statement.query([names[pick(round)]]).unwrap();
        let row = rows.next().unwrap().unwrap();
        assert_eq!(row.get_ref(2).unwrap().as_blob().unwrap().len(), 4096);
    }
    (cpu() - began).as_secs_f64() * 1e6 / READS as f64
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
