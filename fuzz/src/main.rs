//! Fuzz targets for everything that parses bytes of others: `COFFER_FUZZ=TARGET coffer-fuzz`, with
//! libFuzzer's options. `scripts/fuzz` builds it as libFuzzer needs it, and runs the targets.
//!
//! The bodies live in the crates, under `fuzzing`, where they are tested too.

#![forbid(unsafe_code)]
#![no_main]

use std::env;
use std::process::exit;
use std::sync::LazyLock;

use coffer_s3::fuzzing as s3;
use libfuzzer_sys::fuzz_target;

/// Takes any bytes, and panics when what must hold does not.
type Body = fn(&[u8]);

/// What is fuzzed, by name.
const TARGETS: [(&str, Body); 30] = [
    ("audit", coffer_audit::fuzzing::fuzz_audit),
    ("client_answer", coffer_client::fuzzing::answer),
    ("data_head", coffer::fuzzing::data_head),
    ("keys_export", coffer_keys::fuzzing::fuzz_export),
    ("keys_receipt", coffer_keys::fuzzing::fuzz_receipt),
    ("keys_source", coffer_keys::fuzzing::fuzz_source),
    ("keystore", coffer_keys::fuzzing::fuzz_keystore),
    ("label", coffer_label::fuzzing::fuzz_label),
    ("policy", coffer_policy::fuzzing::fuzz_policy),
    ("s3_acl", s3::acl),
    ("s3_chunks", s3::chunks),
    ("s3_copy_source", s3::copy_source),
    ("s3_cors", s3::cors),
    ("s3_document", s3::document),
    ("s3_etags", s3::etags),
    ("s3_form", s3::form),
    ("s3_headers", s3::headers),
    ("s3_hosts", s3::hosts),
    ("s3_lifecycle", s3::lifecycle),
    ("s3_range", s3::range),
    ("s3_signature", s3::signature),
    ("s3_tag_set", s3::tag_set),
    ("s3_tags", s3::tagging_header),
    ("s3_token", s3::continuation_token),
    ("s3_words", s3::words),
    ("seal_edit", coffer_seal::fuzzing::fuzz_edit),
    ("seal_open", coffer_seal::fuzzing::fuzz_open),
    ("store_blob_path", coffer_store::fuzzing::blob_path),
    ("store_columns", coffer_store::fuzzing::columns),
    ("store_delimiter", coffer_store::fuzzing::delimiter),
];

static TARGET: LazyLock<Body> = LazyLock::new(|| {
    let asked = env::var("COFFER_FUZZ").unwrap_or_default();
    match TARGETS.iter().find(|(name, _)| *name == asked) {
        Some((_, body)) => *body,
        None => {
            let names = TARGETS.map(|(name, _)| name).join("\n");
            println!("{names}");
            eprintln!("COFFER_FUZZ={asked:?} is no target; the targets are those above");
            exit(2);
        }
    }
});

fuzz_target!(init: { LazyLock::force(&TARGET); }, |data: &[u8]| TARGET(data));
