#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| coffer_store::fuzzing::delimiter(data));
