#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| coffer_keys::fuzzing::fuzz_export(data));
