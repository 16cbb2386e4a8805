//! What a process wrote, as far as it can be read.

use crate::commands::drain::Stream;
use crate::commands::scratch::{self, TAIL_BYTES};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Of a file no more is read for a number that stands in it: so much of its beginning and its end.
const HEAD_BYTES: u64 = 1 << 16;
const END_BYTES: u64 = 1 << 20;

/// What can be read of the output of a process.
#[derive(Default)]
pub(crate) enum Said {
    #[default]
    Nothing,
    /// As it was opened: by its name the program may have put anything there meanwhile.
    File(File),
    Stream(Stream),
}

impl Said {
    /// Once nobody writes any more: all of it can be read then.
    pub(crate) fn finish(&self) {
        if let Said::Stream(stream) = self {
            stream.finish();
        }
    }

    /// What was written so far; of much that flowed, the beginning and the end.
    pub(crate) fn text(&self) -> String {
        match self {
            Said::Nothing => String::new(),
            Said::File(file) => {
                let bytes = both_ends(file).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Said::Stream(stream) => stream.text(),
        }
    }

    pub(crate) fn tail(&self) -> String {
        match self {
            Said::Nothing => String::new(),
            Said::File(file) => scratch::tail(file),
            Said::Stream(stream) => scratch::tail_text(&stream.tail(TAIL_BYTES)),
        }
    }

    pub(crate) fn digest(&self) -> Option<String> {
        match self {
            Said::Nothing => None,
            Said::File(file) => scratch::digest(file),
            Said::Stream(stream) => stream.digest(),
        }
    }
}

fn both_ends(file: &File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = read_at(file, 0, length.min(HEAD_BYTES))?;
    let end = length.saturating_sub(END_BYTES).max(HEAD_BYTES);
    if end > HEAD_BYTES {
        bytes.push(b'\n');
    }
    bytes.extend(read_at(file, end, length.saturating_sub(end))?);
    Ok(bytes)
}

fn read_at(file: &File, at: u64, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count as usize];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_file_both_ends_are_read() {
        let path = std::env::temp_dir().join(format!("said-test-{}", std::process::id()));
        std::fs::write(&path, format!("begin\n{}\nend\n", "x".repeat(3 << 20))).unwrap();
        let said = Said::File(File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let text = said.text();
        assert!(text.starts_with("begin\n") && text.ends_with("x\nend\n"));
        assert_eq!(text.len() as u64, HEAD_BYTES + 1 + END_BYTES);
        assert!(said.tail().ends_with("\nend\n"));
    }
}
