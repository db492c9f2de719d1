//! Receipts: what they say, and that nothing in them can be changed.

use std::fs;
use std::path::Path;

use coffer_keys::receipt::{
    AuditRecord, Person, Receipt, ReceiptPublicKey, ReceiptSigner, SealedCopy, What,
};
use coffer_keys::{
    FileRoot, KeysError, Keystore, LevelOptions, MemoryRoot, ReceiptDetails, Sanitization,
};
use coffer_seal::{BucketId, SecretKey};
use serde_json::{Value, json};

fn details() -> ReceiptDetails {
    ReceiptDetails {
        performed_by: vec![Person {
            name: "COFFERALICE".into(),
            subject: Some("alice".into()),
            role: "requested".into(),
        }],
        requested_ms: 1_795_199_339_260,
        objects: 1234,
        bytes: 9_876_543_210,
        bucket_names: [(BucketId([1; 16]), "recordings".to_owned())].into(),
        verification: vec!["requests in flight were cut off".into()],
        remaining: vec!["3 data keys left the server".into()],
        copies: vec![SealedCopy {
            name: "far".into(),
            id: Some("c0".repeat(16)),
            url: "s3://copies/of-this".into(),
            made_at: "2026-11-20T18:28:59.260Z".into(),
            removed_at: None,
            keep_seconds: 604_800,
            holds: "noise".into(),
            keystore: None,
        }],
        last_audit_record: Some(AuditRecord {
            number: 77,
            hash: "ab".repeat(32),
        }),
    }
}

/// A keystore that erased a level of two buckets, and the receipt for it.
fn erased() -> (tempfile::TempDir, Keystore, Receipt) {
    let folder = tempfile::tempdir().expect("it works");
    let source = FileRoot::new(folder.path().join("root.key"));
    let keystore =
        Keystore::create(&folder.path().join("keystore"), Box::new(source)).expect("it works");
    let label = "s2:c1".parse().expect("it works");
    let level = keystore
        .add_level("secret", label, LevelOptions::default())
        .expect("it works");
    keystore
        .add_bucket(BucketId([1; 16]), level.id)
        .expect("it works");
    keystore
        .add_bucket(BucketId([2; 16]), level.id)
        .expect("it works");
    keystore.rotate_bucket(BucketId([2; 16])).expect("it works");
    let erased = keystore.erase_level(level.id).expect("it works");
    let receipt = keystore.sign_receipt(&erased, details()).expect("it works");
    (folder, keystore, receipt)
}

#[test]
fn a_receipt_says_what_a_certificate_of_sanitization_says() {
    let (_folder, keystore, receipt) = erased();
    assert_eq!(receipt.erased.what, What::Level);
    assert_eq!(receipt.erased.level.name, "secret");
    assert_eq!(receipt.erased.level.label.unwrap().to_string(), "s2:c1");
    let buckets = &receipt.erased.buckets;
    assert_eq!(buckets[0].name.as_deref(), Some("recordings"));
    assert_eq!(buckets[0].key_generations, [1]);
    assert_eq!(buckets[1].name, None);
    assert_eq!(buckets[1].key_generations, [1, 2]);
    assert_eq!(receipt.erased.bytes, 9_876_543_210);
    assert_eq!(receipt.erased.keystore_id, keystore.id().to_string());
    assert_eq!(receipt.requested_at, "2026-11-20T18:28:59.260Z");
    assert!(receipt.erased_at.as_str() > "2026");
    assert_eq!(receipt.method.category, Sanitization::Clear);
    assert!(receipt.medium.holder.contains("root.key"));
    assert!(receipt.verification.len() == 3 && receipt.verification[0].contains("read back"));
    assert!(
        receipt.remaining[0].contains("copies of both the keystore and the root-key file"),
        "what an old copy of both files would still allow is said plainly"
    );
    assert!(receipt.remaining[1].contains("3 data keys"));
}

#[test]
fn it_verifies_offline_with_the_public_key_alone() {
    let (_folder, keystore, receipt) = erased();
    let text = receipt.to_json();
    let key: ReceiptPublicKey = keystore
        .receipt_public_key()
        .unwrap()
        .to_string()
        .parse()
        .unwrap();
    drop(keystore);
    let read = Receipt::from_json(&text).unwrap();
    read.verify(&key).unwrap();
    assert_eq!(read, receipt);
    // However it is laid out: the canonical form is what was signed.
    let value: Value = serde_json::from_str(&text).unwrap();
    let compact = Receipt::from_json(&value.to_string()).unwrap();
    compact.verify(&key).unwrap();
}

#[test]
fn the_key_stays_the_same_through_restarts_and_erases() {
    let folder = tempfile::tempdir().unwrap();
    let (path, source) = (folder.path().join("keystore"), MemoryRoot::new());
    let keystore = Keystore::create(&path, Box::new(source.clone())).unwrap();
    let key = keystore.receipt_public_key().unwrap();
    keystore.rotate_root().unwrap();
    drop(keystore);
    let (again, _) = Keystore::open(&path, Box::new(source)).unwrap();
    assert_eq!(again.receipt_public_key().unwrap(), key);
    let other_path = folder.path().join("other");
    let other = Keystore::create(&other_path, Box::new(MemoryRoot::new())).unwrap();
    assert_ne!(other.receipt_public_key().unwrap(), key);
}

#[test]
fn any_change_of_the_text_fails() {
    let (_folder, keystore, receipt) = erased();
    let key = keystore.receipt_public_key().unwrap();
    let text = receipt.to_json().into_bytes();
    for offset in 0..text.len() {
        for mask in [0x01, 0x02, 0x10, 0x20] {
            let mut changed = text.clone();
            changed[offset] ^= mask;
            let Ok(changed) = String::from_utf8(changed) else {
                continue;
            };
            let accepted =
                Receipt::from_json(&changed).is_ok_and(|changed| changed.verify(&key).is_ok());
            assert!(!accepted, "offset {offset}, mask {mask:#x}");
        }
    }
}

#[test]
fn any_change_of_a_field_fails() {
    let (_folder, keystore, receipt) = erased();
    let key = keystore.receipt_public_key().unwrap();
    let whole = serde_json::to_value(&receipt).unwrap();
    let mut pointers = Vec::new();
    leaves(&whole, String::new(), &mut pointers);
    assert!(pointers.len() > 35, "{}", pointers.len());
    for pointer in &pointers {
        let mut changed = whole.clone();
        let leaf = changed.pointer_mut(pointer).unwrap();
        *leaf = match leaf.take() {
            Value::String(text) => json!(text + "x"),
            Value::Number(number) => json!(number.as_u64().unwrap() + 1),
            Value::Bool(is) => json!(!is),
            Value::Null => json!("something"),
            other => panic!("{other}"),
        };
        let accepted = Receipt::from_json(&changed.to_string())
            .is_ok_and(|changed| changed.verify(&key).is_ok());
        assert!(!accepted, "{pointer}");
    }
    for list in [
        "/verification",
        "/remaining",
        "/erased/buckets",
        "/performed_by",
    ] {
        let mut changed = whole.clone();
        changed
            .pointer_mut(list)
            .unwrap()
            .as_array_mut()
            .unwrap()
            .pop();
        let changed = Receipt::from_json(&changed.to_string()).unwrap();
        assert!(changed.verify(&key).is_err(), "{list}");
    }
}

fn leaves(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, format!("{pointer}/{name}"), found);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                leaves(value, format!("{pointer}/{index}"), found);
            }
        }
        _ => found.push(pointer),
    }
}

#[test]
fn what_was_added_or_written_twice_is_no_receipt() {
    let (_folder, _keystore, receipt) = erased();
    let text = receipt.to_json();
    for nonsense in [
        text.replacen('{', "{\"note\": \"trust me\",", 1),
        text.replacen(
            "\"objects\": 1234,",
            "\"objects\": 1, \"objects\": 1234,",
            1,
        ),
        text.replacen("coffer receipt v5", "coffer receipt v1", 1),
        text.replacen("coffer receipt v5", "coffer receipt v2", 1),
        text.replacen("coffer receipt v5", "coffer receipt v4", 1),
        text.replacen("coffer receipt v5", "coffer receipt v6", 1),
        text.replacen("\"copies\":", "\"backups\":", 1),
        text.replacen("\"what\": \"level\"", "\"what\": \"everything\"", 1),
        text.clone() + "{}",
        text[..text.len() - 3].to_owned(),
        String::new(),
        "[]".to_owned(),
    ] {
        assert_ne!(nonsense, text);
        let error = Receipt::from_json(&nonsense).unwrap_err();
        assert!(
            matches!(error, KeysError::ReceiptMalformed { .. }),
            "{error}"
        );
    }
}

#[test]
fn another_server_s_receipt_is_forged_even_when_it_names_this_one_s_key() {
    let (_folder, keystore, receipt) = erased();
    let key = keystore.receipt_public_key().unwrap();
    let other = ReceiptSigner::from_seed(&SecretKey::generate());
    let mut signed = receipt.sign(&other);
    signed.verify(&other.public_key()).unwrap();
    assert!(matches!(signed.verify(&key), Err(KeysError::ReceiptForged)));
    signed.public_key = key.to_string();
    assert!(signed.verify(&key).is_err());
    assert!(signed.verify(&other.public_key()).is_err());
    for text in ["", "ab", &"g".repeat(64), &"ab".repeat(33)] {
        assert!(matches!(
            text.parse::<ReceiptPublicKey>(),
            Err(KeysError::ReceiptKey)
        ));
    }
}

#[test]
fn a_receipt_of_before_has_no_ids_of_copies_and_is_none_with_them() {
    let (_folder, keystore, mut receipt) = erased();
    let key = keystore.receipt_public_key().unwrap();
    receipt.format = "coffer receipt v4".to_owned();
    let with_id = keystore.sign_again(receipt.clone(), 0).unwrap();
    assert!(with_id.verify(&key).is_err());
    receipt.copies.as_mut().unwrap()[0].id = None;
    let text = keystore.sign_again(receipt, 0).unwrap().to_json();
    let copies = serde_json::from_str::<Value>(&text).unwrap()["copies"].take();
    assert!(copies[0].get("id").is_none());
    let receipt = Receipt::from_json(&text).unwrap();
    receipt.verify(&key).unwrap();
    assert_eq!(receipt.to_json(), text);
}

#[test]
fn the_museum_s_receipts_verify() {
    let museum = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum");
    let read = |folder: &str| {
        let folder = museum.join(folder);
        let text = fs::read_to_string(folder.join("receipt.json")).unwrap();
        let key = fs::read_to_string(folder.join("receipt.pub")).unwrap();
        let receipt = Receipt::from_json(&text).unwrap();
        receipt.verify(&key.parse().unwrap()).unwrap();
        (text, receipt)
    };
    let (text, receipt) = read("format-1");
    assert_eq!(receipt.erased.level.name, "secret");
    assert_eq!(receipt.to_json(), text);
    let (_, receipt) = read("receipt-2");
    assert_eq!(receipt.format, "coffer receipt v2");
    assert_eq!(receipt.copies, None);
}

#[test]
fn where_an_audit_log_begins_is_signed_by_the_key_of_receipts() {
    let (_folder, keystore, receipt) = erased();
    let message = b"coffer audit prune v1\0and what follows";
    let signature = keystore.sign_checkpoint(message).unwrap();
    let key = keystore.receipt_public_key().unwrap().to_bytes();
    let key = aws_lc_rs::signature::UnparsedPublicKey::new(&aws_lc_rs::signature::ED25519, key);
    key.verify(message, &signature).unwrap();
    assert_eq!(receipt.format, "coffer receipt v5");
}
