//! What a link takes: objects, archives with their members, shared libraries, hashed as they are
//! at that moment.

use crate::call::{self, Tool};
use crate::hashing;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"!<arch>\n";
const THIN: &[u8] = b"!<thin>\n";
const HEADER_BYTES: usize = 60;
const LONGEST_SCRIPT_BYTES: usize = 1 << 16;

/// Options of linkers whose value is the next word and is no input.
const WITH_VALUE: [&str; 31] = [
    "-o",
    "-m",
    "-T",
    "-z",
    "-e",
    "-u",
    "-h",
    "-y",
    "-L",
    "-Map",
    "-soname",
    "-rpath",
    "-rpath-link",
    "-dynamic-linker",
    "-plugin",
    "-plugin-opt",
    "-init",
    "-fini",
    "--soname",
    "--rpath",
    "--rpath-link",
    "--dynamic-linker",
    "--version-script",
    "--dynamic-list",
    "--defsym",
    "--wrap",
    "--undefined",
    "--entry",
    "--script",
    "--output",
    "-just-symbols",
];

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
pub(crate) fn of_link(tool: Tool, arguments: &[String], cwd: &Path) -> Vec<Input> {
    let mut search = Search::new(cwd);
    for word in words(tool, arguments) {
        search.word(&word);
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

/// What reaches the linker, one by one: `-L`, `-l`, its options and files.
fn words(tool: Tool, arguments: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let passed = word.strip_prefix("-Wl,");
        if let (Some(parts), Tool::Cc | Tool::Cxx) = (passed, tool) {
            let parts: Vec<String> = parts.split(',').map(String::from).collect();
            all.extend(call::expanded(&parts));
        } else if word == "-Xlinker" {
            all.extend(rest.next().cloned());
        } else if word == "-L" || word == "-l" {
            all.extend(rest.next().map(|value| format!("{word}{value}")));
        } else if tool != Tool::Ld && call::takes_value(word) {
            rest.next();
        } else {
            all.push(word.clone());
        }
    }
    // A value of the linker's may come in a word of its own: `-Wl,-soname -Wl,libx.so.1`.
    let mut kept = Vec::new();
    let mut rest = all.into_iter();
    while let Some(word) = rest.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            rest.next();
        } else {
            kept.push(word);
        }
    }
    let (folders, others): (Vec<_>, Vec<_>) = kept
        .into_iter()
        .partition(|word| word.starts_with("-L") || word == "-static");
    folders.into_iter().chain(others).collect()
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

    fn word(&mut self, word: &str) {
        if let Some(folder) = word
            .strip_prefix("-L")
            .or(word.strip_prefix("--library-path="))
        {
            self.folders.push(self.cwd.join(folder));
        } else if let Some(name) = word.strip_prefix("-l").or(word.strip_prefix("--library=")) {
            self.library(name);
        } else if let Some(file) = word
            .strip_prefix("--just-symbols=")
            .or(word.strip_prefix("--whole-archive="))
        {
            self.file(&self.cwd.join(file));
        } else {
            match word {
                "-static" | "-Bstatic" | "-dn" | "-non_shared" => self.archives_only = true,
                "-Bdynamic" | "-dy" | "-call_shared" => self.archives_only = false,
                _ if word.starts_with('-') => {}
                _ => self.file(&self.cwd.join(word)),
            }
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
        if !path.is_file() || !self.seen.insert(path.to_path_buf()) {
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
        if let Some(place) = raw.strip_prefix('/').and_then(|n| n.parse::<usize>().ok()) {
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
            hashing::of_bytes(&std::fs::read(file)?)
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

    fn split(tool: Tool, text: &str) -> Vec<String> {
        let arguments: Vec<String> = text.split_whitespace().map(String::from).collect();
        words(tool, &arguments)
    }

    #[test]
    fn words_for_the_linker() {
        assert_eq!(
            split(Tool::Cc, "-o p a.o -Wl,--whole-archive,b.a -l m -L d -x c"),
            ["-Ld", "a.o", "--whole-archive", "b.a", "-lm"]
        );
        assert_eq!(
            split(Tool::Cc, "-Wl,-soname,libx.so.1 -Wl,-soname -Wl,y.so a.o"),
            ["a.o"]
        );
        assert_eq!(
            split(Tool::Ld, "-m elf_x86_64 -T s.ld -o p a.o -r"),
            ["a.o", "-r"]
        );
    }

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
}
