//! One target for libFuzzer: `FUZZ_TARGET=NAME ensign-fuzz FOLDER [OPTION...]`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    ensign_fuzz::target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET: no target {name:?}"))
});

fuzz_target!(|data: &[u8]| RUN(data));
