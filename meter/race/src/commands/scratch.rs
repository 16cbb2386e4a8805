//! The meter's own folder: folders of variants, copies of executables.

use crate::commands::{lookup, trees};
use crate::processes::user::User;
use ensign_host::clock;
use ensign_protocol::request::Files;
use ensign_protocol::Code;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) const TAIL_BYTES: u64 = 2000;
const LONGEST_PATH: usize = 4095;

pub(crate) struct Scratch {
    pub dir: PathBuf,
    /// Who writes into the folders of variants, where that is not the meter's user.
    user: Option<User>,
}

impl Scratch {
    /// In a folder that is there. Folders of variants are the `user`'s, if there is one.
    pub(crate) fn in_folder(dir: &Path, user: Option<User>) -> io::Result<Scratch> {
        if user.is_some() {
            fs::set_permissions(dir, Permissions::from_mode(0o711))?;
        }
        Ok(Scratch {
            dir: fs::canonicalize(dir)?,
            user,
        })
    }

    /// The folder `{tmp}` of a variant in an execution. Paths of all variants are equally long: the
    /// length of arguments moves the stack.
    pub(crate) fn variant_tmp(&self, execution: u64, variant: usize) -> io::Result<PathBuf> {
        let dir = self.dir.join(format!("tmp-{execution:05}-{variant:03}"));
        let make = || match self.user {
            None => fs::create_dir(&dir),
            Some(user) => {
                DirBuilder::new().mode(0o700).create(&dir)?;
                std::os::unix::fs::chown(&dir, Some(user.uid), Some(user.gid))
            }
        };
        make().map_err(|error| refused(&format!("make {}", dir.display()), error))?;
        Ok(dir)
    }

    /// A variant's own copy of folders, later ones over earlier ones. Links stay links.
    pub(crate) fn copy_files(&self, variant: usize, files: &Files) -> io::Result<PathBuf> {
        let to = self.dir.join(format!("files-{variant:03}"));
        for folder in &files.folders {
            trees::copy(Path::new(folder), &to, &files.without, self.user.is_some())
                .map_err(|error| refused(&format!("copy {folder} to {}", to.display()), error))?;
        }
        Ok(to)
    }

    /// A variant's own copy of an executable: another inode, so other page-cache pages.
    pub(crate) fn copy_executable(&self, variant: usize, from: &Path) -> io::Result<PathBuf> {
        let dir = self.dir.join(format!("bin-{variant:03}"));
        let to = dir.join(from.file_name().unwrap_or(from.as_os_str()));
        let copy = || {
            fs::create_dir_all(&dir)?;
            if self.user.is_some() {
                fs::set_permissions(&dir, Permissions::from_mode(0o755))?;
            }
            if to.exists() {
                fs::remove_file(&to)?;
            }
            write_copy(from, &to)?;
            fs::set_permissions(&to, Permissions::from_mode(0o755))
        };
        let doing = || format!("copy {} to {}", from.display(), to.display());
        copy().map_err(|error| refused(&doing(), error))?;
        Ok(to)
    }
}

/// The same error with what it refused.
fn refused(doing: &str, error: io::Error) -> io::Error {
    let why = match Code::of_refusal(&error, Code::System) {
        Code::Storage => "the disk is full".into(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("cannot {doing}: {why}"))
}

/// Written, not cloned: a clone could share its blocks with the original.
fn write_copy(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut File::create_new(to)?).map(drop)
}

/// Whether a file system forbids to execute what is below a folder; false where nothing is.
pub(crate) fn forbids_execution(dir: &Path) -> bool {
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            // What no path reaches, nothing executes.
            if path.as_os_str().len() > LONGEST_PATH {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let mode = fs::symlink_metadata(&path).map_or(0, |data| data.permissions().mode());
            if kind.is_file() && mode & 0o111 != 0 {
                return !lookup::may_execute(&path);
            }
        }
    }
    false
}

/// The last bytes of a file as text, or an empty one.
pub(crate) fn tail(mut file: &File) -> String {
    let mut read = || -> io::Result<Vec<u8>> {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    tail_text(&read().unwrap_or_default())
}

/// Last bytes as text.
pub(crate) fn tail_text(bytes: &[u8]) -> String {
    // The cut may have gone through a character.
    let start = bytes
        .iter()
        .take(3)
        .take_while(|&&b| b & 0xc0 == 0x80)
        .count();
    String::from_utf8_lossy(&bytes[start..]).into_owned()
}

/// The hash of a file, in hexadecimal digits.
pub(crate) fn digest(mut file: &File) -> Option<String> {
    let mut hash = Sha256::new();
    file.rewind().ok()?;
    io::copy(&mut file, &mut hash).ok()?;
    let digits = hash.finalize();
    Some(digits.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Removes a folder whatever its permissions; processes that are ending may still write into it.
pub(crate) fn remove(dir: &Path) {
    for _ in 0..20 {
        match trees::remove(dir) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => clock::sleep_ns(10_000_000),
        }
    }
}

/// As `remove`, of what nobody uses any more: what other users own in it may stay.
pub(crate) fn remove_once(dir: &Path) {
    let _ = trees::remove(dir);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("scratch-test-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_tail_is_short_and_whole_text() {
        let path = folder("tail");
        fs::write(&path, "ä".repeat(3000)).unwrap();
        let read = |path: &Path| tail(&File::open(path).unwrap());
        let text = read(&path);
        assert_eq!(text.chars().count(), 1000);
        assert!(text.chars().all(|c| c == 'ä'));
        fs::write(&path, format!("x{}", "ä".repeat(3000))).unwrap();
        assert!(read(&path).chars().all(|c| c == 'ä'));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn files_are_laid_over_each_other_and_links_stay_links() {
        let dir = folder("files");
        for (name, text) in [
            ("a/lib/x.so.1", "old"),
            ("a/tool", "t"),
            ("b/lib/x.so.1", "new"),
        ] {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink("x.so.1", dir.join("a/lib/x.so")).unwrap();
        fs::create_dir(dir.join("scratch")).unwrap();
        let scratch = Scratch::in_folder(&dir.join("scratch"), None).unwrap();
        let named = |name: &str| dir.join(name).to_string_lossy().into_owned();
        let files = Files {
            folders: vec![named("a"), named("b")],
            without: vec!["tool".into()],
        };
        let copy = scratch.copy_files(7, &files).unwrap();
        assert!(copy.ends_with("files-007"));
        assert_eq!(fs::read_to_string(copy.join("lib/x.so")).unwrap(), "new");
        assert!(copy.join("lib/x.so").is_symlink() && !copy.join("tool").exists());
        remove(&dir);
    }

    #[test]
    fn removing_does_not_mind_missing_permissions() {
        let dir = folder("remove");
        fs::create_dir_all(dir.join("a/b")).unwrap();
        fs::write(dir.join("a/b/c"), "x").unwrap();
        fs::set_permissions(dir.join("a/b"), Permissions::from_mode(0o500)).unwrap();
        remove(&dir);
        assert!(!dir.exists());
    }
}
