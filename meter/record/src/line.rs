//! A command line of a compiler driver or a linker, read once for everybody. Pure.

use crate::call::Tool;
use crate::rust_line;
use serde::Serialize;
use std::path::Path;

/// Options of drivers whose value may be the next word, as far as that could be taken for a file.
const WITH_VALUE: [&str; 43] = [
    "-o",
    "-x",
    "-I",
    "-L",
    "-l",
    "-D",
    "-U",
    "-B",
    "-T",
    "-u",
    "-z",
    "-e",
    "-A",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-arch",
    "-target",
    "-mllvm",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-aux-info",
    "-wrapper",
    "-rpath",
    "-soname",
    "--param",
    "--sysroot",
    "--output",
    "--include",
];
/// The same of linkers, where they are no inputs.
const WITH_VALUE_OF_LINKER: [&str; 74] = [
    "-o",
    "-m",
    "-T",
    "-z",
    "-e",
    "-u",
    "-h",
    "-y",
    "-a",
    "-A",
    "-b",
    "-c",
    "-F",
    "-f",
    "-G",
    "-L",
    "-P",
    "-R",
    "-Y",
    "-Map",
    "-soname",
    "-rpath",
    "-rpath-link",
    "-dynamic-linker",
    "-plugin",
    "-plugin-opt",
    "-init",
    "-fini",
    "-Ttext",
    "-Tdata",
    "-Tbss",
    "-mllvm",
    "-just-symbols",
    "--soname",
    "--rpath",
    "--rpath-link",
    "--dynamic-linker",
    "--version-script",
    "--dynamic-list",
    "--defsym",
    "--wrap",
    "--undefined",
    "--require-defined",
    "--trace-symbol",
    "--entry",
    "--script",
    "--default-script",
    "--output",
    "--Map",
    "--just-symbols",
    "--format",
    "--oformat",
    "--architecture",
    "--filter",
    "--auxiliary",
    "--gpsize",
    "--audit",
    "--depaudit",
    "--exclude-libs",
    "--hash-style",
    "--sysroot",
    "--retain-symbols-file",
    "--section-start",
    "--sort-section",
    "--export-dynamic-symbol",
    "--export-dynamic-symbol-list",
    "--dependency-file",
    "--library-path",
    "--symbol-ordering-file",
    "--call-graph-ordering-file",
    "--error-limit",
    "--threads",
    "--plugin",
    "--plugin-opt",
];
const SOURCES: [&str; 16] = [
    "c", "C", "cc", "cp", "cpp", "cxx", "c++", "CPP", "i", "ii", "m", "mm", "M", "s", "S", "sx",
];
/// Stops before code is generated, or does nothing at all.
const NO_CODE: [&str; 6] = ["-E", "-M", "-MM", "-fsyntax-only", "--version", "-###"];
/// Stops before the link.
const NO_LINK: [&str; 2] = ["-c", "-S"];

/// What a command line says. Places count its words from 0, without the program's own name.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub compiles: bool,
    pub links: bool,
    /// What the last `-o` names.
    pub output: Option<String>,
    pub sources: Vec<String>,
    /// Places of words that are neither options nor values of options.
    pub files: Vec<usize>,
    /// Places of the words that name the output.
    pub output_words: Vec<usize>,
    /// Where libraries are looked for.
    pub folders: Vec<String>,
    /// What the link takes, in order, without sources.
    pub inputs: Vec<LinkWord>,
}

/// A file, or `-lNAME`, and how the linker is to take it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LinkWord {
    pub text: String,
    /// Only an archive will do for `-lNAME`.
    pub r#static: bool,
    /// With all its members.
    pub whole: bool,
    /// Looked through again and again with its neighbors.
    pub grouped: bool,
}

impl Line {
    pub(crate) fn read(tool: Tool, arguments: &[String]) -> Line {
        if tool == Tool::Rustc {
            return rust_line::read(arguments);
        }
        let mut reader = Reader {
            of_linker: tool == Tool::Ld,
            ..Reader::default()
        };
        let mut at = 0;
        while at < arguments.len() {
            at += reader.word(at, &arguments[at], arguments.get(at + 1));
        }
        let Reader { mut line, .. } = reader;
        let fixed = arguments.iter().any(|word| word == "-static");
        (line.folders, line.inputs) = link_words(reader.linker, fixed);
        let taken = !(line.files.is_empty() && line.inputs.is_empty()) || reader.standard_input;
        let works = taken && !reader.stops;
        let source = reader.language || !line.sources.is_empty();
        line.compiles = works && source && tool != Tool::Ld;
        line.links = works && !reader.unlinked;
        line
    }
}

#[derive(Default)]
struct Reader {
    of_linker: bool,
    line: Line,
    /// What reaches the linker.
    linker: Vec<String>,
    /// What follows is source, whatever it is called.
    language: bool,
    standard_input: bool,
    stops: bool,
    unlinked: bool,
}

impl Reader {
    /// Takes a word and gives how many it was with its value.
    fn word(&mut self, at: usize, word: &str, next: Option<&String>) -> usize {
        match (word, next) {
            ("-o" | "--output", _) => {
                self.line.output_words.extend([at, at + 1]);
                self.line.output_words.truncate(self.words_of_output(next));
                self.line.output = next.cloned().or(self.line.output.take());
                return 2;
            }
            ("-x", Some(language)) if !self.of_linker => self.language = language != "none",
            ("-Xlinker", Some(passed)) => self.linker.push(passed.clone()),
            ("-L" | "-l", Some(value)) => self.linker.push(format!("{word}{value}")),
            _ if self.takes_value(word) => {}
            _ => {
                self.single(at, word);
                return 1;
            }
        }
        2
    }

    fn words_of_output(&self, value: Option<&String>) -> usize {
        self.line.output_words.len() - usize::from(value.is_none())
    }

    fn takes_value(&self, word: &str) -> bool {
        match self.of_linker {
            true => WITH_VALUE_OF_LINKER.contains(&word),
            false => WITH_VALUE.contains(&word),
        }
    }

    fn single(&mut self, at: usize, word: &str) {
        if let Some(name) = joined_output(word) {
            self.line.output_words.push(at);
            self.line.output = Some(name.to_string());
        } else if let (Some(passed), false) = (word.strip_prefix("-Wl,"), self.of_linker) {
            self.linker.extend(passed.split(',').map(String::from));
        } else if word == "-" {
            self.standard_input = true;
        } else if !word.starts_with('-') {
            self.line.files.push(at);
            if !self.of_linker && (self.language || is_source(word)) {
                self.line.sources.push(word.to_string());
            } else {
                self.linker.push(word.to_string());
            }
        } else {
            self.language |= word.starts_with("-x") && !self.of_linker;
            self.stops |= NO_CODE.contains(&word) && !self.of_linker;
            self.unlinked |= NO_LINK.contains(&word) && !self.of_linker;
            // A driver's flag may be called as a linker's option with a value: `-c`, `-P`.
            if self.of_linker || !WITH_VALUE_OF_LINKER.contains(&word) {
                self.linker.push(word.to_string());
            }
        }
    }
}

/// `-oNAME` or `--output=NAME`.
fn joined_output(word: &str) -> Option<&str> {
    if word.starts_with("-object") {
        return None;
    }
    word.strip_prefix("--output=").or(word.strip_prefix("-o"))
}

fn is_source(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    extension.is_some_and(|extension| SOURCES.contains(&extension))
}

/// Folders and inputs of what reaches the linker; with `fixed` everything is linked statically.
fn link_words(words: Vec<String>, fixed: bool) -> (Vec<String>, Vec<LinkWord>) {
    let (mut folders, mut inputs) = (Vec::new(), Vec::new());
    let (mut archives, mut whole, mut grouped) = (fixed, false, false);
    let mut rest = words.into_iter();
    while let Some(word) = rest.next() {
        // A value may have come in a word of its own: `-Wl,-soname -Wl,libx.so.1`.
        if WITH_VALUE_OF_LINKER.contains(&word.as_str()) {
            rest.next();
            continue;
        }
        let word = match word.as_str() {
            "-l" | "--library" => format!("-l{}", rest.next().unwrap_or_default()),
            _ => word,
        };
        let named = ["--just-symbols=", "--whole-archive="];
        let library = word.strip_prefix("-l").or(word.strip_prefix("--library="));
        let folder = word
            .strip_prefix("-L")
            .or(word.strip_prefix("--library-path="));
        match word.as_str() {
            "-Bstatic" | "-dn" | "-non_shared" => archives = true,
            "-Bdynamic" | "-dy" | "-call_shared" => archives = false,
            "--whole-archive" | "--no-whole-archive" => whole = word == "--whole-archive",
            "--start-group" | "-(" | "--end-group" | "-)" => {
                grouped = matches!(word.as_str(), "--start-group" | "-(")
            }
            _ => {
                let file = named.iter().find_map(|option| word.strip_prefix(option));
                let text = match (library.filter(|name| !name.is_empty()), file) {
                    (Some(name), _) => format!("-l{name}"),
                    (None, Some(file)) => file.to_string(),
                    (None, None) if !word.starts_with('-') => word.clone(),
                    (None, None) => {
                        folders.extend(folder.map(String::from));
                        continue;
                    }
                };
                inputs.push(LinkWord {
                    text,
                    r#static: archives,
                    whole,
                    grouped,
                });
            }
        }
    }
    (folders, inputs)
}

#[cfg(test)]
mod tests;
