//! In the place of a compiler, linker or archiver: runs the real one and writes the call down.
//!
//! A link named after the program stands first on PATH; `ENSIGN_RECORDER` names a JSON file that
//! says which program that is, what to change, and where records go (docs/reference/recorder.md).

use crate::call::{self, Tool};
use crate::hashing;
use crate::inputs::{self, Input};
use crate::line::Line;
use crate::mixed::mixed;
use crate::sink::Sink;
use ensign_host::clock;
use ensign_host::path::lexically;
use rustix::process::{set_dumpable_behavior, DumpableBehavior};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Not all that begins with CARGO: that may hold keys to registries.
const CRATE_VARIABLES: [&str; 5] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_NAME",
    "CARGO_PRIMARY_PACKAGE",
];
const SETTINGS: &str = "ENSIGN_RECORDER";
/// Set beneath a recorded call: what a driver runs in turn is part of that call.
const BENEATH: &str = "ENSIGN_RECORDED";
const OWN_NAME: &str = "ensign-meter";
/// The name of the settings beside a recorder.
const BESIDE: &str = "settings.json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    schema: u32,
    /// Where records go: to a file, or to who listens on a socket; nowhere without either.
    #[serde(default)]
    log: Option<PathBuf>,
    #[serde(default)]
    socket: Option<PathBuf>,
    /// Whether the build is kept from tracing this process, and so from writing in its place.
    #[serde(default)]
    untraceable: bool,
    /// The copy of this program that records, where links lead to another one. Build systems want to
    /// read a compiler, and what can be read can be traced from its start.
    #[serde(default)]
    recorder: Option<PathBuf>,
    tools: BTreeMap<String, Program>,
    #[serde(default)]
    compile: Vec<String>,
    #[serde(default)]
    link: Vec<String>,
    #[serde(default)]
    remove: Vec<String>,
    /// Words about the position independence of programs, which would undo that of libraries.
    #[serde(default)]
    program_only: Vec<String>,
    /// Sources that are compiled in another way than the rest.
    #[serde(default)]
    units: Option<Units>,
}

/// Sources below `root` that match a pattern, or all others: flags and compilers of their own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Units {
    root: PathBuf,
    patterns: Vec<String>,
    inverted: bool,
    told: Vec<String>,
    flags: Vec<String>,
    #[serde(default)]
    programs: BTreeMap<Tool, PathBuf>,
    /// These alone, where the sources are to stay as they are otherwise.
    #[serde(default)]
    functions: Vec<String>,
}

impl Units {
    /// Whether a call compiles such sources and no others; where functions are asked for, any.
    fn are_of(&self, line: &Line, cwd: &Path) -> bool {
        let mut own = line.sources.iter().map(|source| self.has(source, cwd));
        match self.functions.is_empty() {
            true => !line.sources.is_empty() && own.all(|own| own),
            false => own.any(|own| own),
        }
    }

    fn has(&self, source: &str, cwd: &Path) -> bool {
        let path = lexically(&cwd.join(source));
        let Ok(name) = path.strip_prefix(&self.root) else {
            return false;
        };
        let name = name.to_string_lossy();
        self.patterns.iter().any(|each| call::matches(each, &name)) != self.inverted
    }

    /// With other flags in the place of those that the build was told, where it hands them on.
    fn rewritten(&self, arguments: Vec<String>) -> Vec<String> {
        let told = |word: &&String| self.told.contains(word);
        if !self.told.iter().all(|word| arguments.contains(word)) {
            return arguments;
        }
        let before = arguments.iter().take_while(|word| !told(word)).count();
        let mut changed: Vec<String> = arguments
            .iter()
            .filter(|word| !told(word))
            .cloned()
            .collect();
        changed.splice(before..before, self.flags.iter().cloned());
        changed
    }
}

impl Settings {
    /// Whether nothing is recorded and nothing changed.
    fn only_runs(&self) -> bool {
        let changes = [&self.compile, &self.link, &self.remove, &self.program_only];
        let changed = self.units.is_some() || changes.iter().any(|each| !each.is_empty());
        self.socket.is_none() && self.log.is_none() && !changed
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    tool: Tool,
    program: PathBuf,
}

#[derive(Serialize)]
struct Record<'a> {
    schema: u32,
    tool: Tool,
    program: &'a Path,
    argv: Vec<String>,
    ran: Vec<String>,
    cwd: PathBuf,
    started_unix_ns: u64,
    wall_ns: u64,
    exit: Option<i32>,
    signal: Option<i32>,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// What Cargo told a crate (`NAME=VALUE`); macros read it, and no dependency file says which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variables: Vec<String>,
    /// What `ran` says, of compilers and linkers.
    line: Option<Line>,
}

#[derive(Serialize)]
struct Output {
    path: PathBuf,
    sha256: String,
    size_bytes: u64,
}

/// The name under which this program was called, where that is not its own.
pub fn called_as() -> Option<String> {
    let name = std::env::args_os().next()?;
    let name = Path::new(&name).file_name()?.to_str()?.to_string();
    let known = || std::env::var_os(SETTINGS).is_some() || settings_beside().is_some();
    (name != OWN_NAME && known()).then_some(name)
}

/// The settings beside this executable. A build system keeps the paths of the links that it found
/// while it was recorded, and calls them later, when nobody records.
fn settings_beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(BESIDE);
    path.is_file().then_some(path)
}

/// Runs the real program and gives its exit status.
pub fn record(name: &str) -> i32 {
    match run(name) {
        Ok(status) => status,
        Err(text) => {
            eprintln!("ensign-meter, in the place of {name}: {text}");
            127
        }
    }
}

fn run(name: &str) -> Result<i32, String> {
    let (settings, settings_sha256) = read_settings()?;
    if settings.untraceable {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    }
    let program = settings
        .tools
        .get(name)
        .ok_or_else(|| format!("{SETTINGS} names no program for it"))?;
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.into_string())
        .collect::<Result<_, _>>()
        .map_err(|argument| format!("{argument:?} is not text"))?;
    if std::env::var_os(BENEATH).is_some() || settings.only_runs() {
        let error = command(&program.program, &arguments).exec();
        return Err(format!("{}: {error}", program.program.display()));
    }
    if let Some(recorder) = settings.recorder.as_deref().filter(|path| !is_this(path)) {
        let error = Command::new(recorder).arg0(name).args(&arguments).exec();
        return Err(format!("{}: {error}", recorder.display()));
    }
    let cwd = std::env::current_dir().map_err(|error| error.to_string())?;
    let call = Asked::new(name, program, &arguments, &settings);
    let asked = Line::read(call.tool, &call.arguments);
    let work = call::work(call.tool, &asked);
    let units = settings
        .units
        .as_ref()
        .filter(|units| work.compiles && units.are_of(&asked, &cwd));
    let ran = call::rewritten(
        &call.arguments,
        work,
        &settings.compile,
        &settings.link,
        &settings.remove,
    );
    let as_library = |ran| call::as_library(ran, work, &settings.program_only);
    let in_part = units.filter(|units| !units.functions.is_empty());
    let second = in_part.map(|units| as_library(units.rewritten(ran.clone())));
    let units = units.filter(|units| units.functions.is_empty());
    let ran = as_library(match units {
        Some(units) => units.rewritten(ran),
        None => ran,
    });
    let other = units
        .filter(|_| !work.links && call.launcher.is_empty())
        .and_then(|units| units.programs.get(&call.tool));
    let ran_by = other.unwrap_or(&program.program);
    let line = Line::read(call.tool, &ran);
    let inputs = match call.tool {
        Tool::Objcopy | Tool::Strip => inputs::of_change(&ran, &cwd),
        tool if work.links || matches!(tool, Tool::Ld | Tool::Rustc) => {
            inputs::of_link(&line, &cwd)
        }
        _ => Vec::new(),
    };
    // A response file is there because the line is too long: only a change may need it unfolded.
    let passed = match ran == call.arguments {
        true => arguments,
        false => call.behind(&ran),
    };
    let started_unix_ns = clock::unix_ns();
    let start = clock::now_ns();
    let status = command(ran_by, &passed)
        .env(BENEATH, "1")
        .status()
        .map_err(|error| format!("{}: {error}", ran_by.display()))?;
    let files = match status.success() {
        true => call::outputs(call.tool, &ran, &line),
        false => Vec::new(),
    };
    if let (Some(units), Some(second), true) = (in_part, &second, status.success()) {
        let program = &call.program;
        let first = Compilation {
            program,
            arguments: &ran,
        };
        let program = units.programs.get(&call.tool).unwrap_or(program);
        let second = Compilation {
            program,
            arguments: second,
        };
        let objects = if work.links { &[][..] } else { &files };
        mix(first, second, units, objects)?;
    }
    let wall_ns = clock::now_ns() - start;
    let mut outputs = written(&cwd, &files);
    if matches!(call.tool, Tool::Objcopy | Tool::Strip) {
        outputs.retain(|file| !inputs.iter().any(|each| each.is(&file.path, &file.sha256)));
    }
    let record = Record {
        schema: 2,
        tool: call.tool,
        program: other.unwrap_or(&call.program),
        argv: with_name(&call.name, call.arguments),
        ran: with_name(&call.name, ran),
        cwd,
        started_unix_ns,
        wall_ns,
        exit: status.code(),
        signal: status.signal(),
        inputs,
        outputs,
        variables: match call.tool {
            Tool::Rustc => crate_variables(),
            _ => Vec::new(),
        },
        line: call.tool.has_line().then_some(line),
    };
    let sink = Sink::of(settings.socket.as_deref(), settings.log.as_deref());
    sink.write(&record, &settings_sha256)?;
    Ok(ended(status))
}

/// A compiler and its arguments.
#[derive(PartialEq)]
struct Compilation<'a> {
    program: &'a Path,
    arguments: &'a [String],
}

impl Compilation<'_> {
    fn is_clang(&self) -> bool {
        let name = self.program.file_name().unwrap_or_default();
        name.to_string_lossy().contains("clang")
    }

    /// What it makes for the assembler. What GCC finds out of a callee's registers and stack would
    /// hold no longer of another one.
    fn text(&self, own: &[&str]) -> Result<String, String> {
        let of_gcc = ["-fno-ipa-ra", "-fno-ipa-stack-alignment"];
        let more = if self.is_clang() { &[][..] } else { &of_gcc };
        let arguments = call::for_assembler(self.arguments);
        let done = command(self.program, &arguments)
            .args(more)
            .args(own)
            .args(["-S", "-o", "-"])
            .env(BENEATH, "1")
            .output()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        match done.status.success() {
            true => String::from_utf8(done.stdout).map_err(|error| error.to_string()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }
}

/// Puts functions of the second compilation in the object of the first.
fn mix(
    first: Compilation,
    second: Compilation,
    units: &Units,
    objects: &[String],
) -> Result<(), String> {
    if first == second {
        return Err("the build gives this call none of its flags, so none can be changed".into());
    }
    let [object] = objects else {
        return Err(
            "functions are mixed only where a call compiles one source, and does not link".into(),
        );
    };
    let own_callees = first.is_clang() || second.is_clang();
    let texts = (first.text(&[])?, second.text(&["-g0"])?);
    let text = mixed(&texts.0, &texts.1, &units.functions, own_callees)?;
    let file = format!("{object}.ensign.s");
    std::fs::write(&file, text).map_err(|error| format!("{file}: {error}"))?;
    let assembled = command(first.program, &["-c".into(), "-o".into(), object.clone()])
        .arg(&file)
        .env(BENEATH, "1")
        .output();
    let removed = std::fs::remove_file(&file);
    let done = assembled.and_then(|done| removed.map(|()| done));
    match done {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(error) => Err(format!("{file}: {error}")),
    }
}

fn crate_variables() -> Vec<String> {
    let of_crate = |name: &str| {
        name == "OUT_DIR" || CRATE_VARIABLES.iter().any(|start| name.starts_with(start))
    };
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| of_crate(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// The call as the build meant it: behind a launcher (`ccache gcc …`) that of the compiler.
struct Asked {
    tool: Tool,
    name: String,
    program: PathBuf,
    /// Response files are unfolded.
    arguments: Vec<String>,
    /// The launcher's own words, up to the compiler.
    launcher: Vec<String>,
}

impl Asked {
    fn new(name: &str, program: &Program, arguments: &[String], settings: &Settings) -> Asked {
        let launched = match program.tool {
            Tool::Launcher => call::launched(arguments),
            _ => None,
        };
        let Some((place, tool)) = launched else {
            return Asked {
                tool: program.tool,
                name: name.to_string(),
                program: program.program.clone(),
                arguments: call::expanded(arguments),
                launcher: Vec::new(),
            };
        };
        let compiler = Path::new(&arguments[place]);
        let called = compiler.file_name().unwrap_or_default().to_string_lossy();
        let real = settings.tools.get(called.as_ref());
        Asked {
            tool: real.map_or(tool, |known| known.tool),
            name: called.to_string(),
            program: real.map_or(compiler.to_path_buf(), |known| known.program.clone()),
            arguments: call::expanded(&arguments[place + 1..]),
            launcher: arguments[..=place].to_vec(),
        }
    }

    fn behind(&self, arguments: &[String]) -> Vec<String> {
        [&self.launcher, arguments].concat()
    }
}

/// Whether a file is the one that this process executes.
fn is_this(path: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|data| (data.dev(), data.ino()));
    let own = identity(Path::new("/proc/self/exe"));
    own.is_ok_and(|own| identity(path).is_ok_and(|other| own == other))
}

/// What they say, and their hash: who collects the records knows which ones he gave.
fn read_settings() -> Result<(Settings, String), String> {
    let named = std::env::var_os(SETTINGS).map(PathBuf::from);
    let path = named.or_else(settings_beside).unwrap_or_default();
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let settings = settings_of(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((settings, hashing::of_bytes(&text)))
}

pub(crate) fn settings_of(text: &[u8]) -> Result<Settings, String> {
    let settings: Settings = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match settings.schema {
        1 => Ok(settings),
        other => Err(format!("schema {other} is not known")),
    }
}

/// Under its own path: drivers find their other parts from the name they were called by.
fn command(program: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.arg0(program).args(arguments.iter().map(OsStr::new));
    command
}

fn with_name(name: &str, mut arguments: Vec<String>) -> Vec<String> {
    arguments.insert(0, name.to_string());
    arguments
}

fn written(cwd: &Path, names: &[String]) -> Vec<Output> {
    names
        .iter()
        .map(|name| cwd.join(name))
        .filter(|path| path.is_file())
        .filter_map(|path| {
            let (sha256, size_bytes) = hashing::of_file(&path).ok()?;
            Some(Output {
                path,
                sha256,
                size_bytes,
            })
        })
        .collect()
}

/// As a shell gives it: a signal is 128 and its number.
fn ended(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
