//! SHA-256 of files and bytes, in hexadecimal.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Of a file's content, and its size in bytes.
pub(crate) fn of_file(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0u8; 1 << 16];
    let mut size_bytes = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        size_bytes += count as u64;
    }
    Ok((hexadecimal(&hash.finalize()), size_bytes))
}

pub(crate) fn of_bytes(data: &[u8]) -> String {
    hexadecimal(&Sha256::digest(data))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
