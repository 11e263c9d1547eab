#![no_main]

#[path = "../../tests/it/support/fuzzing.rs"]
#[allow(dead_code)]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::captions(bytes));
