//! In the place of a compiler, linker or archiver: runs the real one and writes the call down.
//!
//! A link named after the program stands first on PATH; `ENSIGN_RECORDER` names a JSON file that
//! says which program that is, what to change, and where records go (docs/recorder.md).

use crate::call::{self, Tool};
use crate::clock;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

const SETTINGS: &str = "ENSIGN_RECORDER";
/// Set beneath a recorded call: what a driver runs in turn is part of that call.
const BENEATH: &str = "ENSIGN_RECORDED";
const OWN_NAME: &str = "ensign-meter";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    schema: u32,
    log: PathBuf,
    tools: BTreeMap<String, Program>,
    #[serde(default)]
    compile: Vec<String>,
    #[serde(default)]
    link: Vec<String>,
    #[serde(default)]
    remove: Vec<String>,
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
    outputs: Vec<Output>,
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
    (name != OWN_NAME && std::env::var_os(SETTINGS).is_some()).then_some(name)
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
    let settings = read_settings()?;
    let program = settings
        .tools
        .get(name)
        .ok_or_else(|| format!("{SETTINGS} names no program for it"))?;
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.into_string())
        .collect::<Result<_, _>>()
        .map_err(|argument| format!("{argument:?} is not text"))?;
    if std::env::var_os(BENEATH).is_some() {
        let error = command(&program.program, &arguments).exec();
        return Err(format!("{}: {error}", program.program.display()));
    }
    let asked = call::expanded(&arguments);
    let work = call::work(program.tool, &asked);
    let changes =
        !(settings.compile.is_empty() && settings.link.is_empty() && settings.remove.is_empty());
    let ran = call::rewritten(
        &asked,
        work,
        &settings.compile,
        &settings.link,
        &settings.remove,
    );
    // A response file is there because the line is too long: only a change may need it unfolded.
    let passed = if changes { &ran } else { &arguments };
    let started_unix_ns = clock::unix_ns();
    let start = clock::now_ns();
    let status = command(&program.program, passed)
        .env(BENEATH, "1")
        .status()
        .map_err(|error| format!("{}: {error}", program.program.display()))?;
    let wall_ns = clock::now_ns() - start;
    let cwd = std::env::current_dir().map_err(|error| error.to_string())?;
    let outputs = match status.success() {
        true => written(&cwd, &call::outputs(program.tool, &ran)),
        false => Vec::new(),
    };
    let record = Record {
        schema: 1,
        tool: program.tool,
        program: &program.program,
        argv: with_name(name, asked),
        ran: with_name(name, ran),
        cwd,
        started_unix_ns,
        wall_ns,
        exit: status.code(),
        signal: status.signal(),
        outputs,
    };
    append(&settings.log, &record)
        .map_err(|error| format!("cannot record to {}: {error}", settings.log.display()))?;
    Ok(ended(status))
}

fn read_settings() -> Result<Settings, String> {
    let path = PathBuf::from(std::env::var_os(SETTINGS).unwrap_or_default());
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let settings: Settings =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    match settings.schema {
        1 => Ok(settings),
        other => Err(format!("{}: schema {other} is not known", path.display())),
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
        .filter_map(|path| hashed(&path).ok())
        .collect()
}

fn hashed(path: &Path) -> io::Result<Output> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0u8; 1 << 16];
    let mut size_bytes = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        size_bytes += count as u64;
    }
    let sha256 = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(Output {
        path: path.to_path_buf(),
        sha256,
        size_bytes,
    })
}

/// One line, whole, however many calls end at once.
fn append(log: &Path, record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    let mut file = OpenOptions::new().create(true).append(true).open(log)?;
    // SAFETY: the descriptor is open; the lock goes with it.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } < 0 {
        return Err(io::Error::last_os_error());
    }
    file.write_all(&line)
}

/// As a shell gives it: a signal is 128 and its number.
fn ended(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
