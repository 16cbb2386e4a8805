pub fn more(n: u64) -> u64 { n + 1 }
