//! Functions of one compilation in the place of another's, in the text of assemblers. Pure.
//!
//! Both texts stay whole: functions that are replaced keep their code under another name, and so does
//! everything that the second text defines besides. What it refers to is the first one's where that
//! has it, so that both share their data.

use std::collections::{HashMap, HashSet};

const OTHERS: &str = ".ensign";
const REPLACED: &str = ".ensign_replaced";
const LOCAL: &str = ".L";
/// Directives that say who sees a symbol.
const VISIBLE: [&str; 7] = [
    ".globl",
    ".global",
    ".weak",
    ".hidden",
    ".protected",
    ".internal",
    ".local",
];
const TEXTS: [&str; 4] = [".string", ".ascii", ".asciz", ".base64"];
const DROPPED: [&str; 5] = [".file", ".loc", ".ident", ".addrsig", ".addrsig_sym"];
/// Functions that run by themselves would run twice.
const RUN_AT_START: [&str; 5] = [
    ".init_array",
    ".fini_array",
    ".preinit_array",
    ".ctors",
    ".dtors",
];
/// Names that a compiler gives to copies of its own making.
const CLONES: [&str; 5] = [".constprop", ".part", ".isra", ".cold", ".llvm"];

/// The first text with `functions` as the second one has them.
///
/// With `own_callees` local functions that they call are the second one's, too: its compiler may have
/// changed what these take. An error names a function that is not in both.
pub(crate) fn mixed(
    first: &str,
    second: &str,
    functions: &[String],
    own_callees: bool,
) -> Result<String, String> {
    let known = (Symbols::of(first), Symbols::of(second));
    for name in functions {
        if !known.0.functions.contains(name.as_str()) || !known.1.functions.contains(name.as_str())
        {
            return Err(format!("{name} is no function of its own on both sides"));
        }
    }
    let statics = (known.0.statics()?, known.1.statics()?);
    let taken: HashSet<&str> = functions.iter().map(String::as_str).collect();
    let mut text: String = first
        .lines()
        .filter_map(|line| replaced(line, &taken))
        .collect();
    text.push_str("\t.text\n");
    let names = Names {
        first: known.0,
        second: known.1,
        statics: statics.0,
        taken,
        own_callees,
    };
    let mut section = Section::default();
    for line in second.lines() {
        if !section.skips(line) {
            text.extend(names.of_second(line));
        }
    }
    Ok(text)
}

#[derive(Default)]
struct Symbols<'a> {
    defined: HashSet<&'a str>,
    functions: HashSet<&'a str>,
    global: HashSet<&'a str>,
}

impl<'a> Symbols<'a> {
    fn of(text: &'a str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            if let Some(name) = label(line) {
                found.defined.insert(name);
                continue;
            }
            let (directive, rest) = parted(line);
            let name = first_name(rest);
            match directive {
                ".comm" | ".lcomm" | ".set" => found.defined.insert(name),
                ".globl" | ".global" | ".weak" => found.global.insert(name),
                ".type" if rest.ends_with("function") => found.functions.insert(name),
                _ => false,
            };
        }
        found.functions.retain(|name| found.defined.contains(name));
        found
    }

    /// Static variables of functions, which are numbered, by their names in the source. An error names
    /// one that several functions have: which is which is not known then.
    fn statics(&self) -> Result<HashMap<&'a str, &'a str>, String> {
        let mut found = HashMap::new();
        for name in self.defined.difference(&self.functions).copied() {
            let Some(own) = without_number(name) else {
                continue;
            };
            if found.insert(own, name).is_some() {
                return Err(format!("several functions have a static variable {own}"));
            }
        }
        Ok(found)
    }
}

/// A line of the first text; none where it makes a function visible that is replaced.
fn replaced(line: &str, taken: &HashSet<&str>) -> Option<String> {
    if let Some(name) = label(line) {
        return Some(match taken.contains(name) {
            true => format!("{name}{REPLACED}:\n"),
            false => format!("{line}\n"),
        });
    }
    let (directive, rest) = parted(line);
    let about = taken.contains(first_name(rest));
    match directive {
        _ if !about => Some(format!("{line}\n")),
        ".type" | ".size" => {
            let name = first_name(rest);
            let renamed = rest.replacen(name, &format!("{name}{REPLACED}"), 1);
            let renamed = renamed.replace(&format!(".-{name}"), &format!(".-{name}{REPLACED}"));
            Some(format!("\t{directive}\t{renamed}\n"))
        }
        _ if VISIBLE.contains(&directive) => None,
        _ => Some(format!("{line}\n")),
    }
}

struct Names<'a> {
    first: Symbols<'a>,
    second: Symbols<'a>,
    /// Numbered variables of the first text.
    statics: HashMap<&'a str, &'a str>,
    taken: HashSet<&'a str>,
    own_callees: bool,
}

impl Names<'_> {
    /// A line of the second text; none where it is not wanted.
    fn of_second(&self, line: &str) -> Option<String> {
        if let Some(name) = label(line) {
            return Some(format!("{}:\n", self.defined(name)));
        }
        let (directive, rest) = parted(line);
        let name = first_name(rest);
        let taken = self.taken.contains(name);
        match directive {
            _ if DROPPED.contains(&directive) => None,
            _ if TEXTS.contains(&directive) || directive == ".section" => Some(format!("{line}\n")),
            ".comm" | ".lcomm" | ".type" | ".size" | ".local" => {
                let renamed = with_names(rest, |each| self.defined(each));
                Some(format!("\t{directive}\t{renamed}\n"))
            }
            ".set" => {
                let (before, after) = rest.split_once(',').unwrap_or((rest, ""));
                let value = with_names(after, |each| self.referred(each));
                Some(format!("\t.set\t{},{value}\n", self.defined(before.trim())))
            }
            _ if VISIBLE.contains(&directive) => taken.then(|| format!("{line}\n")),
            _ => {
                let renamed = with_names(rest, |each| self.referred(each));
                Some(format!("\t{directive}\t{renamed}\n"))
            }
        }
    }

    /// The name of what the second text defines.
    fn defined(&self, name: &str) -> String {
        if let Some(rest) = name.strip_prefix(LOCAL) {
            return format!("{LOCAL}ensign_{rest}");
        }
        match self.second.defined.contains(name) && !self.taken.contains(name) {
            true => format!("{name}{OTHERS}"),
            false => name.to_string(),
        }
    }

    /// The name of what the second text refers to.
    fn referred(&self, name: &str) -> String {
        let variable = self.second.defined.contains(name) && !self.second.functions.contains(name);
        let numbered = without_number(name).filter(|_| variable);
        if let Some(same) = numbered.and_then(|own| self.statics.get(own)) {
            return same.to_string();
        }
        let callee = self.second.functions.contains(name) && !self.second.global.contains(name);
        let own = (self.own_callees && callee) || CLONES.iter().any(|each| name.contains(each));
        match self.first.defined.contains(name) && !own && !name.starts_with(LOCAL) {
            true => name.to_string(),
            false => self.defined(name),
        }
    }
}

/// The section that lines are in, as far as it matters.
#[derive(Default)]
struct Section {
    skipped: bool,
    before: Vec<bool>,
}

impl Section {
    /// Whether a line is in a section of functions that run by themselves, or opens it.
    fn skips(&mut self, line: &str) -> bool {
        let (directive, rest) = parted(line);
        let starts = RUN_AT_START.iter().any(|name| rest.starts_with(name));
        match directive {
            ".pushsection" => {
                self.before.push(self.skipped);
                self.skipped = starts;
            }
            ".popsection" => {
                let left = self.skipped;
                self.skipped = self.before.pop().unwrap_or_default();
                return left;
            }
            ".section" => self.skipped = starts,
            ".text" | ".data" | ".bss" => self.skipped = false,
            _ => {}
        }
        self.skipped
    }
}

/// What GCC calls a function's static variable but for its number: `counter` of `counter.3`.
fn without_number(name: &str) -> Option<&str> {
    let (own, number) = name.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.chars().all(|each| each.is_ascii_digit());
    (is_number && !own.is_empty() && !name.starts_with(LOCAL)).then_some(own)
}

/// The name that a line defines as a place; not numbers, nor labels of the compiler's own.
fn label(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let is_name = name.chars().next().is_some_and(is_first) && name.chars().all(is_in_name);
    is_name.then_some(name)
}

/// A directive or mnemonic, and what follows.
fn parted(line: &str) -> (&str, &str) {
    let line = line.trim();
    line.split_once(char::is_whitespace)
        .map_or((line, ""), |(word, rest)| (word, rest.trim()))
}

fn first_name(rest: &str) -> &str {
    let end = rest.find(|each| !is_in_name(each)).unwrap_or(rest.len());
    &rest[..end]
}

fn is_first(letter: char) -> bool {
    letter.is_ascii_alphabetic() || "_.".contains(letter)
}

fn is_in_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_.$".contains(letter)
}

/// Operands with other names; registers, numbers, kinds of relocation, texts and comments stay.
fn with_names(text: &str, name: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let end = match letter {
            '#' => rest.len(),
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '%' | '@' => 1 + first_name(&rest[1..]).len(),
            _ if letter.is_ascii_digit() || is_first(letter) => first_name(rest).len(),
            _ => letter.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        match is_first(letter) {
            true => out.push_str(&name(word)),
            false => out.push_str(word),
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::mixed;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};

    const SOURCE: &str = "
        static int calls; static const char *names[] = {\"a\", \"b\"};
        static int __attribute__((noinline)) helped(int n) { calls++; return n * TIMES; }
        int hot(int n) { switch (n) { case 1: return helped(n); case 2: return 7 * TIMES;
          case 3: return names[n & 1][0]; case 4: return calls; case 5: calls += 9; } return -n; }
        int cold(int n) { return helped(n) + hot(n - 1) + TIMES; }
        __attribute__((constructor)) static void begin(void) { calls += 100; }
        int counted(void) { return calls; }
    ";
    const MAIN: &str = "
        #include <stdio.h>
        int hot(int), cold(int), counted(void);
        int main(void) { for (int n = 0; n < 7; n++) printf(\"%d %d %d,\", hot(n), cold(n), counted()); }
    ";

    static FOLDERS: AtomicU32 = AtomicU32::new(0);

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
            let name = format!("ensign-mixed-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn ran(folder: &Path, argv: &[&str]) -> String {
        let done = Command::new(argv[0])
            .args(&argv[1..])
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    }

    /// What the program prints with `hot` of the first kind and the rest of the second, and so on.
    fn printed(compiler: &str, flags: [&str; 2], times: [&str; 2], functions: &[&str]) -> String {
        let folder = Folder::new();
        let folder = folder.0.as_path();
        std::fs::write(folder.join("part.c"), SOURCE).unwrap();
        std::fs::write(folder.join("main.c"), MAIN).unwrap();
        let texts = [0, 1].map(|side| {
            let times = format!("-DTIMES={}", times[side]);
            let debug = ["-g", "-g0"][side];
            ran(
                folder,
                &[
                    compiler,
                    flags[side],
                    debug,
                    &times,
                    "-S",
                    "-o",
                    "-",
                    "part.c",
                ],
            )
        });
        let names: Vec<String> = functions.iter().map(|name| name.to_string()).collect();
        let clang = compiler.starts_with("clang");
        let text = mixed(&texts[0], &texts[1], &names, clang).unwrap();
        std::fs::write(folder.join("part.s"), text).unwrap();
        ran(folder, &[compiler, "-o", "program", "main.c", "part.s"]);
        ran(folder, &["./program"])
    }

    #[test]
    fn functions_are_those_of_the_second_and_share_the_data_of_the_first() {
        for compiler in ["gcc-12", "clang-19"] {
            let same = printed(compiler, ["-O2", "-O2"], ["3", "3"], &["hot"]);
            for flags in [["-O0", "-O3"], ["-O3", "-O0"], ["-O2", "-Os"]] {
                assert_eq!(printed(compiler, flags, ["3", "3"], &["hot"]), same);
                assert_eq!(printed(compiler, flags, ["3", "3"], &["hot", "cold"]), same);
            }
            let other = printed(compiler, ["-O2", "-O2"], ["3", "5"], &["hot"]);
            // Of the second one are 7 × TIMES and, by Clang's rule, the helper that `hot` calls.
            assert!(other.contains(" 35 ") || other.contains(",35 "), "{other}");
            assert_ne!(
                other,
                printed(compiler, ["-O2", "-O2"], ["5", "5"], &["hot"])
            );
        }
    }

    #[test]
    fn static_variables_of_functions_are_the_first_ones_by_name() {
        let one =
            "\t.type\tf, @function\nf:\n\tmov n.1(%rip), %eax\n\t.local\tn.1\n\t.comm\tn.1,4,4\n";
        let two = one.replace("n.1", "n.7");
        let names = ["f".to_string()];
        let text = mixed(one, &two, &names, false).unwrap();
        assert!(text.contains("f:\n\tmov\tn.1(%rip), %eax\n"), "{text}");
        let both = format!("{one}\t.comm\tn.2,4,4\n");
        let said = mixed(&both, &two, &names, false).unwrap_err();
        assert!(
            said.contains("several functions have a static variable n"),
            "{said}"
        );
    }

    #[test]
    fn a_function_that_is_nowhere_or_inlined_is_named() {
        let one = "\t.type\tf, @function\nf:\n\tret\n";
        let names = ["g".to_string()];
        let said = mixed(one, one, &names, false).unwrap_err();
        assert!(said.contains("g is no function"), "{said}");
    }
}
