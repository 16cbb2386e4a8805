//! Folders that live as long as a process holds their lock, whichever namespace looks at them:
//! process numbers mean nothing where a folder or a hierarchy is shared with a container.

use rustix::fs::{flock, fstat, open, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Somebody took the folder for a leftover before it was locked; under another name it goes well.
pub(crate) const LOST: io::ErrorKind = io::ErrorKind::ResourceBusy;

/// Makes a folder and locks it: it lives until every copy of the descriptor is closed.
///
/// # Errors
/// Of the kind `LOST`, and what making a folder may end with.
pub(crate) fn make(dir: &Path) -> io::Result<OwnedFd> {
    DirBuilder::new().mode(0o700).create(dir)?;
    let lost = |_| io::Error::from(LOST);
    let folder = open_folder(dir).map_err(lost)?;
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(LOST.into()),
        // Where folders cannot be locked, nobody finds this one unlocked either.
        Ok(()) | Err(_) if is_still(&folder, dir) => Ok(folder),
        Ok(()) | Err(_) => Err(LOST.into()),
    }
}

/// A leftover of this user, locked, so that one process alone deals with it.
pub(crate) struct Leftover {
    pub id: String,
    pub dir: PathBuf,
    _lock: OwnedFd,
}

/// Folders called `<prefix><id>` of this user that nobody holds. Links, files, and whatever belongs
/// to others are neither opened nor tried.
pub(crate) fn leftovers(parent: &Path, prefix: &str, is_id: fn(&str) -> bool) -> Vec<Leftover> {
    let named = |name: OsString| {
        let id = name.to_str()?.strip_prefix(prefix)?;
        is_id(id).then(|| id.to_string())
    };
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let (id, dir) = (named(entry.file_name())?, entry.path());
            let lock = take(&dir)?;
            Some(Leftover {
                id,
                dir,
                _lock: lock,
            })
        })
        .collect()
}

/// The lock of a folder of this user that nobody holds.
fn take(dir: &Path) -> Option<OwnedFd> {
    let folder = open_own(dir)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    is_still(&folder, dir).then_some(folder)
}

/// A folder itself, no link to one, that this user owns; others are not opened.
pub(crate) fn open_own(dir: &Path) -> Option<OwnedFd> {
    let own = rustix::process::geteuid().as_raw();
    let named = std::fs::symlink_metadata(dir).ok()?;
    let folder = (named.is_dir() && named.uid() == own).then(|| open_folder(dir).ok())??;
    (fstat(&folder).ok()?.st_uid == own).then_some(folder)
}

fn open_folder(dir: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(dir, flags, Mode::empty())
}

/// Whether the name still stands for what was opened.
fn is_still(folder: &OwnedFd, dir: &Path) -> bool {
    let named = std::fs::symlink_metadata(dir);
    let opened = fstat(folder);
    matches!((named, opened), (Ok(a), Ok(b)) if a.dev() == b.st_dev && a.ino() == b.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn place(name: &str) -> PathBuf {
        let name = format!("lease-test-{}-{name}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).unwrap();
        dir
    }

    fn found(parent: &Path) -> Vec<String> {
        let any = |id: &str| !id.is_empty();
        let mut found: Vec<_> = leftovers(parent, "run-", any)
            .into_iter()
            .map(|left| left.id)
            .collect();
        found.sort();
        found
    }

    #[test]
    fn what_is_held_is_no_leftover_and_what_was_let_go_is_one() {
        let parent = place("held");
        let held = make(&parent.join("run-a")).unwrap();
        let copy = held.try_clone().unwrap();
        assert_eq!(found(&parent), Vec::<String>::new());
        drop(held);
        assert_eq!(found(&parent), Vec::<String>::new());
        drop(copy);
        assert_eq!(found(&parent), ["a"]);
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn a_leftover_is_dealt_with_by_one_alone() {
        let parent = place("alone");
        fs::create_dir(parent.join("run-a")).unwrap();
        let any = |_: &str| true;
        let first = leftovers(&parent, "run-", any);
        assert_eq!(first.len(), 1);
        assert_eq!(found(&parent), Vec::<String>::new());
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn links_files_and_other_names_are_no_leftovers() {
        let parent = place("links");
        fs::create_dir(parent.join("victim")).unwrap();
        symlink(parent.join("victim"), parent.join("run-link")).unwrap();
        fs::write(parent.join("run-file"), "").unwrap();
        assert_eq!(found(&parent), Vec::<String>::new());
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn folders_of_others_are_not_even_tried() {
        let parent = place("others");
        for number in 0..50 {
            let dir = parent.join(format!("run-{number}"));
            fs::create_dir(&dir).unwrap();
            // Only root can give folders away; for others the test says nothing.
            let _ = std::os::unix::fs::chown(&dir, Some(12345), None);
        }
        if rustix::process::geteuid().is_root() {
            assert_eq!(found(&parent), Vec::<String>::new());
        }
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn what_was_taken_for_a_leftover_before_it_was_locked_is_lost() {
        let parent = place("lost");
        let dir = parent.join("run-a");
        fs::create_dir(&dir).unwrap();
        let folder = open_folder(&dir).unwrap();
        assert!(is_still(&folder, &dir));
        fs::remove_dir(&dir).unwrap();
        assert!(!is_still(&folder, &dir));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(parent.join("more")).unwrap();
        assert!(make(&dir).is_err());
        fs::remove_dir_all(&parent).unwrap();
    }
}
