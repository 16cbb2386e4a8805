//! Trees of strangers copied and removed by descriptors: of any depth, with any names, and without
//! following a link that is put there meanwhile.

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Deeper folders are closed, and found again through "..", of which nobody can make a link.
const MOST_OPEN: usize = 16;

type Identity = (u64, u64);

/// A place in a tree, with few descriptors open however deep it is.
struct Descent {
    open: VecDeque<OwnedFd>,
    levels: Vec<(CString, Identity)>,
    top: Identity,
}

impl Descent {
    fn new(root: &Path) -> io::Result<Descent> {
        let top = fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Descent {
            top: identity(&fs::fstat(&top)?),
            open: VecDeque::from([top]),
            levels: Vec::new(),
        })
    }

    fn here(&self) -> io::Result<BorrowedFd<'_>> {
        let folder = self.open.back().map(AsFd::as_fd);
        folder.ok_or_else(|| io::Error::other("no folder is open"))
    }

    /// Steps into a folder; never through a link.
    fn down(&mut self, name: &CStr) -> io::Result<()> {
        let folder = fs::openat(self.here()?, name, FOLDER, Mode::empty())?;
        self.levels
            .push((name.to_owned(), identity(&fs::fstat(&folder)?)));
        self.open.push_back(folder);
        if self.open.len() > MOST_OPEN {
            self.open.pop_front();
        }
        Ok(())
    }

    /// Steps out of the folder, whose name it gives.
    fn up(&mut self) -> io::Result<Option<CString>> {
        if self.open.len() == 1 {
            let parent = fs::openat(self.here()?, c"..", FOLDER, Mode::empty())?;
            let above = self.levels.len().checked_sub(2);
            let wanted = above.map_or(self.top, |level| self.levels[level].1);
            if identity(&fs::fstat(&parent)?) != wanted {
                return Err(Errno::STALE.into());
            }
            self.open.push_front(parent);
        }
        self.open.pop_back();
        Ok(self.levels.pop().map(|(name, _)| name))
    }

    fn name(&self, last: &CStr) -> PathBuf {
        let parts = self.levels.iter().map(|(name, _)| name.as_c_str());
        parts.chain([last]).map(as_os).collect()
    }
}

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

// Their types differ from one architecture to the next.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn identity(status: &Stat) -> Identity {
    (status.st_dev as u64, status.st_ino as u64)
}

fn as_os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

/// Names in a folder, without "." and "..".
fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if name.as_c_str() != c"." && name.as_c_str() != c".." {
            found.push(name);
        }
    }
    Ok(found)
}

fn status_of(folder: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Stat> {
    fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn kind(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

/// Copies what is below a folder over what is there already; folders are made, links stay links.
/// `without` are relative names. What is `readable` can be read by whoever it is, and run if its
/// maker may.
pub(crate) fn copy(from: &Path, to: &Path, without: &[String], readable: bool) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    let (mut source, mut target) = (Descent::new(from)?, Descent::new(to)?);
    if readable {
        fs::fchmod(target.here()?, Mode::from_raw_mode(0o755))?;
    }
    let mut pending = vec![names(source.here()?)?];
    while let Some(level) = pending.last_mut() {
        let Some(name) = level.pop() else {
            pending.pop();
            if !pending.is_empty() {
                source.up()?;
                target.up()?;
            }
            continue;
        };
        let left_out = !without.is_empty() && {
            let whole = source.name(&name);
            without.iter().any(|each| Path::new(each) == whole)
        };
        if left_out {
            continue;
        }
        let status = status_of(source.here()?, &name)?;
        if kind(&status) == FileType::Directory {
            make_folder(target.here()?, &name)?;
            source.down(&name)?;
            target.down(&name)?;
            if readable {
                fs::fchmod(target.here()?, Mode::from_raw_mode(0o755))?;
            }
            pending.push(names(source.here()?)?);
        } else {
            match kind(&status) {
                FileType::RegularFile => {
                    copy_file(source.here()?, target.here()?, &name, readable)?;
                }
                other => copy_other(source.here()?, target.here()?, &name, other)?,
            }
        }
    }
    Ok(())
}

/// What is there and no folder, such as a link of an earlier folder, makes room.
fn make_folder(target: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    if let Ok(there) = status_of(target, name) {
        if kind(&there) == FileType::Directory {
            return Ok(());
        }
        fs::unlinkat(target, name, AtFlags::empty())?;
    }
    Ok(fs::mkdirat(target, name, Mode::from_raw_mode(0o777))?)
}

fn make_room(target: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match fs::unlinkat(target, name, AtFlags::empty()) {
        Err(error) if error != Errno::NOENT => Err(error.into()),
        _ => Ok(()),
    }
}

/// Links are made anew; pipes, sockets and devices are left out.
fn copy_other(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    name: &CStr,
    kind: FileType,
) -> io::Result<()> {
    make_room(target, name)?;
    if kind == FileType::Symlink {
        let points_to = fs::readlinkat(source, name, Vec::new())?;
        fs::symlinkat(points_to.as_c_str(), target, name)?;
    }
    Ok(())
}

fn copy_file(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    name: &CStr,
    readable: bool,
) -> io::Result<()> {
    make_room(target, name)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let from = File::from(fs::openat(source, name, flags, Mode::empty())?);
    let data = from.metadata()?;
    if !data.is_file() {
        return Err(Errno::STALE.into());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut to = File::from(fs::openat(target, name, flags, Mode::from_raw_mode(0o600))?);
    // One that grows meanwhile has no end.
    io::copy(&mut from.take(data.size()), &mut to)?;
    // Never set-user-id, and always to be removed by its maker.
    let mut mode = data.mode() & 0o777 | 0o600;
    if readable {
        mode |= 0o044 | (mode & 0o100) >> 3 | (mode & 0o100) >> 6;
    }
    Ok(fs::fchmod(&to, Mode::from_raw_mode(mode))?)
}

/// What a file takes at least, where all is counted: an empty one has a name and an inode, too.
pub(crate) const LEAST_FILE: u64 = 4096;

/// Bytes on disk below a folder, a file with several names once for each, and each `LEAST_FILE` at
/// least; it may stop counting beyond `enough`. What cannot be read counts 0.
pub(crate) fn used_bytes(root: &Path, enough: u64) -> u64 {
    let mut sum = 0;
    // A tree that changes meanwhile counts as far as it was seen.
    let _ = add_used(root, enough, &mut sum);
    sum
}

fn add_used(root: &Path, enough: u64, sum: &mut u64) -> io::Result<()> {
    let mut place = Descent::new(root)?;
    let mut pending = vec![names(place.here()?)?];
    while let Some(level) = pending.last_mut() {
        let Some(name) = level.pop() else {
            pending.pop();
            if !pending.is_empty() {
                place.up()?;
            }
            continue;
        };
        let Ok(status) = status_of(place.here()?, &name) else {
            continue;
        };
        *sum += (status.st_blocks as u64 * 512).max(LEAST_FILE);
        if *sum > enough {
            return Ok(());
        }
        if kind(&status) == FileType::Directory && place.down(&name).is_ok() {
            pending.push(names(place.here()?).unwrap_or_default());
        }
    }
    Ok(())
}

/// Removes what it can of a folder, whatever its permissions are; an error where something is left.
pub(crate) fn remove(root: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(root)?.is_dir() {
        return std::fs::remove_file(root);
    }
    open_up(fs::CWD, &CString::new(root.as_os_str().as_bytes())?);
    let mut place = Descent::new(root)?;
    let mut pending = vec![emptied(place.here()?)];
    while let Some(level) = pending.last_mut() {
        if let Some(name) = level.pop() {
            if enter(&mut place, &name).is_ok() {
                pending.push(emptied(place.here()?));
            }
            continue;
        }
        pending.pop();
        if pending.is_empty() {
            break;
        }
        if let Some(name) = place.up()? {
            // What is left shows where its folder is removed.
            let _ = fs::unlinkat(place.here()?, &name, AtFlags::REMOVEDIR);
        }
    }
    std::fs::remove_dir(root)
}

fn enter(place: &mut Descent, name: &CStr) -> io::Result<()> {
    open_up(place.here()?, name);
    place.down(name)
}

/// Removes what is no folder; names of the folders.
fn emptied(folder: BorrowedFd<'_>) -> Vec<CString> {
    let mut folders = names(folder).unwrap_or_default();
    folders.retain(|name| match fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => false,
        Err(_) => status_of(folder, name).is_ok_and(|it| kind(&it) == FileType::Directory),
    });
    folders
}

/// Gives the owner all permissions of a folder; through a descriptor, so that it is no link's.
fn open_up(folder: BorrowedFd<'_>, name: &CStr) {
    let closed = |it: &Stat| kind(it) == FileType::Directory && it.st_mode & 0o700 != 0o700;
    if !status_of(folder, name).is_ok_and(|it| closed(&it)) {
        return;
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(opened) = fs::openat(folder, name, flags, Mode::empty()) {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let _ = fs::chmod(path, Mode::from_raw_mode(0o700));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("trees-test-{}-{name}", std::process::id()))
    }

    fn deep(root: &Path, depth: usize) {
        std::fs::create_dir_all(root).unwrap();
        let name = CString::new("d".repeat(100)).unwrap();
        let mut place = fs::open(root, OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..depth {
            fs::mkdirat(&place, &name, Mode::from_raw_mode(0o700)).unwrap();
            place = fs::openat(&place, &name, FOLDER, Mode::empty()).unwrap();
        }
        fs::openat(
            &place,
            c"last",
            OFlags::CREATE | OFlags::WRONLY,
            Mode::from_raw_mode(0o600),
        )
        .unwrap();
    }

    #[test]
    fn a_tree_that_no_path_reaches_is_copied_and_removed() {
        let dir = folder("deep");
        deep(&dir.join("a"), 1000);
        copy(&dir.join("a"), &dir.join("b"), &["last".into()], false).unwrap();
        assert!(used_bytes(&dir, 1 << 40) >= 2 * 1000);
        remove(&dir).unwrap();
        assert!(!dir.exists());
    }

    #[test]
    fn links_are_neither_followed_nor_written_through() {
        let dir = folder("links");
        for name in ["out", "a", "b/lib"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        std::fs::write(dir.join("out/mine"), "mine").unwrap();
        std::fs::write(dir.join("b/lib/mine"), "theirs").unwrap();
        symlink(dir.join("out"), dir.join("a/lib")).unwrap();
        copy(&dir.join("a"), &dir.join("c"), &[], true).unwrap();
        assert!(dir.join("c/lib").is_symlink());
        copy(&dir.join("b"), &dir.join("c"), &[], true).unwrap();
        assert!(!dir.join("c/lib").is_symlink());
        remove(&dir.join("a")).unwrap();
        assert_eq!(std::fs::read(dir.join("out/mine")).unwrap(), b"mine");
        remove(&dir).unwrap();
    }

    #[test]
    fn what_links_lead_to_is_not_counted() {
        let dir = folder("counted");
        for name in ["out", "in"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        std::fs::write(dir.join("out/large"), vec![1; 1 << 20]).unwrap();
        symlink(dir.join("out"), dir.join("in/folder")).unwrap();
        symlink(dir.join("out/large"), dir.join("in/file")).unwrap();
        assert!(used_bytes(&dir.join("in"), 1 << 40) < 100_000);
        assert!(used_bytes(&dir, 1 << 40) >= 1 << 20);
        remove(&dir).unwrap();
    }

    #[test]
    fn folders_without_permissions_are_removed() {
        let dir = folder("closed");
        std::fs::create_dir_all(dir.join("a/b/c")).unwrap();
        for name in ["a/b/c", "a/b", "a"] {
            let none = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(dir.join(name), none).unwrap();
        }
        remove(&dir).unwrap();
        assert!(!dir.exists());
    }
}
