//! A command line of rustc, read as what it compiles, links and writes. Pure.

use crate::line::{Line, LinkWord};

/// Options whose value may be the next word.
const WITH_VALUE: [&str; 24] = [
    "-o",
    "-L",
    "-l",
    "-C",
    "--codegen",
    "-A",
    "--allow",
    "-W",
    "--warn",
    "-D",
    "--deny",
    "-F",
    "--forbid",
    "--cap-lints",
    "--cfg",
    "--check-cfg",
    "--color",
    "--error-format",
    "--json",
    "--edition",
    "--explain",
    "--diagnostic-width",
    "--sysroot",
    "-Z",
];
/// The same, with what is looked at here.
const LOOKED_AT: [&str; 7] = [
    "--crate-name",
    "--crate-type",
    "--emit",
    "--extern",
    "--out-dir",
    "--print",
    "--target",
];
const LINKED: [&str; 4] = ["bin", "cdylib", "dylib", "proc-macro"];

#[derive(Default)]
struct Said {
    line: Line,
    crate_name: String,
    kinds: Vec<String>,
    emits: Vec<String>,
    extra: String,
    folder: String,
    asks: bool,
}

/// What rustc is asked to do; of what it prints only, nothing.
pub(crate) fn read(arguments: &[String]) -> Line {
    let mut said = Said::default();
    let mut at = 0;
    while at < arguments.len() {
        at += said.word(at, &arguments[at], arguments.get(at + 1));
    }
    said.line()
}

/// All files that the call writes: `emit` may name metadata beside what is linked.
pub(crate) fn outputs(line: &Line) -> Vec<String> {
    let Some(output) = &line.output else {
        return Vec::new();
    };
    let metadata = output
        .strip_suffix(".rlib")
        .map(|stem| format!("{stem}.rmeta"));
    [Some(output.clone()), metadata]
        .into_iter()
        .flatten()
        .collect()
}

impl Said {
    /// Takes a word and gives how many it was with its value.
    fn word(&mut self, at: usize, word: &str, next: Option<&String>) -> usize {
        if let (true, Some(value)) = (LOOKED_AT.contains(&word), next) {
            self.option(word, value);
            return 2;
        }
        if let (true, Some(value)) = (WITH_VALUE.contains(&word), next) {
            if word == "-o" {
                self.line.output_words = vec![at, at + 1];
            }
            self.option(word, value);
            return 2;
        }
        match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => self.option(name, value),
            _ => self.single(at, word),
        }
        1
    }

    fn single(&mut self, at: usize, word: &str) {
        let joined = ["-C", "-L", "-l", "-o"]
            .iter()
            .find_map(|name| word.strip_prefix(name).map(|value| (*name, value)));
        match joined {
            Some((name, value)) if !word.starts_with("--") => self.option(name, value),
            _ if matches!(word, "-V" | "-vV" | "--version" | "-h" | "--help") => self.asks = true,
            _ if !word.starts_with('-') || word == "-" => {
                self.line.files.push(at);
                self.line.sources.push(word.to_string());
            }
            _ => {}
        }
    }

    fn option(&mut self, name: &str, value: &str) {
        let parts = || value.split(',').map(String::from);
        match name {
            "--crate-name" => self.crate_name = value.to_string(),
            "--crate-type" => self.kinds.extend(parts()),
            "--emit" => self.emits.extend(parts()),
            "--out-dir" => self.folder = format!("{value}/"),
            "--print" => self.asks |= !value.contains('='),
            "-o" => self.line.output = Some(value.to_string()),
            "--extern" => {
                if let Some((_, path)) = value.split_once('=') {
                    self.input(path, false);
                }
            }
            "-L" => {
                let (kind, path) = value.split_once('=').unwrap_or(("all", value));
                if matches!(kind, "native" | "all") {
                    self.line.folders.push(path.to_string());
                }
            }
            "-l" => {
                let (kind, named) = value.split_once('=').unwrap_or(("dylib", value));
                let library = named.split(':').next().unwrap_or(named);
                self.input(&format!("-l{library}"), kind.starts_with("static"));
            }
            "-C" | "--codegen" => {
                if let Some(extra) = value.strip_prefix("extra-filename=") {
                    self.extra = extra.to_string();
                }
            }
            _ => {}
        }
    }

    fn input(&mut self, text: &str, archive: bool) {
        self.line.inputs.push(LinkWord {
            text: text.to_string(),
            r#static: archive,
            whole: false,
            grouped: false,
        });
    }

    fn line(mut self) -> Line {
        let kinds = match self.kinds.is_empty() {
            true => vec!["bin".to_string()],
            false => self.kinds.clone(),
        };
        let whole = self.emits.is_empty() || self.emits.iter().any(|each| each == "link");
        let code = whole || self.emits.iter().any(|each| each.starts_with("obj"));
        let works = !self.line.sources.is_empty() && !self.asks;
        self.line.compiles = works && code;
        self.line.links = works && whole && kinds.iter().any(|k| LINKED.contains(&k.as_str()));
        if self.line.compiles && self.line.output.is_none() {
            let stem = self.stem();
            self.line.output = Some(match kinds[0].as_str() {
                "bin" => format!("{}{stem}", self.folder),
                "lib" | "rlib" => format!("{}lib{stem}.rlib", self.folder),
                "staticlib" => format!("{}lib{stem}.a", self.folder),
                _ => format!("{}lib{stem}.so", self.folder),
            });
        }
        self.line
    }

    fn stem(&self) -> String {
        let source = self.line.sources.first().map_or("", String::as_str);
        let file = source.rsplit('/').next().unwrap_or(source);
        let name = match self.crate_name.is_empty() {
            true => file.strip_suffix(".rs").unwrap_or(file).replace('-', "_"),
            false => self.crate_name.clone(),
        };
        format!("{name}{}", self.extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Line {
        let words: Vec<String> = text.split_whitespace().map(String::from).collect();
        read(&words)
    }

    #[test]
    fn a_library_of_cargo_is_compiled_but_not_linked() {
        let line = of("--crate-name x --edition=2021 src/lib.rs --crate-type lib \
             --emit=dep-info,metadata,link -C opt-level=3 -C extra-filename=-63d6 \
             --out-dir /t/deps --target x86_64-unknown-linux-gnu -L dependency=/t/deps \
             -L native=/t/out -l static=foo --extern y=/t/deps/liby-1.rmeta");
        assert!(line.compiles && !line.links);
        assert_eq!(line.sources, ["src/lib.rs"]);
        assert_eq!(
            outputs(&line),
            ["/t/deps/libx-63d6.rlib", "/t/deps/libx-63d6.rmeta"]
        );
        let inputs: Vec<&str> = line.inputs.iter().map(|each| each.text.as_str()).collect();
        assert_eq!(inputs, ["-lfoo", "/t/deps/liby-1.rmeta"]);
        assert!(line.inputs[0].r#static);
        assert_eq!(line.folders, ["/t/out"]);
    }

    #[test]
    fn a_program_is_linked() {
        let line = of(
            "--crate-name x src/main.rs --crate-type bin --emit=dep-info,link \
                       -C extra-filename=-f6 --out-dir /t -Clto=fat",
        );
        assert!(line.compiles && line.links);
        assert_eq!(outputs(&line), ["/t/x-f6"]);
        assert_eq!(outputs(&of("-O my-program.rs")), ["my_program"]);
        assert_eq!(outputs(&of("-C opt-level=3 -o p main.rs")), ["p"]);
        assert_eq!(outputs(&of("--crate-type cdylib a.rs")), ["liba.so"]);
    }

    #[test]
    fn questions_do_nothing() {
        for text in [
            "-vV",
            "- --crate-name ___ --print=file-names --crate-type bin",
            "--print sysroot",
            "--crate-name x src/lib.rs --emit=dep-info,metadata",
            "-C",
            "",
        ] {
            let line = of(text);
            assert!(!line.compiles && !line.links, "{text}");
            assert!(outputs(&line).is_empty(), "{text}");
        }
    }
}
