//! What a process wrote, as far as it can be read.

use crate::commands::drain::Stream;
use crate::commands::scratch::{self, TAIL_BYTES};
use std::fs;
use std::path::PathBuf;

/// What can be read of the output of a process.
#[derive(Default)]
pub(crate) enum Said {
    #[default]
    Nothing,
    File(PathBuf),
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
            Said::File(path) => {
                String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
            }
            Said::Stream(stream) => stream.text(),
        }
    }

    pub(crate) fn tail(&self) -> String {
        match self {
            Said::Nothing => String::new(),
            Said::File(path) => scratch::tail(path),
            Said::Stream(stream) => scratch::tail_text(&stream.tail(TAIL_BYTES)),
        }
    }

    pub(crate) fn digest(&self) -> Option<String> {
        match self {
            Said::Nothing => None,
            Said::File(path) => scratch::digest(path),
            Said::Stream(stream) => stream.digest(),
        }
    }
}
