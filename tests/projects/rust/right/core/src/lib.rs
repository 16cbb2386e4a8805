pub fn step(n: u64) -> u64 { (0..n).fold(0u64, |s, i| s.wrapping_mul(31).wrapping_add(i)) }
