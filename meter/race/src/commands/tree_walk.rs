//! Folders that programs have left, of any shape: links are never followed, and depth costs neither
//! stack nor descriptors.

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// No deeper tree is measured: a name takes a descriptor per level while it is gone through.
const DEEPEST: usize = 200;

/// Bytes on disk below a folder, a file with several names once for each; it may stop counting
/// beyond `enough`. What cannot be read counts 0.
pub(crate) fn used_bytes(folder: &Path, enough: u64) -> u64 {
    let mut sum = 0;
    let mut open: Vec<Dir> = Vec::new();
    open.extend(
        fs::open(folder, FOLDER, Mode::empty())
            .ok()
            .and_then(|fd| Dir::new(fd).ok()),
    );
    loop {
        let depth = open.len();
        let Some(dir) = open.last_mut() else {
            return sum;
        };
        let Some(entry) = dir.read() else {
            open.pop();
            continue;
        };
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        if is_dots(name.to_bytes()) {
            continue;
        }
        let Ok(fd) = dir.fd() else { continue };
        let Ok(data) = fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        sum += data.st_blocks as u64 * 512;
        if sum > enough {
            return sum;
        }
        if FileType::from_raw_mode(data.st_mode) == FileType::Directory {
            if depth >= DEEPEST {
                // Nobody needs this: it counts as too much.
                return enough.saturating_add(1);
            }
            let below = fs::openat(fd, name, FOLDER, Mode::empty());
            open.extend(below.ok().and_then(|fd| Dir::new(fd).ok()));
        }
    }
}

/// Removes a folder and all below it, whatever its permissions. True where nothing is left.
pub(crate) fn remove(folder: &Path) -> bool {
    let top = match open_up(fs::CWD, folder) {
        Ok(top) => top,
        Err(Errno::NOENT) => return true,
        // A link, or a file.
        Err(_) => return fs::unlink(folder).is_ok(),
    };
    let mut moved = 0u64;
    // What lies deeper is moved up until nothing does.
    while empty(&top, &top, &mut moved) {}
    fs::rmdir(folder).is_ok()
}

/// Removes what is in one folder, or moves it up where it has something in it; whether anything
/// was moved or removed.
fn empty(dir: &OwnedFd, top: &OwnedFd, moved: &mut u64) -> bool {
    let mut changed = false;
    for (name, kind) in entries(dir) {
        let removed = match kind {
            FileType::Directory => remove_folder(dir, &name, top, moved),
            _ => fs::unlinkat(dir, &name, AtFlags::empty()).is_ok(),
        };
        changed |= removed;
    }
    changed
}

fn remove_folder(dir: &OwnedFd, name: &CString, top: &OwnedFd, moved: &mut u64) -> bool {
    let Ok(below) = open_up(dir, name) else {
        return false;
    };
    for (inner, kind) in entries(&below) {
        if kind == FileType::Directory {
            // Its entry for the parent is written anew, which takes a right.
            let _ = open_up(&below, &inner);
            *moved += 1;
            let new = CString::new(format!(".moved-{moved}")).expect("no NUL");
            let _ = fs::renameat(&below, &inner, top, &new);
        } else {
            let _ = fs::unlinkat(&below, &inner, AtFlags::empty());
        }
    }
    fs::unlinkat(dir, name, AtFlags::REMOVEDIR).is_ok()
}

fn open_up<P: rustix::path::Arg + Copy>(
    at: impl rustix::fd::AsFd,
    name: P,
) -> rustix::io::Result<OwnedFd> {
    match fs::openat(&at, name, FOLDER, Mode::empty()) {
        Ok(fd) => {
            let _ = fs::fchmod(&fd, Mode::RWXU);
            Ok(fd)
        }
        Err(Errno::ACCESS) => {
            fs::chmodat(&at, name, Mode::RWXU, AtFlags::empty())?;
            fs::openat(&at, name, FOLDER, Mode::empty())
        }
        Err(error) => Err(error),
    }
}

fn entries(dir: &OwnedFd) -> Vec<(CString, FileType)> {
    let Ok(list) = Dir::read_from(dir) else {
        return Vec::new();
    };
    let named = list
        .flatten()
        .filter(|entry| !is_dots(entry.file_name().to_bytes()));
    named
        .map(|entry| {
            let name = entry.file_name().to_owned();
            let kind = match entry.file_type() {
                FileType::Unknown => fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |data| {
                        FileType::from_raw_mode(data.st_mode)
                    }),
                known => known,
            };
            (name, kind)
        })
        .collect()
}

fn is_dots(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("walk-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_tree_of_any_depth_and_permission_goes() {
        let dir = folder("deep");
        let mut at = fs::open(&dir, FOLDER, Mode::empty()).unwrap();
        for _ in 0..3000 {
            fs::mkdirat(&at, "deeper", Mode::RWXU).unwrap();
            at = fs::openat(&at, "deeper", FOLDER, Mode::empty()).unwrap();
        }
        std::fs::create_dir_all(dir.join("closed/in")).unwrap();
        std::fs::write(dir.join("closed/in/file"), "x").unwrap();
        let closed = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(dir.join("closed"), closed).unwrap();
        assert_eq!(used_bytes(&dir, 1 << 40), (1 << 40) + 1);
        assert!(remove(&dir));
        assert!(!dir.exists());
        assert!(remove(&dir), "nothing is there");
    }

    #[test]
    fn links_are_not_followed() {
        let (kept, dir) = (folder("kept"), folder("links"));
        std::fs::write(kept.join("file"), vec![0; 100_000]).unwrap();
        symlink(&kept, dir.join("folder")).unwrap();
        symlink(kept.join("file"), dir.join("file")).unwrap();
        assert!(used_bytes(&dir, 1 << 40) < 50_000);
        assert!(remove(&dir) && kept.join("file").exists());
        symlink(&kept, &dir).unwrap();
        assert!(remove(&dir) && kept.join("file").exists());
        assert!(remove(&kept));
    }
}
