//! What is fuzzed here: numbers in what programs print, and texts of the kernel.

use crate::follow::places;
use crate::processes::procfs::Stat;
use crate::variant::sampling::Stand;
use crate::{activity, score};

/// What a program printed, after a line with the pattern.
pub fn printed(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some((pattern, text)) = text.split_once('\n') {
        let _ = score::number(text, pattern, "ms");
        let _ = score::numbers(text, "", pattern, "");
        let _ = score::numbers(
            text,
            "",
            r"(?P<name>\S+) +(?P<value>[\d.,_' eE+-]+)",
            "MB/s",
        );
        let _ = score::number(text, r"([\d.,_' eE+-]+)", "MB/s");
    }
}

/// Lines of /proc/PID/stat, /proc/PID/syscall and /proc/PID/maps.
pub fn kernel(data: &[u8]) {
    let _ = Stat::parse(data);
    let _ = activity::state(data);
    let text = String::from_utf8_lossy(data);
    let _ = activity::written_fd(&text);
    let _ = Stand::parse(&text);
    let _ = places::region(&text);
}
