//! What a compiler's or archiver's command line does. Pure, but for response files.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a recorded program is to the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Runs the compiler that its arguments name, or gives what that made before (ccache).
    Launcher,
}

impl Tool {
    fn is_driver(self) -> bool {
        matches!(self, Tool::Cc | Tool::Cxx)
    }
}

/// What a driver is asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub compiles: bool,
    pub links: bool,
}

/// Options whose value is the next argument, as far as that could be mistaken for an input.
const WITH_VALUE: [&str; 27] = [
    "-o",
    "-x",
    "-I",
    "-L",
    "-l",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-T",
    "-u",
    "-z",
    "-e",
    "-target",
    "--param",
    "-mllvm",
];
const SOURCES: [&str; 16] = [
    "c", "C", "cc", "cp", "cpp", "cxx", "c++", "CPP", "i", "ii", "m", "mm", "M", "s", "S", "sx",
];
/// Stops before code is generated, or generates none.
const NO_CODE: [&str; 4] = ["-E", "-M", "-MM", "-fsyntax-only"];

/// Whether the next argument is this option's value.
pub(crate) fn takes_value(option: &str) -> bool {
    WITH_VALUE.contains(&option)
}

/// The arguments that are no options and no values of options.
pub(crate) fn inputs(arguments: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut skip = false;
    for argument in arguments {
        if std::mem::take(&mut skip) {
            continue;
        }
        if WITH_VALUE.contains(&argument.as_str()) {
            skip = true;
        } else if !argument.starts_with('-') || argument == "-" {
            found.push(argument.as_str());
        }
    }
    found
}

/// What a driver would do with these arguments (without its own name).
pub(crate) fn work(tool: Tool, arguments: &[String]) -> Work {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let inputs = inputs(arguments);
    if !tool.is_driver() || inputs.is_empty() || NO_CODE.iter().any(|flag| has(flag)) {
        return Work::default();
    }
    let language_given = arguments.iter().any(|a| a.starts_with("-x"));
    Work {
        compiles: language_given || inputs.iter().any(|input| is_source(input)),
        links: !has("-c") && !has("-S"),
    }
}

fn is_source(input: &str) -> bool {
    let extension = Path::new(input).extension().and_then(|e| e.to_str());
    extension.is_some_and(|extension| SOURCES.contains(&extension))
}

/// Files that the call writes, as far as its arguments tell; relative as they are given.
pub(crate) fn outputs(tool: Tool, arguments: &[String]) -> Vec<String> {
    match tool {
        Tool::Ar => archive(arguments).into_iter().collect(),
        Tool::Ranlib => inputs(arguments)
            .iter()
            .map(|input| input.to_string())
            .collect(),
        Tool::Nm | Tool::Launcher => Vec::new(),
        Tool::Objcopy | Tool::Strip => named_files(arguments),
        Tool::Ld | Tool::As => vec![named_output(arguments).unwrap_or_else(|| "a.out".into())],
        Tool::Cc | Tool::Cxx => driver_outputs(tool, arguments),
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

fn driver_outputs(tool: Tool, arguments: &[String]) -> Vec<String> {
    let work = work(tool, arguments);
    if work == Work::default() {
        return Vec::new();
    }
    if let Some(name) = named_output(arguments) {
        return vec![name];
    }
    if work.links {
        return vec!["a.out".into()];
    }
    let extension = if arguments.iter().any(|a| a == "-S") {
        "s"
    } else {
        "o"
    };
    inputs(arguments)
        .iter()
        .filter(|input| is_source(input))
        .filter_map(|input| Path::new(input).file_name())
        .map(|name| {
            Path::new(name)
                .with_extension(extension)
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

/// The last `-o`, as compilers take it.
fn named_output(arguments: &[String]) -> Option<String> {
    let mut found = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "-o" {
            found = rest.next().cloned();
        } else if let Some(name) = argument.strip_prefix("-o") {
            found = Some(name.to_string());
        }
    }
    found
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

/// Arguments with `@file` replaced by what the file says; a file that is not there stays as it is.
pub(crate) fn expanded(arguments: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for argument in arguments {
        let file = argument.strip_prefix('@');
        match file.and_then(|file| std::fs::read_to_string(file).ok()) {
            Some(text) => all.extend(split(&text)),
            None => all.push(argument.clone()),
        }
    }
    all
}

/// Words of a response file: blanks separate, quotes and backslashes keep together.
fn split(text: &str) -> Vec<String> {
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

    fn doing(text: &str) -> (bool, bool) {
        let work = work(Tool::Cc, &words(text));
        (work.compiles, work.links)
    }

    #[test]
    fn drivers_compile_and_link() {
        assert_eq!(doing("-O2 -c a.c -o a.o"), (true, false));
        assert_eq!(doing("a.o b.a -lm -o program"), (false, true));
        assert_eq!(doing("-O2 a.c -o program"), (true, true));
        assert_eq!(doing("-x c - -o /dev/null"), (true, true));
        for nothing in [
            "--version",
            "-E a.c",
            "-print-prog-name=ld",
            "-MM a.c",
            "-v",
        ] {
            assert_eq!(doing(nothing), (false, false), "{nothing}");
        }
        assert_eq!(
            work(Tool::Ar, &words("rcs lib.a a.c")),
            Work::default(),
            "no driver"
        );
    }

    #[test]
    fn outputs_are_named_or_follow_from_the_sources() {
        let of = |tool, text| outputs(tool, &words(text));
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
            let work = work(Tool::Cc, &arguments);
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
        let arguments = [format!("@{}", file.display()), "@nowhere".to_string()];
        let all = expanded(&arguments);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(all, ["-c", "a.c", "@nowhere"]);
    }
}
