//! What is fuzzed here: programs, machine code, and questions about them.

/// A program, of which the compile units are read.
pub fn units(data: &[u8]) {
    let _ = crate::units::of_bytes(data);
}

/// A program, at places of which functions are looked for.
pub fn places(data: &[u8]) {
    if let Ok(file) = object::File::parse(data) {
        let places: Vec<u64> = (0..32).map(|place| place * 977).collect();
        let _ = crate::locate::of_files(&file, None, &places);
    }
}

/// Machine code of either size, and a question about some.
pub fn code(data: &[u8]) {
    for bits in [32, 64] {
        let found = crate::disassemble::words(bits, u64::MAX - 8, data);
        let read: usize = found.iter().map(|(_, size, _, _)| size).sum();
        assert_eq!(read, data.len());
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = crate::disassembled(text);
    }
}
