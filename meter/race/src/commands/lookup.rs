//! The file behind a program's name, and whether it may run from a copy.

use crate::processes::spawn::c_string;
use ensign_protocol::Code;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The file that a name means, as a shell would find it.
pub(crate) fn find(
    name: &str,
    cwd: Option<&str>,
    path: Option<&str>,
) -> Result<PathBuf, (Code, String)> {
    if name.contains('/') {
        let file = cwd.map_or_else(|| PathBuf::from(name), |cwd| Path::new(cwd).join(name));
        return match runnable(&file) {
            Ok(()) => Ok(fs::canonicalize(&file)
                .map_or_else(|_| file.clone(), |full| keep_name(full, &file))),
            Err(Code::NotFound) => Err((Code::NotFound, format!("{name} does not exist"))),
            Err(code) => Err((code, why_not(name, &file))),
        };
    }
    let mut denied = None;
    for dir in path.unwrap_or(DEFAULT_PATH).split(':') {
        let file = Path::new(if dir.is_empty() { "." } else { dir }).join(name);
        match runnable(&file) {
            Ok(()) => return Ok(std::path::absolute(&file).unwrap_or(file)),
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
        assert!(find("sh", None, Some("/nowhere:/bin"))
            .unwrap()
            .ends_with("sh"));
        assert_eq!(
            find("sh", None, Some("/nowhere")).unwrap_err().0,
            Code::NotFound
        );
        assert_eq!(
            find("/etc/passwd", None, None).unwrap_err().0,
            Code::NotExecutable
        );
        assert_eq!(
            find("./x", Some("/nowhere"), None).unwrap_err().0,
            Code::NotFound
        );
        assert!(find("bin/sh", Some("/"), None).is_ok());
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
        let found = find("./applet", dir.to_str(), None);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found.unwrap(), link);
    }
}
