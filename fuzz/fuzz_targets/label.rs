#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| coffer_label::fuzzing::fuzz_label(data));
