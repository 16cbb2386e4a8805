//! What a link takes: objects, archives with their members, shared libraries, hashed as they are
//! at that moment.

use crate::call;
use crate::hashing;
use crate::line::Line;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"!<arch>\n";
const THIN: &[u8] = b"!<thin>\n";
const HEADER_BYTES: usize = 60;
const LONGEST_SCRIPT_BYTES: usize = 1 << 16;

#[derive(Serialize)]
pub(crate) struct Input {
    pub path: PathBuf,
    /// `object`, `archive`, `thin` (an archive that names files) or `shared`.
    pub kind: &'static str,
    pub sha256: String,
    pub size_bytes: u64,
    pub members: Vec<Member>,
}

#[derive(Serialize)]
pub(crate) struct Member {
    pub name: String,
    pub sha256: String,
}

impl Input {
    pub(crate) fn is(&self, path: &Path, sha256: &str) -> bool {
        self.path == path && self.sha256 == sha256
    }
}

/// The inputs of a call that links; nothing of what a compiler adds by itself.
pub(crate) fn of_link(line: &Line, cwd: &Path) -> Vec<Input> {
    let mut search = Search::new(cwd);
    search.folders = line.folders.iter().map(|folder| cwd.join(folder)).collect();
    for word in &line.inputs {
        search.archives_only = word.r#static;
        match word.text.strip_prefix("-l") {
            Some(name) => search.library(name),
            None => search.file(&cwd.join(&word.text)),
        }
    }
    search.found
}

/// The files that a call changes or copies from, as they are before it.
pub(crate) fn of_change(arguments: &[String], cwd: &Path) -> Vec<Input> {
    let mut search = Search::new(cwd);
    for word in call::named_files(arguments) {
        search.file(&cwd.join(word));
    }
    search.found
}

struct Search {
    cwd: PathBuf,
    folders: Vec<PathBuf>,
    archives_only: bool,
    seen: HashSet<PathBuf>,
    found: Vec<Input>,
}

impl Search {
    fn new(cwd: &Path) -> Search {
        Search {
            cwd: cwd.to_path_buf(),
            folders: Vec::new(),
            archives_only: false,
            seen: HashSet::new(),
            found: Vec::new(),
        }
    }

    /// In the folders that the call names; the system's own are nobody's build.
    fn library(&mut self, name: &str) {
        let names = match (name.strip_prefix(':'), self.archives_only) {
            (Some(exact), _) => vec![exact.to_string()],
            (None, true) => vec![format!("lib{name}.a")],
            (None, false) => vec![format!("lib{name}.so"), format!("lib{name}.a")],
        };
        let paths = self
            .folders
            .iter()
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        if let Some(path) = paths.into_iter().find(|path| path.is_file()) {
            self.file(&path);
        }
    }

    fn file(&mut self, path: &Path) {
        // By its real place: a script may name itself in ever other words.
        let Ok(real) = path.canonicalize() else {
            return;
        };
        if !real.is_file() || !self.seen.insert(real) {
            return;
        }
        let Ok(data) = std::fs::read(path) else {
            return;
        };
        match kind_of(&data) {
            Some(kind) => {
                let members = match kind {
                    "archive" | "thin" => members(&data, path).unwrap_or_default(),
                    _ => Vec::new(),
                };
                self.found.push(Input {
                    path: path.to_path_buf(),
                    kind,
                    sha256: hashing::of_bytes(&data),
                    size_bytes: data.len() as u64,
                    members,
                });
            }
            None if data.len() <= LONGEST_SCRIPT_BYTES => self.script(&data, path),
            None => {}
        }
    }

    /// A linker script in the place of an input names inputs within parentheses.
    fn script(&mut self, data: &[u8], path: &Path) {
        let text = String::from_utf8_lossy(data);
        for command in ["INPUT", "GROUP"] {
            for part in text.split(command).skip(1) {
                let Some(inside) = part.trim_start().strip_prefix('(') else {
                    continue;
                };
                let inside = inside.split(')').next().unwrap_or_default();
                for word in inside.split(|c: char| c.is_whitespace() || c == ',' || c == '(') {
                    if let Some(name) = word.strip_prefix("-l") {
                        self.library(name);
                    } else if !word.is_empty() && word != "AS_NEEDED" {
                        let beside = path.parent().unwrap_or(&self.cwd).join(word);
                        let here = self.cwd.join(word);
                        self.file(if here.is_file() { &here } else { &beside });
                    }
                }
            }
        }
    }
}

#[cfg(feature = "fuzz")]
pub(crate) fn fuzz(data: &[u8], path: &Path) {
    let _ = members(data, path);
    if kind_of(data).is_none() {
        Search::new(Path::new("/nonexistent")).script(data, path);
    }
}

fn kind_of(data: &[u8]) -> Option<&'static str> {
    const ELF: &[u8] = b"\x7fELF";
    const RELOCATABLE: u8 = 1;
    if data.starts_with(MAGIC) {
        Some("archive")
    } else if data.starts_with(THIN) {
        Some("thin")
    } else if data.starts_with(ELF) && data.len() > 17 {
        let big_endian = data[5] == 2;
        let kind = if big_endian { data[17] } else { data[16] };
        Some(if kind == RELOCATABLE {
            "object"
        } else {
            "shared"
        })
    } else if data.starts_with(b"BC\xc0\xde") || data.starts_with(b"\xde\xc0\x17\x0b") {
        Some("object")
    } else if data.starts_with(b"rust\0") {
        // The metadata of a crate, from which others that use it are compiled.
        Some("object")
    } else {
        None
    }
}

/// Members by name; of a thin archive the files that it names. Fails where it is cut off.
fn members(data: &[u8], path: &Path) -> io::Result<Vec<Member>> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "a broken archive");
    let thin = data.starts_with(THIN);
    let mut long_names: &[u8] = &[];
    let mut found = Vec::new();
    let mut at = MAGIC.len();
    while at + HEADER_BYTES <= data.len() {
        let header = &data[at..at + HEADER_BYTES];
        let raw = String::from_utf8_lossy(&header[..16])
            .trim_end()
            .to_string();
        let size: usize = String::from_utf8_lossy(&header[48..58])
            .trim()
            .parse()
            .map_err(|_| broken())?;
        at += HEADER_BYTES;
        let special = matches!(raw.as_str(), "/" | "//" | "/SYM64/");
        let inside = if special || !thin { size } else { 0 };
        let mut content = data.get(at..at + inside).ok_or_else(broken)?;
        at += inside + inside % 2;
        if raw == "//" {
            long_names = content;
        }
        if special || raw.starts_with("__.SYMDEF") {
            continue;
        }
        let mut name = raw.trim_end_matches('/').to_string();
        // binutils leaves the slash behind a name of 15 letters that it moved to the long ones.
        let place = raw
            .strip_prefix('/')
            .map(|n| n.trim_end_matches('/').trim_end());
        if let Some(place) = place.and_then(|n| n.parse::<usize>().ok()) {
            let names = long_names.get(place..).ok_or_else(broken)?;
            let end = names
                .iter()
                .position(|b| *b == b'\n')
                .unwrap_or(names.len());
            let text = String::from_utf8_lossy(&names[..end]);
            name = text.trim_end_matches('/').to_string();
        } else if let Some(length) = raw.strip_prefix("#1/").and_then(|n| n.parse().ok()) {
            let (start, rest) = content.split_at_checked(length).ok_or_else(broken)?;
            let text = String::from_utf8_lossy(start);
            name = text.trim_end_matches('\0').to_string();
            content = rest;
        }
        let sha256 = if thin {
            let file = path.parent().unwrap_or(Path::new("")).join(&name);
            // A device has no end, and at a pipe one would wait.
            if !file.is_file() {
                return Err(broken());
            }
            hashing::of_file(&file)?.0
        } else {
            hashing::of_bytes(content)
        };
        found.push(Member { name, sha256 });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_archives() {
        let header = |name: &str, size: usize| format!("{name:<48}{size:<10}`\n");
        let mut text = String::from("!<arch>\n");
        text += &header("//", 22);
        text += "a_rather_long_name.o/\n";
        text += &(header("/0", 3) + "abc\n");
        text += &(header("b.o/", 2) + "xy");
        let found = members(text.as_bytes(), Path::new("x.a")).unwrap();
        let names: Vec<_> = found.iter().map(|each| each.name.as_str()).collect();
        assert_eq!(names, ["a_rather_long_name.o", "b.o"]);
        assert_eq!(found[0].sha256, hashing::of_bytes(b"abc"));
        assert!(members(&text.as_bytes()[..text.len() - 1], Path::new("x.a")).is_err());
    }

    #[test]
    fn a_script_that_names_itself_in_many_words_is_read_once() {
        let folder = std::env::temp_dir().join(format!("ensign-inputs-{}", std::process::id()));
        for name in ["a", "b"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join("x.so"), "INPUT(a/../x.so b/../x.so /dev/zero)").unwrap();
        let mut search = Search::new(&folder);
        search.file(&folder.join("x.so"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((search.found.len(), search.seen.len()), (0, 1));
    }

    #[test]
    fn a_thin_archive_of_a_device_is_broken() {
        let names = "/dev/zero/\n\n";
        let mut text = String::from("!<thin>\n");
        text += &format!("{:<48}{:<10}`\n{names}", "//", names.len());
        text += &format!("{:<48}{:<10}`\n", "/0", 8);
        assert!(members(text.as_bytes(), Path::new("x.a")).is_err());
    }
}
