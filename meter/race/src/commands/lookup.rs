//! The file behind a program's name, and whether it may run from a copy.

use crate::processes::spawn::c_string;
use ensign_protocol::Code;
use rustix::fs::{openat2, Mode, OFlags, ResolveFlags};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program: what is to be executed, and where the meter finds the file, which is elsewhere where
/// the program runs in another root directory.
pub(crate) struct Found {
    pub program: PathBuf,
    pub file: PathBuf,
}

impl Found {
    fn here(file: PathBuf) -> Found {
        Found {
            program: file.clone(),
            file,
        }
    }
}

/// The file that a name means, as a shell would find it; in `root`, where there is one.
pub(crate) fn find(
    name: &str,
    cwd: Option<&str>,
    path: Option<&str>,
    root: Option<&str>,
) -> Result<Found, (Code, String)> {
    if name.contains('/') {
        let file = cwd.map_or_else(|| PathBuf::from(name), |cwd| Path::new(cwd).join(name));
        return match there(&file, root).and_then(|place| runnable(&place).map(|()| place)) {
            Ok(place) if root.is_some() => Ok(Found {
                program: file,
                file: place,
            }),
            Ok(_) => Ok(Found::here(
                fs::canonicalize(&file)
                    .map_or_else(|_| file.clone(), |full| keep_name(full, &file)),
            )),
            Err(Code::NotFound) => Err((Code::NotFound, format!("{name} does not exist"))),
            Err(code) => Err((code, why_not(name, &file))),
        };
    }
    let mut denied = None;
    for dir in path.unwrap_or(DEFAULT_PATH).split(':') {
        let file = Path::new(if dir.is_empty() { "." } else { dir }).join(name);
        match there(&file, root).and_then(|place| runnable(&place).map(|()| place)) {
            Ok(place) if root.is_some() => {
                return Ok(Found {
                    program: file,
                    file: place,
                })
            }
            Ok(_) => return Ok(Found::here(std::path::absolute(&file).unwrap_or(file))),
            Err(Code::NotFound) => {}
            Err(_) => denied = Some(file),
        }
    }
    match denied {
        Some(file) => Err((
            Code::NotExecutable,
            why_not(&file.display().to_string(), &file),
        )),
        None => Err((
            Code::NotFound,
            format!("there is no program '{name}' on PATH"),
        )),
    }
}

/// Where a path of a root directory is, its links followed as they are there.
pub(crate) fn in_root(root: &str, path: &Path) -> io::Result<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let folder = rustix::fs::open(root, flags | OFlags::DIRECTORY, Mode::empty())?;
    let file = openat2(folder, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn there(file: &Path, root: Option<&str>) -> Result<PathBuf, Code> {
    match root {
        None => Ok(file.to_path_buf()),
        Some(root) => in_root(root, file).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Code::NotExecutable,
            _ => Code::NotFound,
        }),
    }
}

fn why_not(name: &str, file: &Path) -> String {
    if file.is_dir() {
        return format!("{name} is a folder, not a program");
    }
    format!("{name} is not executable")
}

/// A link's target may be named otherwise (busybox): the name that was asked for counts.
fn keep_name(full: PathBuf, asked: &Path) -> PathBuf {
    if full.file_name() == asked.file_name() {
        full
    } else {
        std::path::absolute(asked).unwrap_or(full)
    }
}

fn runnable(file: &Path) -> Result<(), Code> {
    let data = fs::metadata(file).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Code::NotExecutable,
        _ => Code::NotFound,
    })?;
    if data.is_file() && may_execute(file) {
        Ok(())
    } else {
        Err(Code::NotExecutable)
    }
}

/// Whether this user may execute it there (a file system may forbid it for all).
pub(crate) fn may_execute(file: &Path) -> bool {
    c_string(file)
        // SAFETY: the string outlives the call.
        .is_ok_and(|path| unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0)
}

/// Why an executable must not run from a copy, if so.
pub(crate) fn why_not_copied(file: &Path) -> io::Result<Option<&'static str>> {
    if fs::metadata(file)?.permissions().mode() & 0o6000 != 0 {
        return Ok(Some("it is set-user-id"));
    }
    let bytes = fs::read(file)?;
    if bytes.starts_with(b"#!") {
        return Ok(Some("it is a script"));
    }
    let origin = memchr::memmem::find(&bytes, b"$ORIGIN");
    Ok(origin
        .is_some()
        .then_some("it finds its libraries by $ORIGIN"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let code = |name, cwd, path| match find(name, cwd, path, None) {
            Ok(_) => None,
            Err((code, _)) => Some(code),
        };
        let found = find("sh", None, Some("/nowhere:/bin"), None).ok().unwrap();
        assert!(found.program.ends_with("sh") && found.file == found.program);
        assert_eq!(code("sh", None, Some("/nowhere")), Some(Code::NotFound));
        assert_eq!(code("/etc/passwd", None, None), Some(Code::NotExecutable));
        assert_eq!(code("./x", Some("/nowhere"), None), Some(Code::NotFound));
        assert_eq!(code("bin/sh", Some("/"), None), None);
    }

    #[test]
    fn scripts_and_origin_are_not_copied() {
        let file = std::env::temp_dir().join(format!("copy-test-{}", std::process::id()));
        for (content, copied) in [
            ("#!/bin/sh\n", false),
            ("..$ORIGIN/../lib", false),
            ("x", true),
        ] {
            fs::write(&file, content).unwrap();
            assert_eq!(why_not_copied(&file).unwrap().is_none(), copied);
        }
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_linked_program_keeps_its_name_and_its_folder() {
        let dir = std::env::temp_dir().join(format!("link-test-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let link = dir.join("applet");
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        let found = find("./applet", dir.to_str(), None, None);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found.ok().unwrap().program, link);
    }

    #[test]
    fn links_of_another_root_lead_within_it() {
        let dir = std::env::temp_dir().join(format!("root-test-{}", std::process::id()));
        fs::create_dir_all(dir.join("usr/bin")).unwrap();
        fs::write(dir.join("usr/bin/real"), "x").unwrap();
        fs::set_permissions(dir.join("usr/bin/real"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("/usr/bin/real", dir.join("usr/bin/tool")).unwrap();
        std::os::unix::fs::symlink("../../../../bin/sh", dir.join("usr/bin/up")).unwrap();
        let root = dir.to_str();
        let found = find("tool", None, Some("/bin:/usr/bin"), root);
        let (up, sh) = (
            find("up", None, Some("/usr/bin"), root),
            in_root(root.unwrap(), Path::new("/bin/sh")),
        );
        let real = fs::canonicalize(dir.join("usr/bin/real")).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let found = found.ok().unwrap();
        assert_eq!(found.program, Path::new("/usr/bin/tool"));
        assert_eq!(found.file, real);
        assert!(up.is_err() && sh.is_err());
    }
}
