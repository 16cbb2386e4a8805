//! From a process as requested to a process that runs (or stands ready to).

use crate::account::Exit;
use crate::counters::Counters;
use crate::freezer::Group;
use crate::halt::{Code, Failure, Halt};
use crate::lookup;
use crate::records::{Outcome, Reason, Role};
use crate::request;
use crate::scratch::{self, Scratch};
use crate::spawn::{self, Child, Command, Resource};
use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Values of the placeholders of one arm in one execution.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub arm: Option<String>,
    pub port: Option<u16>,
    pub tmp: String,
    /// The arm's own copy of its files, where it has some.
    pub files: Option<String>,
}

impl Names {
    pub fn expand(&self, text: &str) -> String {
        let mut text = text.replace("{tmp}", &self.tmp);
        if let Some(files) = &self.files {
            text = text.replace("{files}", files);
        }
        if let Some(arm) = &self.arm {
            text = text.replace("{arm}", arm);
        }
        if let Some(port) = self.port {
            text = text.replace("{port}", &port.to_string());
        }
        text
    }
}

/// Which output of a process is kept for messages where it has no file of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Everything,
    /// Writing standard output would be part of the measured cost.
    Errors,
    /// For a filler, which must not overwrite the files of the run that counted either.
    Nothing,
}

/// How and where a process is to run.
pub struct Launch<'a> {
    pub spec: &'a request::Process,
    pub names: &'a Names,
    pub role: Role,
    pub tree: usize,
    pub group: Group,
    /// The file to execute instead of the one that `argv` names.
    pub program: Option<&'a Path>,
    pub keep: Keep,
    /// Variables that the meter adds.
    pub extra_env: Vec<(String, String)>,
}

/// A process of ours, until its outcome is told.
pub struct Process {
    pub role: Role,
    pub tree: usize,
    pub group: Group,
    pub child: Child,
    pub argv: Vec<String>,
    pub stdout: Option<PathBuf>,
    pub stderr: Option<PathBuf>,
    captures: Vec<PathBuf>,
    stdout_is_captured: bool,
    deadline_ns: Option<u64>,
    pub ignore_failure: bool,
    /// Time in which it was allowed to run.
    pub active_ns: u64,
    pub counters: Counters,
}

impl Process {
    pub fn new(launch: &Launch, argv: Vec<String>, sinks: Sinks, child: Child) -> Process {
        Process {
            role: launch.role,
            tree: launch.tree,
            group: launch.group,
            child,
            argv,
            stdout_is_captured: launch.spec.stdout.is_none(),
            stdout: sinks.stdout,
            stderr: sinks.stderr,
            captures: sinks.captures,
            deadline_ns: launch.spec.deadline_ns,
            ignore_failure: launch.spec.ignore_failure,
            active_ns: 0,
            counters: Counters::default(),
        }
    }

    /// How much longer it may run; None without a deadline.
    pub fn left_ns(&self) -> Option<u64> {
        self.deadline_ns
            .map(|deadline| deadline.saturating_sub(self.active_ns))
    }

    pub fn is_overdue(&self) -> bool {
        self.left_ns() == Some(0)
    }

    pub fn text(&self, path: &Option<PathBuf>) -> String {
        let bytes = path.as_ref().and_then(|path| fs::read(path).ok());
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }

    /// Its outcome; captured output is read and removed.
    pub fn outcome(&mut self, at: (u64, Option<&str>), exit: &Exit, reason: Reason) -> Outcome {
        let tail = |path: &Option<PathBuf>| path.as_deref().map_or_else(String::new, scratch::tail);
        let stdout = if self.stdout_is_captured {
            tail(&self.stdout)
        } else {
            String::new()
        };
        let outcome = Outcome {
            execution: at.0,
            arm: at.1.map(String::from),
            role: self.role,
            argv: std::mem::take(&mut self.argv),
            pid: self.child.pid,
            exit: exit.code(),
            signal: exit.signal(),
            reason,
            user_ns: exit.usage.user_ns,
            system_ns: exit.usage.system_ns,
            active_wall_ns: self.active_ns,
            peak_memory_bytes: exit.peak_memory_bytes,
            voluntary_switches: exit.voluntary_switches,
            involuntary_switches: exit.involuntary_switches,
            stderr_tail: tail(&self.stderr),
            stdout_tail: stdout,
        };
        for capture in self.captures.drain(..) {
            // It goes with the scratch folder at the latest.
            let _ = fs::remove_file(capture);
        }
        outcome
    }
}

/// Whether an outcome is a failure of the run, and how to say so.
pub fn verdict(outcome: &Outcome, process: &mut Process) -> Option<Failure> {
    let ended = match (outcome.reason, outcome.exit, outcome.signal) {
        (Reason::Ended | Reason::Filler, _, _) => return None,
        (Reason::Deadline, _, _) => "met its deadline".to_string(),
        (_, Some(0), _) if outcome.role != Role::Server => return None,
        (_, Some(code), _) => format!("ended with exit status {code}"),
        (_, _, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    };
    let trouble = process.child.trouble();
    let code = match (outcome.reason, outcome.role, outcome.signal) {
        _ if trouble.is_some() => trouble.as_ref().map_or(Code::Failed, |(code, _)| *code),
        (Reason::Deadline, _, _) => Code::Deadline,
        (_, Role::Load, _) => Code::LoadFailed,
        (_, Role::Server, _) | (_, _, Some(_)) => Code::Crashed,
        _ => Code::Failed,
    };
    if process.ignore_failure
        && matches!(code, Code::Failed | Code::Crashed | Code::LoadFailed)
        && outcome.role != Role::Server
    {
        return None;
    }
    let ended = trouble.map_or(ended, |(_, text)| text);
    Some(Failure {
        code,
        arm: outcome.arm.clone(),
        text: format!("{}{}", describe(outcome, &ended), last_line(outcome)),
        exit: outcome.exit,
        signal: outcome.signal,
    })
}

fn describe(outcome: &Outcome, what: &str) -> String {
    let role = format!("{:?}", outcome.role).to_lowercase();
    let arm = outcome
        .arm
        .as_ref()
        .map_or_else(String::new, |arm| format!("arm {arm:?}: "));
    format!("{arm}{role} `{}` {what}", outcome.argv.join(" "))
}

/// The last thing that a process said, for the message of its failure.
pub fn last_line(outcome: &Outcome) -> String {
    let texts = [&outcome.stderr_tail, &outcome.stdout_tail];
    let lines = texts
        .iter()
        .flat_map(|text| text.trim_end().lines().next_back());
    lines
        .map(|line| {
            line.rsplit('\r')
                .find(|part| !part.trim().is_empty())
                .unwrap_or("")
        })
        .find(|line| !line.trim().is_empty())
        .map_or_else(String::new, |line| format!(": {}", line.trim()))
}

/// Where the output of a process goes, and what of it can be read.
#[derive(Default)]
pub struct Sinks {
    stdout: Option<PathBuf>,
    stderr: Option<PathBuf>,
    captures: Vec<PathBuf>,
}

/// Everything that a fork needs, with the expanded argument list.
pub fn prepare(
    launch: &Launch,
    base_env: &[(OsString, OsString)],
    scratch: &mut Scratch,
) -> Result<(Command, Vec<String>, Sinks), Halt> {
    let spec = launch.spec;
    let names = launch.names;
    let arm = names.arm.as_deref().unwrap_or("");
    let argv: Vec<String> = spec.argv.iter().map(|text| names.expand(text)).collect();
    let cwd = spec.cwd.as_ref().map(|cwd| names.expand(cwd));
    let env = environment(launch, base_env);
    let program = match launch.program {
        Some(program) => program.to_path_buf(),
        None => resolve(spec, names)?,
    };
    let wrong = |text: String| {
        let command = argv.join(" ");
        Halt::failed(Code::Request, arm, format!("`{command}`: {text}"))
    };
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !Path::new(cwd).is_dir()) {
        return Err(wrong(format!("`cwd` {cwd} is no folder")));
    }
    let mut sinks = Sinks::default();
    let opened = files(launch, cwd.as_deref(), scratch, &mut sinks);
    let (stdin, stdout, stderr) = opened.map_err(wrong)?;
    let strings = |list: &[String]| list.iter().map(spawn::c_string).collect::<io::Result<_>>();
    let command = Command {
        program: spawn::c_string(&program)?,
        argv: strings(&argv)?,
        env,
        cwd: cwd.map(spawn::c_string).transpose()?,
        cpus: spec.cpus.as_deref().map(spawn::cpu_set),
        limits: limits(&spec.limits),
        stdin,
        stdout,
        stderr,
    };
    Ok((command, argv, sinks))
}

/// The file that `argv[0]` means to this process.
pub fn resolve(spec: &request::Process, names: &Names) -> Result<PathBuf, Halt> {
    let own_path = || std::env::var("PATH").ok().filter(|_| !spec.clear_env);
    let path = spec
        .env
        .get("PATH")
        .map(|path| names.expand(path))
        .or_else(own_path);
    let cwd = spec.cwd.as_ref().map(|cwd| names.expand(cwd));
    let name = names.expand(&spec.argv[0]);
    lookup::find(&name, cwd.as_deref(), path.as_deref()).map_err(|(code, text)| {
        let arm = names.arm.as_deref().unwrap_or("");
        let place = if arm.is_empty() {
            String::new()
        } else {
            format!("arm {arm:?}: ")
        };
        Halt::failed(code, arm, format!("{place}{text}"))
    })
}

fn environment(launch: &Launch, base: &[(OsString, OsString)]) -> Vec<CString> {
    let spec = launch.spec;
    let is_added = |key: &OsString| {
        let added = launch.extra_env.iter().map(|(name, _)| name);
        spec.env
            .keys()
            .chain(added)
            .any(|name| key == name.as_str())
    };
    let kept = base
        .iter()
        .filter(|(key, _)| !spec.clear_env && !is_added(key));
    let inherited = kept.map(|(key, value)| {
        let mut entry = key.clone();
        entry.push("=");
        entry.push(value);
        entry
    });
    let own = spec
        .env
        .iter()
        .map(|(key, value)| format!("{}={}", key, launch.names.expand(value)))
        .chain(
            launch
                .extra_env
                .iter()
                .map(|(key, value)| format!("{key}={value}")),
        )
        .map(OsString::from);
    inherited
        .chain(own)
        .filter_map(|entry| spawn::c_string(entry).ok())
        .collect()
}

fn files(
    launch: &Launch,
    cwd: Option<&str>,
    scratch: &mut Scratch,
    sinks: &mut Sinks,
) -> Result<(File, File, File), String> {
    let spec = launch.spec;
    let place = |path: &String| {
        let path = PathBuf::from(launch.names.expand(path));
        cwd.map_or(path.clone(), |cwd| Path::new(cwd).join(&path))
    };
    let told = |path: &Path, error: io::Error| format!("cannot open {}: {error}", path.display());
    let input = spec
        .stdin
        .as_ref()
        .map_or_else(|| PathBuf::from("/dev/null"), place);
    let stdin = spawn::open_input(&input).map_err(|error| told(&input, error))?;
    let mut sink = |asked: &Option<String>, keep: bool| -> PathBuf {
        let asked = asked.as_ref().map(place);
        let in_its_stead = launch.keep == Keep::Nothing
            && asked.as_ref().is_some_and(|path| !path.starts_with("/dev"));
        match asked {
            Some(path) if !in_its_stead => path,
            None if !keep => PathBuf::from("/dev/null"),
            _ => {
                let path = scratch.capture();
                sinks.captures.push(path.clone());
                path
            }
        }
    };
    let out_path = sink(&spec.stdout, launch.keep == Keep::Everything);
    let err_path = sink(&spec.stderr, launch.keep != Keep::Nothing);
    let stdout = spawn::open_output(&out_path).map_err(|error| told(&out_path, error))?;
    let stderr = if err_path == out_path {
        stdout.try_clone()
    } else {
        spawn::open_output(&err_path)
    };
    let stderr = stderr.map_err(|error| told(&err_path, error))?;
    let readable = |path: PathBuf| Some(path).filter(|path| path.is_file());
    sinks.stdout = readable(out_path);
    sinks.stderr = readable(err_path);
    Ok((stdin, stdout, stderr))
}

fn limits(limits: &request::Limits) -> Vec<(Resource, u64)> {
    let all = [
        (libc::RLIMIT_FSIZE, limits.file_bytes),
        (libc::RLIMIT_AS, limits.address_space_bytes),
        (libc::RLIMIT_NOFILE, limits.open_files),
        (libc::RLIMIT_CPU, limits.cpu_s),
        (libc::RLIMIT_NPROC, limits.processes),
    ];
    all.into_iter()
        .filter_map(|(resource, most)| Some((resource, most?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_placeholders_are_replaced() {
        let names = Names {
            arm: Some("new".into()),
            port: Some(7000),
            tmp: "/t".into(),
            files: Some("/f".into()),
        };
        assert_eq!(names.expand("{arm}:{port}{tmp}/{x}{}"), "new:7000/t/{x}{}");
        assert_eq!(names.expand("{files}/lib:{files}"), "/f/lib:/f");
        assert_eq!(Names::default().expand("{port}"), "{port}");
    }
}
