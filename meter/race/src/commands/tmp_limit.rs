//! What programs write below their `{tmp}`, so that it cannot fill the disk.

use crate::commands::trees;
use ensign_host::clock;
use libc::pid_t;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PAUSE_NS: u64 = 100_000_000;
const PAUSE_PER_WALK: u64 = 100;
/// The folder is gone through when so much of the limit may have been written since.
const PART: u64 = 8;

/// The limit of each variant's `{tmp}`, looked at by the free space of the file system.
pub(crate) struct TmpLimit {
    most: u64,
    free: u64,
    next_ns: u64,
}

impl TmpLimit {
    pub(crate) fn new(most: u64, scratch: &Path) -> TmpLimit {
        TmpLimit {
            most,
            free: free_bytes(scratch).unwrap_or(0),
            next_ns: 0,
        }
    }

    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    pub(crate) fn next_look_ns(&self) -> u64 {
        self.next_ns
    }

    /// Whether a variant wrote more than it may; looks only where it is time, and goes through its
    /// folder only where there is less space than before.
    pub(crate) fn is_exceeded(&mut self, tmp: &Path, members: impl FnOnce() -> Vec<pid_t>) -> bool {
        let start = clock::now_ns();
        if start < self.next_ns {
            return false;
        }
        self.next_ns = start + PAUSE_NS;
        let Some(free) = free_bytes(tmp) else {
            return false;
        };
        if self.free.saturating_sub(free) < self.most / PART {
            // What others have freed must not hide what is written next.
            self.free = self.free.max(free);
            return false;
        }
        self.free = free;
        let over = self.holds_too_much(tmp, &members());
        let now = clock::now_ns();
        self.next_ns = now + ((now - start) * PAUSE_PER_WALK).max(PAUSE_NS);
        over
    }

    /// The same, whatever the time and the free space.
    pub(crate) fn holds_too_much(&self, tmp: &Path, members: &[pid_t]) -> bool {
        let named = trees::used_bytes(tmp, self.most);
        named >= self.most || named + removed_bytes(tmp, members) >= self.most
    }
}

/// How much may be written, in files of any size: both blocks and inodes run out.
fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bfree * stat.f_frsize + stat.f_ffree * trees::LEAST_FILE)
}

/// Files without a name that processes still have open, on the file system of a folder.
fn removed_bytes(folder: &Path, members: &[pid_t]) -> u64 {
    let Ok(device) = fs::symlink_metadata(folder).map(|data| data.dev()) else {
        return 0;
    };
    let mut seen = BTreeSet::new();
    let mut sum = 0;
    for pid in members {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter();
        for entry in open.flatten().flatten() {
            let Ok(data) = fs::metadata(entry.path()) else {
                continue;
            };
            let counts = data.is_file() && data.nlink() == 0 && data.dev() == device;
            if counts && seen.insert(data.ino()) {
                sum += data.blocks() * 512;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn files_with_and_without_a_name_count() {
        let dir = std::env::temp_dir().join(format!("tmp-limit-{}", std::process::id()));
        fs::create_dir_all(dir.join("below")).unwrap();
        let limit = TmpLimit::new(1 << 20, &dir);
        let own = [std::process::id() as pid_t];
        assert!(!limit.holds_too_much(&dir, &own));
        let mut open = File::create(dir.join("below/file")).unwrap();
        open.write_all(&vec![1; 3 << 19]).unwrap();
        open.sync_all().unwrap();
        assert!(limit.holds_too_much(&dir, &[]));
        fs::remove_file(dir.join("below/file")).unwrap();
        assert!(!limit.holds_too_much(&dir, &[]) && limit.holds_too_much(&dir, &own));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn empty_files_count() {
        let dir = std::env::temp_dir().join(format!("tmp-files-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let limit = TmpLimit::new(1 << 20, &dir);
        for number in 0..256 {
            assert!(!limit.holds_too_much(&dir, &[]), "{number}");
            File::create(dir.join(number.to_string())).unwrap();
        }
        assert!(limit.holds_too_much(&dir, &[]));
        fs::remove_dir_all(dir).unwrap();
    }
}
