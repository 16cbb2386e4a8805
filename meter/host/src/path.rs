//! Paths as their words say them.

use std::path::{Component, Path, PathBuf};

/// A path without `.` and `..`, whatever links there are.
pub fn lexically(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::CurDir => {}
            part => result.push(part),
        }
    }
    result
}
