//! In front of a program: says what it and its children executed, mapped and wrote.
//!
//! The program runs under ptrace, at full speed but for the system calls of interest, which a
//! filter in the kernel picks out. It ends as the program ends.

mod calls;
mod clocks;
mod filter;
mod pending;
pub(crate) mod places;
mod ptrace;
mod seen;
mod timing;
mod tracer;

use libc::{c_int, pid_t};
use rustix::pipe::{pipe_with, PipeFlags};
use seen::Gap;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tracer::Tracer;

/// Signals that are meant for the program where this process gets them.
const PASSED_ON: [c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTERM,
    libc::SIGALRM,
    libc::SIGWINCH,
];
const NOT_EXECUTED: i32 = 127;

/// Runs the program, of which a document is written to `log`, with clocks of CPU time that seem so
/// many times as fast, and looks now and then where it is; gives its exit status, or dies of the
/// signal that it died of.
pub fn follow(
    command: Vec<OsString>,
    log: &Path,
    cpu_clock_rate: u64,
    sample_every: Option<Duration>,
) -> i32 {
    match run(command, log, cpu_clock_rate, sample_every) {
        Ok(status) => end_like(status),
        Err(error) => {
            eprintln!("ensign-meter follow: {error}");
            NOT_EXECUTED
        }
    }
}

fn run(
    command: Vec<OsString>,
    log: &Path,
    cpu_clock_rate: u64,
    sample_every: Option<Duration>,
) -> Result<c_int, String> {
    let plain = |error: io::Error| error.to_string();
    let command: Vec<CString> = command
        .into_iter()
        .map(|word| CString::new(word.into_vec()).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    let abis = calls::abis();
    let signals = Signals::block().map_err(plain)?;
    let mut child = Child::fork(&command, &signals, &abis).map_err(plain)?;
    let mut tracer = Tracer::new(abis, cpu_clock_rate, child.pid);
    let traced = if tracer.has_table() {
        ptrace::seize(child.pid).map_err(|_| Gap::NotAllowed)
    } else {
        Err(Gap::Architecture)
    };
    tracer.seen.gaps.extend(traced.err());
    child.go(traced.is_ok()).map_err(plain)?;
    let status = attend(&mut tracer, &signals, sample_every, log, &child);
    match child.trouble() {
        Some(Trouble::Filter) => drop(tracer.seen.gaps.insert(Gap::NoFilter)),
        Some(Trouble::Exec(error)) => {
            return Err(format!("{}: {error}", command[0].to_string_lossy()));
        }
        None => {}
    }
    tracer.seen.left_running = tracer.processes();
    let end = Some(tracer::outcome(status));
    tracer
        .seen
        .write(log, end)
        .map_err(|error| format!("{}: {error}", log.display()))?;
    Ok(status)
}

/// Until the program has ended: everything that happens to it and its children.
fn attend(
    tracer: &mut Tracer,
    signals: &Signals,
    sample_every: Option<Duration>,
    log: &Path,
    child: &Child,
) -> c_int {
    let mut looked = Instant::now();
    loop {
        if sample_every.is_some_and(|every| looked.elapsed() >= every) {
            tracer.look_where_tasks_are();
            looked = Instant::now();
        }
        let mut status = 0;
        // SAFETY: the status is ours.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) };
        if pid > 0 {
            tracer.hear(pid, status);
            if let Some(status) = tracer.ended {
                return status;
            }
            continue;
        }
        let Some((signal, sender)) = signals.wait(sample_every) else {
            continue;
        };
        if !tracer.was_delivered(signal, sender) {
            // It may be killed if it does not heed this: then there is at least this much.
            let _ = tracer.seen.write(log, None);
            crate::processes::kill::kill(child.pid, signal);
        }
    }
}

/// Ends this process as another one ended.
fn end_like(status: c_int) -> i32 {
    let (exit, signal) = tracer::outcome(status);
    let Some(signal) = signal else {
        return exit.unwrap_or(NOT_EXECUTED);
    };
    // SAFETY: plain data; nothing else of this process goes on.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, signal);
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
    }
    128 + signal
}

struct Signals {
    ours: libc::sigset_t,
    before: libc::sigset_t,
}

impl Signals {
    fn block() -> io::Result<Signals> {
        // SAFETY: both sets are plain data, filled in here.
        unsafe {
            // Ignored ones would not be told.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let mut signals: Signals = std::mem::zeroed();
            libc::sigemptyset(&mut signals.ours);
            for signal in PASSED_ON.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(&mut signals.ours, signal);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &signals.ours, &mut signals.before) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(signals)
        }
    }

    /// The next one that somebody sent, and who; None where a child has news, or after so long.
    fn wait(&self, at_most: Option<Duration>) -> Option<(c_int, pid_t)> {
        let limit = at_most.map(|time| libc::timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: time.subsec_nanos() as _,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: plain data, filled in by the kernel; without a limit it waits for ever.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(&self.ours, &mut info, limit);
            // A terminal sends to the whole group, the program included.
            let sent = info.si_code != libc::SI_KERNEL;
            (signal > 0 && signal != libc::SIGCHLD && sent).then(|| (signal, info.si_pid()))
        }
    }

    fn restore(&self) {
        // SAFETY: the set is the one that was there before.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
            // The standard library ignores it.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
    }
}

enum Trouble {
    Filter,
    Exec(io::Error),
}

/// The program, held until it is known whether it is traced.
struct Child {
    pid: pid_t,
    gate: File,
    report: File,
}

impl Child {
    fn fork(command: &[CString], signals: &Signals, abis: &[calls::Abi]) -> io::Result<Child> {
        let (mut opens, gate) = pipe()?;
        let (report, mut tell) = pipe()?;
        // SAFETY: this process has one thread.
        let pid = unsafe { libc::fork() };
        match pid {
            ..0 => Err(io::Error::last_os_error()),
            0 => {
                drop((gate, report));
                let mut traced = [0];
                let known = opens.read_exact(&mut traced).is_ok();
                if known && traced[0] == 1 && filter::install(abis).is_err() {
                    let _ = tell.write_all(&[1, 0, 0, 0, 0]);
                }
                signals.restore();
                let error = if known { execute(command) } else { 0 };
                let mut words = vec![2];
                words.extend(error.to_ne_bytes());
                let _ = tell.write_all(&words);
                // SAFETY: the copy of a process that its parent goes on with runs nothing else.
                unsafe { libc::_exit(NOT_EXECUTED) }
            }
            _ => Ok(Child { pid, gate, report }),
        }
    }

    fn go(&mut self, traced: bool) -> io::Result<()> {
        self.gate.write_all(&[u8::from(traced)])
    }

    /// What went wrong before the program began; to be asked when it has ended.
    fn trouble(&mut self) -> Option<Trouble> {
        let mut found = None;
        let mut word = [0; 5];
        while self.report.read_exact(&mut word).is_ok() {
            let number = i32::from_ne_bytes(word[1..].try_into().expect("4 bytes"));
            found = Some(match word[0] {
                1 => Trouble::Filter,
                _ => Trouble::Exec(io::Error::from_raw_os_error(number)),
            });
        }
        found
    }
}

/// Does not return where it succeeds; else the error's number.
fn execute(command: &[CString]) -> i32 {
    let mut pointers: Vec<_> = command.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: the strings and the list live until then.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}
