extern "C" { fn fast(n: u64) -> u64; }
pub fn run(n: u64) -> u64 { unsafe { fast(n) } }
