#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| coffer_audit::fuzzing::fuzz_audit(data));
