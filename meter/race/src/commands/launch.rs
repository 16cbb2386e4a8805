//! From a process as requested to a process that runs (or stands ready to).

use crate::commands::counters::Counters;
use crate::commands::drain::{Drain, Wanted};
use crate::commands::lookup::{self, Found};
use crate::commands::said::Said;
use crate::halt::Halt;
use crate::processes::freezer::Group;
use crate::processes::spawn::{self, Child, Command, Resource};
use crate::processes::usage::Exit;
use crate::processes::user::User;
use ensign_host::cpus;
use ensign_protocol::records::{Limit, Outcome, Reason, Role};
use ensign_protocol::request::{self, Output};
use ensign_protocol::Code;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Values of the placeholders of one variant in one execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub variant: Option<String>,
    pub port: Option<u16>,
    pub tmp: String,
    /// The variant's own copy of its files, where it has some.
    pub files: Option<String>,
}

const METER: &str = "{meter}";

impl Names {
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut text = text.replace("{tmp}", &self.tmp);
        if text.contains(METER) {
            let own = std::env::current_exe().unwrap_or_default();
            text = text.replace(METER, &own.to_string_lossy());
        }
        if let Some(files) = &self.files {
            text = text.replace("{files}", files);
        }
        if let Some(variant) = &self.variant {
            text = text.replace("{variant}", variant);
        }
        if let Some(port) = self.port {
            text = text.replace("{port}", &port.to_string());
        }
        text
    }
}

/// Of which output of a process the text is kept, where it has no file of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Everything,
    /// Standard output flows away unread, but for a score or a count that stands in it.
    Errors,
    /// For a filler, which must not overwrite the files of the run that counted either.
    Nothing,
}

/// How and where a process is to run.
pub(crate) struct Launch<'a> {
    pub spec: &'a request::Process,
    pub names: &'a Names,
    pub role: Role,
    pub tree: usize,
    pub group: Group,
    /// The file to execute instead of the one that `argv` names.
    pub program: Option<&'a Path>,
    pub keep: Keep,
    /// Whether a number is to be read in its standard output.
    pub reads_output: bool,
    /// Variables that the meter adds.
    pub extra_env: Vec<(String, String)>,
}

/// A process of ours, until its outcome is told.
pub(crate) struct Process {
    pub role: Role,
    pub tree: usize,
    pub group: Group,
    pub child: Child,
    pub argv: Vec<String>,
    pub stdout: Said,
    pub stderr: Said,
    deadline_ns: Option<u64>,
    pub ignore_failure: bool,
    /// Time in which it was allowed to run.
    pub active_ns: u64,
    pub counters: Counters,
}

impl Process {
    pub(crate) fn new(launch: &Launch, argv: Vec<String>, sinks: Sinks, child: Child) -> Process {
        Process {
            role: launch.role,
            tree: launch.tree,
            group: launch.group,
            child,
            argv,
            stdout: sinks.stdout,
            stderr: sinks.stderr,
            deadline_ns: launch.spec.deadline_ns,
            ignore_failure: launch.spec.ignore_failure,
            active_ns: 0,
            counters: Counters::default(),
        }
    }

    /// How much longer it may run; None without a deadline.
    pub(crate) fn left_ns(&self) -> Option<u64> {
        self.deadline_ns
            .map(|deadline| deadline.saturating_sub(self.active_ns))
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.left_ns() == Some(0)
    }

    /// Its outcome.
    pub(crate) fn outcome(
        &mut self,
        at: (u64, Option<&str>),
        exit: &Exit,
        reason: Reason,
        limits_met: Vec<Limit>,
    ) -> Outcome {
        self.stdout.finish();
        self.stderr.finish();
        let stdout = match &self.stdout {
            Said::Stream(_) => self.stdout.tail(),
            Said::File(_) | Said::Nothing => String::new(),
        };
        Outcome {
            execution: at.0,
            variant: at.1.map(String::from),
            role: self.role,
            argv: std::mem::take(&mut self.argv),
            pid: self.child.pid,
            exit: exit.code(),
            signal: exit.signal(),
            reason,
            limits_met,
            user_ns: exit.usage.user_ns,
            system_ns: exit.usage.system_ns,
            active_wall_ns: self.active_ns,
            peak_memory_bytes: exit.peak_memory_bytes,
            voluntary_switches: exit.voluntary_switches,
            involuntary_switches: exit.involuntary_switches,
            page_faults: exit.page_faults,
            stderr_tail: self.stderr.tail(),
            stdout_tail: stdout,
            seen: None,
        }
    }
}

/// Where output goes that has no file.
pub(crate) struct Outlets<'a> {
    pub drain: &'a Drain,
    pub inherit_fd: Option<i32>,
    /// As whom files are opened, and the process runs.
    pub user: Option<User>,
    /// No file may grow beyond this.
    pub file_bytes: Option<u64>,
}

/// What can be read of both outputs.
#[derive(Default)]
pub(crate) struct Sinks {
    stdout: Said,
    stderr: Said,
}

/// Everything that a fork needs, with the expanded argument list.
pub(crate) fn prepare(
    launch: &Launch,
    base_env: &[(OsString, OsString)],
    outlets: &Outlets,
) -> Result<(Command, Vec<String>, Sinks), Halt> {
    let spec = launch.spec;
    let names = launch.names;
    let variant = names.variant.as_deref().unwrap_or("");
    let argv: Vec<String> = spec.argv.iter().map(|text| names.expand(text)).collect();
    let cwd = spec.cwd.as_ref().map(|cwd| names.expand(cwd));
    let env = environment(launch, base_env);
    let program = match launch.program {
        Some(program) => program.to_path_buf(),
        None => resolve(spec, names)?.program,
    };
    let wrong = |text: String| {
        let command = argv.join(" ");
        Halt::failed(Code::Request, variant, format!("`{command}`: {text}"))
    };
    let is_folder = |cwd: &String| match &spec.root {
        None => Path::new(cwd).is_dir(),
        Some(root) => lookup::in_root(root, Path::new(cwd)).is_ok_and(|place| place.is_dir()),
    };
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !is_folder(cwd)) {
        return Err(wrong(format!("`cwd` {cwd} is no folder")));
    }
    let opened = files(launch, cwd.as_deref(), outlets);
    let (stdin, (stdout, said), (stderr, complained)) = opened.map_err(wrong)?;
    let sinks = Sinks {
        stdout: said,
        stderr: complained,
    };
    let strings = |list: &[String]| list.iter().map(spawn::c_string).collect::<io::Result<_>>();
    let command = Command {
        program: spawn::c_string(&program)?,
        argv: strings(&argv)?,
        env,
        cwd: cwd.map(spawn::c_string).transpose()?,
        root: spec.root.as_ref().map(spawn::c_string).transpose()?,
        cpus: spec.cpus.as_deref().map(cpus::cpu_set),
        limits: limits(&spec.limits, outlets.file_bytes),
        user: outlets.user,
        entrances: Vec::new(),
        stdin,
        stdout,
        stderr,
    };
    Ok((command, argv, sinks))
}

/// The file that `argv[0]` means to this process.
pub(crate) fn resolve(spec: &request::Process, names: &Names) -> Result<Found, Halt> {
    let own_path = || std::env::var("PATH").ok().filter(|_| !spec.clear_env);
    let path = spec
        .env
        .get("PATH")
        .map(|path| names.expand(path))
        .or_else(own_path);
    let cwd = spec.cwd.as_ref().map(|cwd| names.expand(cwd));
    let name = names.expand(&spec.argv[0]);
    let root = spec.root.as_deref();
    lookup::find(&name, cwd.as_deref(), path.as_deref(), root).map_err(|(code, text)| {
        let variant = names.variant.as_deref().unwrap_or("");
        let place = if variant.is_empty() {
            String::new()
        } else {
            format!("variant {variant:?}: ")
        };
        Halt::failed(code, variant, format!("{place}{text}"))
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

type Opened = (File, Said);

/// The standard files of a process, and what can be read of the two that it writes.
fn files(
    launch: &Launch,
    cwd: Option<&str>,
    outlets: &Outlets,
) -> Result<(File, Opened, Opened), String> {
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
    let as_user = |open: &dyn Fn() -> io::Result<File>| User::opens(outlets.user, open);
    let stdin = as_user(&|| spawn::open_input(&input)).map_err(|error| told(&input, error))?;
    // A filler must not overwrite the files of the run that counted.
    let file = |asked: &Option<String>| {
        let path = asked.as_ref().map(place);
        path.filter(|path| launch.keep != Keep::Nothing || path.starts_with("/dev"))
    };
    let open = |path: PathBuf| -> Result<Opened, String> {
        let file = as_user(&|| spawn::open_output(&path)).map_err(|error| told(&path, error))?;
        let is_file = file.metadata().is_ok_and(|data| data.is_file());
        // What it wrote is read from the same file, whatever has its name by then.
        let said = match file.try_clone() {
            Ok(same) if is_file => Said::File(same),
            _ => Said::Nothing,
        };
        Ok((file, said))
    };
    let (out_path, err_path) = (file(&spec.stdout), file(&spec.stderr));
    if let (Some(out), Some(err)) = (&out_path, &err_path) {
        if out == err {
            let (stdout, said) = open(out.clone())?;
            let stderr = stdout.try_clone().map_err(|error| told(err, error))?;
            let complained = match &said {
                Said::File(file) => Said::File(file.try_clone().map_err(|error| told(err, error))?),
                _ => Said::Nothing,
            };
            return Ok((stdin, (stdout, said), (stderr, complained)));
        }
    }
    let stdout = match out_path {
        Some(path) => open(path)?,
        None => outlet(launch, outlets)?,
    };
    let stderr = match err_path {
        Some(path) => open(path)?,
        None => stream(outlets, launch.keep != Keep::Nothing, false)?,
    };
    Ok((stdin, stdout, stderr))
}

/// Standard output without a file.
fn outlet(launch: &Launch, outlets: &Outlets) -> Result<Opened, String> {
    let spec = launch.spec;
    let counted = launch.keep != Keep::Nothing;
    let plain = |file: io::Result<File>| {
        let file = file.map_err(|error| format!("cannot open its output: {error}"))?;
        Ok((file, Said::Nothing))
    };
    match (spec.output, outlets.inherit_fd) {
        (Output::Null, _) => plain(spawn::open_output(Path::new("/dev/null"))),
        (Output::Inherit, Some(fd)) if counted => plain(spawn::duplicate(fd)),
        _ => stream(
            outlets,
            launch.keep == Keep::Everything || (counted && launch.reads_output),
            counted && spec.digest,
        ),
    }
}

fn stream(outlets: &Outlets, text: bool, digest: bool) -> Result<Opened, String> {
    let made = outlets.drain.stream(Wanted { text, digest });
    let (file, stream) = made.map_err(|error| format!("cannot take its output: {error}"))?;
    Ok((file, stream.map_or(Said::Nothing, Said::Stream)))
}

fn limits(limits: &request::Limits, file_bytes: Option<u64>) -> Vec<(Resource, u64)> {
    let all = [
        (libc::RLIMIT_FSIZE, limits.file_bytes.or(file_bytes)),
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
            variant: Some("new".into()),
            port: Some(7000),
            tmp: "/t".into(),
            files: Some("/f".into()),
        };
        assert_eq!(
            names.expand("{variant}:{port}{tmp}/{x}{}"),
            "new:7000/t/{x}{}"
        );
        assert_eq!(names.expand("{files}/lib:{files}"), "/f/lib:/f");
        assert_eq!(Names::default().expand("{port}"), "{port}");
    }
}
