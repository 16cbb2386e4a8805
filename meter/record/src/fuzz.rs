//! What is fuzzed here: settings, archives and linker scripts of a build, command lines.

use crate::{call, inputs, recorder};
use std::path::Path;

/// What stands in the place of an input of a link; files that it names do not lie there.
pub fn linked(data: &[u8]) {
    inputs::fuzz(data, Path::new("/nonexistent/libx.a"));
}

/// The settings of the recorder.
pub fn settings(data: &[u8]) {
    let _ = recorder::settings_of(data);
}

/// A question about a command line.
pub fn question(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = crate::parsed(text);
        let _ = call::split(text);
    }
}
