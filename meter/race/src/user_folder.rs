//! The folder of this user below which temporary folders are made.

use crate::lease;
use rustix::fs::{fchmod, fstat, Mode};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// `ensign-UID` below `base`, made where it is missing. Where somebody else has that name it is
/// `base` itself: what is made there has a name that nobody can foresee, and mode 0700.
///
/// `passable` lets processes of another user through to what is theirs in it. It stays so: others
/// of this user may be at work there.
///
/// # Errors
/// What making a folder may end with.
pub(crate) fn below(base: &Path, passable: bool) -> io::Result<PathBuf> {
    let dir = base.join(format!("ensign-{}", rustix::process::geteuid().as_raw()));
    match DirBuilder::new().mode(0o700).create(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let Some(folder) = lease::open_own(&dir) else {
        return Ok(base.to_path_buf());
    };
    let through = Mode::XGRP | Mode::XOTH;
    let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode);
    let kept = if passable { through } else { mode & through };
    fchmod(&folder, Mode::RWXU | kept)?;
    Ok(dir)
}

/// Removes it where nothing is in it any more.
pub(crate) fn remove_if_empty(dir: &Path) {
    let own = format!("ensign-{}", rustix::process::geteuid().as_raw());
    if dir.ends_with(own) {
        // Others of this user may be at work there.
        let _ = std::fs::remove_dir(dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn place(name: &str) -> PathBuf {
        let name = format!("user-folder-test-{}-{name}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).unwrap();
        dir
    }

    #[test]
    fn it_is_private_and_goes_when_it_is_empty() {
        let base = place("private");
        let dir = below(&base, false).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o766)).unwrap();
        assert_eq!(below(&base, false).unwrap(), dir);
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
            0o700
        );
        below(&base, true).unwrap();
        below(&base, false).unwrap();
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
            0o711
        );
        fs::write(dir.join("in-use"), "").unwrap();
        remove_if_empty(&dir);
        assert!(dir.exists());
        fs::remove_file(dir.join("in-use")).unwrap();
        remove_if_empty(&dir);
        assert!(!dir.exists());
        remove_if_empty(&base);
        assert!(base.exists());
        fs::remove_dir(&base).unwrap();
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let base = place("link");
        let victim = base.join("victim");
        fs::create_dir(&victim).unwrap();
        let name = format!("ensign-{}", rustix::process::geteuid().as_raw());
        std::os::unix::fs::symlink(&victim, base.join(name)).unwrap();
        assert_eq!(below(&base, false).unwrap(), base);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn without_a_base_there_is_none() {
        assert!(below(Path::new("/missing/base"), false).is_err());
    }
}
