//! What a compiler's or archiver's command line does. Pure, but for response files.

use crate::line::Line;
use crate::rust_line;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a recorded program is to the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tool {
    Cc,
    Cxx,
    Ld,
    Ar,
    Ranlib,
    Nm,
    As,
    Objcopy,
    Strip,
    Rustc,
    /// Runs the compiler that its arguments name, or gives what that made before (ccache).
    Launcher,
}

impl Tool {
    fn is_driver(self) -> bool {
        matches!(self, Tool::Cc | Tool::Cxx)
    }

    /// Whether its command lines are read as wholes.
    pub(crate) fn has_line(self) -> bool {
        self.is_driver() || matches!(self, Tool::Ld | Tool::Rustc)
    }
}

/// What a driver is asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub compiles: bool,
    pub links: bool,
}

/// What a driver would do with these arguments (without its own name).
pub(crate) fn work(tool: Tool, line: &Line) -> Work {
    match tool.is_driver() {
        true => Work {
            compiles: line.compiles,
            links: line.links,
        },
        false => Work::default(),
    }
}

/// Files that the call writes, as far as its arguments tell; relative as they are given.
pub(crate) fn outputs(tool: Tool, arguments: &[String], line: &Line) -> Vec<String> {
    match tool {
        Tool::Ar => archive(arguments).into_iter().collect(),
        Tool::Ranlib => line
            .files
            .iter()
            .map(|place| arguments[*place].clone())
            .collect(),
        Tool::Nm | Tool::Launcher => Vec::new(),
        Tool::Objcopy | Tool::Strip => named_files(arguments),
        Tool::Ld | Tool::As => vec![line.output.clone().unwrap_or_else(|| "a.out".into())],
        Tool::Cc | Tool::Cxx => driver_outputs(arguments, line),
        Tool::Rustc => rust_line::outputs(line),
    }
}

/// Words that may be files of a call that changes files: options have their values after `=`, or
/// values that are no files.
pub(crate) fn named_files(arguments: &[String]) -> Vec<String> {
    let plain = arguments.iter().filter(|a| !a.starts_with('-')).cloned();
    let joined = arguments
        .iter()
        .filter_map(|a| a.strip_prefix("--output-file=").or(a.strip_prefix("-o")))
        .filter(|name| !name.is_empty())
        .map(String::from);
    plain.chain(joined).collect()
}

/// The compiler among the arguments of a launcher: its place and role; none where it runs none.
pub(crate) fn launched(arguments: &[String]) -> Option<(usize, Tool)> {
    let place = arguments.iter().position(|a| !a.contains('='))?;
    let name = Path::new(&arguments[place]).file_name()?.to_str()?;
    if name.starts_with('-') {
        return None;
    }
    let tool = if name.contains("++") {
        Tool::Cxx
    } else {
        Tool::Cc
    };
    Some((place, tool))
}

fn driver_outputs(arguments: &[String], line: &Line) -> Vec<String> {
    if !(line.compiles || line.links) {
        return Vec::new();
    }
    if let Some(name) = &line.output {
        return vec![name.clone()];
    }
    if line.links {
        return vec!["a.out".into()];
    }
    let extension = match arguments.iter().any(|a| a == "-S") {
        true => "s",
        false => "o",
    };
    line.sources
        .iter()
        .filter_map(|source| Path::new(source).file_name())
        .map(|name| {
            let object = Path::new(name).with_extension(extension);
            object.to_string_lossy().into_owned()
        })
        .collect()
}

/// `ar [-]KEYS [POSITION|COUNT] ARCHIVE MEMBER…`, where KEYS change the archive.
fn archive(arguments: &[String]) -> Option<String> {
    let mut rest = arguments.iter().filter(|a| !a.starts_with("--"));
    let keys = rest.next()?.trim_start_matches('-');
    if !keys.contains(['r', 'q', 'd', 'm', 's']) {
        return None;
    }
    if keys.contains(['a', 'b', 'i', 'N']) {
        rest.next();
    }
    rest.next().cloned()
}

/// Drops what matches a pattern, adds what is to be added; whole words only.
pub(crate) fn rewritten(
    arguments: &[String],
    work: Work,
    compile: &[String],
    link: &[String],
    remove: &[String],
) -> Vec<String> {
    if work == Work::default() {
        return arguments.to_vec();
    }
    let mut kept: Vec<String> = arguments
        .iter()
        .filter(|argument| !remove.iter().any(|pattern| matches(pattern, argument)))
        .cloned()
        .collect();
    if work.compiles {
        kept.extend_from_slice(compile);
    }
    if work.links {
        kept.extend_from_slice(link);
    }
    kept
}

/// Without what says where objects and lists of dependencies go.
pub(crate) fn for_assembler(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" | "-MF" | "-MT" | "-MQ" | "--output" => drop(words.next()),
            "-c" => {}
            _ if word.starts_with("-M") || word.starts_with("-save-temps") => {}
            _ => kept.push(word.clone()),
        }
    }
    kept
}

/// Without what is for programs alone, where a call makes a shared library or a part of one: GCC
/// would link a program without a `main` for a `-pie` behind `-shared`, and take `-fPIE` for code
/// that the build wants as `-fPIC`.
pub(crate) fn as_library(
    mut arguments: Vec<String>,
    work: Work,
    program_only: &[String],
) -> Vec<String> {
    let has = |wanted: &[&str]| arguments.iter().any(|each| wanted.contains(&each.as_str()));
    let linked = work.links && has(&["-shared", "-r"]);
    let compiled = work.compiles && has(&["-fPIC", "-fpic"]);
    if linked || compiled {
        let code = |word: &str| word.starts_with("-f");
        arguments.retain(|each| !(program_only.contains(each) && (linked || code(each))));
    }
    arguments
}

/// Shell patterns with `*` and `?` alone.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            matches(&pattern[1..], text)
                || text
                    .chars()
                    .next()
                    .is_some_and(|c| matches(pattern, &text[c.len_utf8()..]))
        }
        (Some('?'), Some(c)) => matches(&pattern[1..], &text[c.len_utf8()..]),
        (Some(p), Some(c)) if p == c => matches(&pattern[p.len_utf8()..], &text[c.len_utf8()..]),
        _ => false,
    }
}

/// Arguments with `@file` replaced by what the file says, also where it is for the linker; a file
/// that is not there stays as it is.
pub(crate) fn expanded(arguments: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for argument in arguments {
        if let Some(words) = said_by(argument) {
            all.extend(words);
            continue;
        }
        let parts: Vec<&str> = match argument.strip_prefix("-Wl,") {
            Some(passed) => passed.split(',').collect(),
            None => Vec::new(),
        };
        if parts.iter().any(|part| said_by(part).is_some()) {
            let words = parts
                .iter()
                .flat_map(|part| said_by(part).unwrap_or_else(|| vec![part.to_string()]));
            // Words of a file may have commas in them.
            all.extend(words.flat_map(|word| ["-Xlinker".to_string(), word]));
        } else {
            all.push(argument.clone());
        }
    }
    all
}

fn said_by(argument: &str) -> Option<Vec<String>> {
    let path = Path::new(argument.strip_prefix('@')?);
    // What a pipe says is said once, and a device has no end.
    let text = path
        .is_file()
        .then(|| std::fs::read_to_string(path).ok())??;
    Some(split(&text))
}

/// Words of a response file: blanks separate, quotes and backslashes keep together.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (_, '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn other_tools_neither_compile_nor_link() {
        let line = Line::read(Tool::Ar, &words("rcs lib.a a.c"));
        assert_eq!(work(Tool::Ar, &line), Work::default(), "no driver");
    }

    #[test]
    fn outputs_are_named_or_follow_from_the_sources() {
        let of = |tool, text| {
            let arguments = words(text);
            outputs(tool, &arguments, &Line::read(tool, &arguments))
        };
        assert_eq!(of(Tool::Cc, "-c x/a.c b.c -O2"), ["a.o", "b.o"]);
        assert_eq!(of(Tool::Cc, "-c a.c -o x -o y.o"), ["y.o"]);
        assert_eq!(of(Tool::Cc, "-S a.c"), ["a.s"]);
        assert_eq!(of(Tool::Cxx, "a.cc"), ["a.out"]);
        assert_eq!(of(Tool::Cc, "-oprogram a.o"), ["program"]);
        assert!(of(Tool::Cc, "-E a.c -o a.i").is_empty());
        assert_eq!(of(Tool::Ar, "rcs lib.a a.o b.o"), ["lib.a"]);
        assert_eq!(of(Tool::Ar, "--plugin -rbu pos.o lib.a a.o"), ["lib.a"]);
        assert!(of(Tool::Ar, "t lib.a").is_empty());
        assert_eq!(of(Tool::Ranlib, "lib.a"), ["lib.a"]);
        assert_eq!(of(Tool::Ld, "a.o -o p"), ["p"]);
        assert_eq!(of(Tool::As, "-o a.o -"), ["a.o"]);
        assert_eq!(of(Tool::Strip, "-g x.o -o y.o"), ["x.o", "y.o"]);
    }

    #[test]
    fn launchers_name_a_compiler() {
        let of = |text| launched(&words(text));
        assert_eq!(of("gcc -c a.c"), Some((0, Tool::Cc)));
        assert_eq!(of("base_dir=/x /usr/bin/g++ a.cc"), Some((1, Tool::Cxx)));
        assert_eq!(of("--version"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn flags_are_removed_and_added_where_they_belong() {
        let add = |text| {
            let arguments = words(text);
            let one = |flag: &str| vec![flag.to_string()];
            let work = work(Tool::Cc, &Line::read(Tool::Cc, &arguments));
            rewritten(
                &arguments,
                work,
                &one("-O3"),
                &one("-flto"),
                &words("-O? -march=*"),
            )
            .join(" ")
        };
        assert_eq!(add("-O2 -march=native -c a.c"), "-c a.c -O3");
        assert_eq!(add("-O2 a.o -o p"), "a.o -o p -flto");
        assert_eq!(add("-O2 a.c"), "a.c -O3 -flto");
        assert_eq!(add("-O2 --version"), "-O2 --version");
    }

    #[test]
    fn what_is_for_programs_alone_undoes_no_library() {
        let kept = |text| {
            let arguments = words(text);
            let work = work(Tool::Cc, &Line::read(Tool::Cc, &arguments));
            as_library(arguments, work, &words("-fPIE -pie -fno-pie -no-pie")).join(" ")
        };
        for (asked, ran) in [
            ("-fPIC -O2 -fPIE -c a.c", "-fPIC -O2 -c a.c"),
            ("-fpic -fno-pie -c a.c", "-fpic -c a.c"),
            ("-shared -fPIC -fPIE a.o -pie", "-shared -fPIC a.o"),
            ("-shared a.c -fno-pie -no-pie", "-shared a.c"),
            ("-r a.o -no-pie -o b.o", "-r a.o -o b.o"),
        ] {
            assert_eq!(kept(asked), ran);
        }
        // A program, even of code that might be in a library.
        for asked in ["-fPIE -c a.c", "-fPIC a.o -o p -pie", "-fPIE a.o -o p -pie"] {
            assert_eq!(kept(asked), asked);
        }
        assert_eq!(kept("-fPIC a.c -fPIE -o p -pie"), "-fPIC a.c -o p -pie");
    }

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("-O?", "-O2", true),
            ("-O?", "-O", false),
            ("*", "", true),
            ("-W*r", "-Wé-r", true),
            ("-W*r", "-Wx", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn response_files_are_read_as_compilers_read_them() {
        assert_eq!(
            split("-O2 'a b.c'\n\"-DX=\\\"y\\\"\" c\\ d ''"),
            ["-O2", "a b.c", "-DX=\"y\"", "c d", ""]
        );
        let file = std::env::temp_dir().join(format!("response-{}", std::process::id()));
        std::fs::write(&file, "-c a.c").unwrap();
        let named = file.display();
        let arguments = [
            format!("@{named}"),
            "@nowhere".to_string(),
            format!("-Wl,--start-group,@{named}"),
            "-Wl,@nowhere".to_string(),
        ];
        let all = expanded(&arguments);
        std::fs::remove_file(&file).unwrap();
        let wanted = "-c a.c @nowhere -Xlinker --start-group -Xlinker -c -Xlinker a.c -Wl,@nowhere";
        assert_eq!(all, words(wanted));
    }
}
