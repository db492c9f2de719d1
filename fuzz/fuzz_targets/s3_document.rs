#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| coffer_s3::fuzzing::document(data));
