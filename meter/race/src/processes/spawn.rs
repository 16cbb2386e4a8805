//! Fork and exec in two halves: everything that allocates happens before the fork.
//!
//! The standard library waits until the child has executed its program; a child that stops in a
//! frozen group before that would wait for ever.

use crate::processes::freezer::Admission;
use crate::processes::kill::kill;
use crate::processes::user::User;
use ensign_host::clock;
use ensign_protocol::Code;
use libc::{c_char, c_int, pid_t};
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The first argument of setrlimit: glibc and musl differ.
#[cfg(target_env = "gnu")]
pub(crate) type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
pub(crate) type Resource = c_int;

/// A program ready to be executed, with its files already open.
pub(crate) struct Command {
    pub program: CString,
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: Option<CString>,
    /// The root directory that it enters first.
    pub root: Option<CString>,
    pub cpus: Option<libc::cpu_set_t>,
    pub limits: Vec<(Resource, u64)>,
    /// As whom it runs; None is as the meter.
    pub user: Option<User>,
    /// Files of control groups that it enters by itself.
    pub entrances: Vec<RawFd>,
    pub stdin: File,
    pub stdout: File,
    pub stderr: File,
}

/// What a child inherits from the meter and must not keep: timer slack.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    pub timer_slack_ns: libc::c_ulong,
}

pub(crate) struct Child {
    pub pid: pid_t,
    pub pidfd: OwnedFd,
    trouble: File,
    /// Since when it has run, if nothing held it.
    pub forked_ns: u64,
}

/// The step at which a child failed before its program began.
const STEPS: [&str; 8] = [
    "set up its files",
    "keep to `cpus`",
    "keep to `limits`",
    "enter `cwd`",
    "join its control group",
    "become the user that it is to run as",
    "enter its root directory",
    "be executed",
];

impl Child {
    /// Why the program never began, if so. To be asked once the child has ended.
    pub(crate) fn trouble(&mut self) -> Option<(Code, String)> {
        let mut report = [0u8; 8];
        self.trouble.read_exact(&mut report).ok()?;
        let part = |at: usize| i32::from_ne_bytes(report[at..at + 4].try_into().expect("4 bytes"));
        let step = STEPS.get(part(0) as usize).copied().unwrap_or("start");
        let error = io::Error::from_raw_os_error(part(4));
        let set_up = part(0) as usize + 1 == STEPS.len();
        let code = match part(4) {
            libc::ENOEXEC | libc::EACCES | libc::ENOENT if set_up => Code::NotExecutable,
            _ => Code::Failed,
        };
        Some((code, format!("could not {step}: {error}")))
    }
}

/// `struct clone_args` up to `cgroup` (CLONE_ARGS_SIZE_VER2, Linux 5.7).
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Forks; the child also learns whether it is in its group.
///
/// It is born there: moving a process from group to group makes the kernel wait for a grace
/// period of 10 ms and more, in which no variant would run.
///
/// # Safety
/// As for fork in a process with one thread: the child may call async-signal-safe functions only.
pub(crate) unsafe fn fork(admission: Admission) -> io::Result<(pid_t, bool)> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let Admission::Join { folder, procs } = admission else {
        // SAFETY: the caller's promise.
        return checked(unsafe { libc::fork() }).map(|pid| (pid, true));
    };
    let arguments = CloneArguments {
        flags: CLONE_INTO_CGROUP,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: folder as u64,
        ..CloneArguments::default()
    };
    let size = std::mem::size_of::<CloneArguments>();
    // SAFETY: the structure is as large as said; without CLONE_VM this is a fork: the caller's promise.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &arguments, size) } as pid_t;
    if pid >= 0 {
        return Ok((pid, true));
    }
    // An old kernel, or a filter of system calls.
    // SAFETY: the caller's promise; the text is static, and longer than what is written of it.
    unsafe {
        let pid = checked(libc::fork())?;
        let joined = pid != 0 || libc::write(procs, c"0".as_ptr().cast(), 1) == 1;
        Ok((pid, joined))
    }
}

fn checked(pid: pid_t) -> io::Result<pid_t> {
    if pid < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(pid)
    }
}

/// Pointers for execve; they live as long as the strings.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    let mut list: Vec<_> = strings.iter().map(|string| string.as_ptr()).collect();
    list.push(std::ptr::null());
    list
}

/// Starts a child. It stops before its program begins where the admission says so.
pub(crate) fn spawn(
    command: &Command,
    admission: Admission,
    inherited: Inherited,
) -> io::Result<Child> {
    let (trouble, report) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let argv = pointers(&command.argv);
    let env = pointers(&command.env);
    let plan = Plan {
        command,
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        admission,
        inherited,
        report: report.as_raw_fd(),
        // SAFETY: no memory is involved.
        parent: unsafe { libc::getpid() },
    };
    let forked_ns = clock::now_ns();
    // SAFETY: the meter has one thread; the child calls async-signal-safe functions only.
    let (pid, joined) = unsafe { fork(admission)? };
    match pid {
        0 => plan.become_the_program(joined),
        _ => {
            let pidfd = pidfd(pid)?;
            if matches!(admission, Admission::StopItself) {
                await_stop(pid);
            }
            Ok(Child {
                pid,
                pidfd,
                trouble: File::from(trouble),
                forked_ns,
            })
        }
    }
}

/// A descriptor of an unreaped child, which is killed where there is none to be had.
pub(crate) fn pidfd(child: pid_t) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(child).ok_or(Errno::SRCH)?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| {
        kill(child, libc::SIGKILL);
        error.into()
    })
}

/// Until the child has stopped (or ended); it is not reaped.
fn await_stop(pid: pid_t) {
    // SAFETY: siginfo_t is plain data, filled in by the kernel.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, how);
    }
}

/// What the child does between fork and exec. No allocation, no locks.
struct Plan<'a> {
    command: &'a Command,
    argv: *const *const c_char,
    env: *const *const c_char,
    admission: Admission,
    inherited: Inherited,
    report: RawFd,
    parent: pid_t,
}

impl Plan<'_> {
    fn become_the_program(&self, joined: bool) -> ! {
        // SAFETY: async-signal-safe calls on memory that the parent prepared.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != self.parent {
                libc::_exit(127);
            }
            libc::setsid();
            self.default_signals();
            libc::prctl(libc::PR_SET_TIMERSLACK, self.inherited.timer_slack_ns);
            for &entrance in &self.command.entrances {
                self.check(4, libc::write(entrance, c"0".as_ptr().cast(), 1) as c_int);
            }
            self.files();
            self.bounds();
            self.enter_root();
            self.change_user();
            if let Some(cwd) = &self.command.cwd {
                self.check(3, libc::chdir(cwd.as_ptr()));
            }
            self.check(4, if joined { 0 } else { -1 });
            if matches!(self.admission, Admission::StopItself) {
                libc::kill(libc::getpid(), libc::SIGSTOP);
            }
            libc::execve(self.command.program.as_ptr(), self.argv, self.env);
            self.check(7, -1);
            libc::_exit(127);
        }
    }

    fn default_signals(&self) {
        // By the system call: the C library keeps two signals to itself, ignored as inherited.
        let default = [0u64; 4];
        for signal in 1..=64 {
            // SAFETY: the kernel's sigaction is of four words; all zero it is SIG_DFL.
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &default, 0, 8) };
        }
        let mut none = std::mem::MaybeUninit::uninit();
        // SAFETY: the set is filled in by sigemptyset before it is read.
        unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        }
    }

    /// Standard files, and nothing else: a child that stops before exec would hold whatever the
    /// fork copied, in spite of close-on-exec.
    ///
    /// # Safety
    /// In the child alone: the descriptors of whoever forked it are closed.
    unsafe fn files(&self) {
        let command = self.command;
        let files = [&command.stdin, &command.stdout, &command.stderr];
        for (number, file) in files.into_iter().enumerate() {
            // SAFETY: the file is open; the child has nothing else at the standard numbers.
            self.check(0, unsafe { libc::dup2(file.as_raw_fd(), number as c_int) });
        }
        // SAFETY: the child goes on to exec or _exit, by the caller's promise.
        unsafe { close_all_but(self.report) };
    }

    fn bounds(&self) {
        if let Some(cpus) = &self.command.cpus {
            let size = std::mem::size_of::<libc::cpu_set_t>();
            // SAFETY: the set is as large as said.
            self.check(1, unsafe { libc::sched_setaffinity(0, size, cpus) });
        }
        for &(resource, most) in &self.command.limits {
            let limit = libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            };
            // SAFETY: the limit outlives the call.
            self.check(2, unsafe { libc::setrlimit(resource, &limit) });
        }
    }

    fn enter_root(&self) {
        let Some(root) = &self.command.root else {
            return;
        };
        // SAFETY: the strings outlive the calls; no other memory is involved.
        unsafe {
            self.check(6, libc::chroot(root.as_ptr()));
            self.check(6, libc::chdir(c"/".as_ptr()));
            // Of a meter without root's rights: what it may, its programs must not. Before Linux
            // 4.3 there is nothing of that kind.
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_CLEAR_ALL,
                0,
                0,
                0,
            );
        }
    }

    /// # Safety
    /// In the child alone, which has one thread.
    unsafe fn change_user(&self) {
        let Some(user) = self.command.user else {
            return;
        };
        // SAFETY: the child of a fork has one thread.
        self.check(5, unsafe { user.assume() });
        // SAFETY: no memory is involved. Another user's process does not keep the signal.
        let parent = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::getppid()
        };
        if parent != self.parent {
            // SAFETY: the child of a fork has nothing to clean up.
            unsafe { libc::_exit(127) };
        }
    }

    /// Reports the step and errno, and ends the child, where a call failed.
    fn check(&self, step: i32, status: c_int) {
        if status >= 0 {
            return;
        }
        // SAFETY: the C library's errno of this thread; the report is of eight bytes; the child of a
        // fork has nothing to clean up.
        unsafe {
            let report = [step, *libc::__errno_location()];
            libc::write(self.report, report.as_ptr().cast(), 8);
            libc::_exit(127);
        }
    }
}

/// Closes every file of this process but the three standard ones and this one.
///
/// # Safety
/// Nothing may use the descriptors afterwards: for a child that will not return.
pub(crate) unsafe fn close_all_but(kept: RawFd) {
    // SAFETY: the caller's promise.
    unsafe {
        close_range(3, kept - 1);
        close_range(kept + 1, RawFd::MAX);
    }
}

/// # Safety
/// As `close_all_but`.
unsafe fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        let (first, last) = (first as libc::c_uint, last as libc::c_uint);
        // SAFETY: no memory is involved; the descriptors are nobody's, by the caller's promise.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

pub(crate) fn c_string(text: impl AsRef<OsStr>) -> io::Result<CString> {
    CString::new(text.as_ref().as_bytes()).map_err(io::Error::other)
}

/// Another descriptor of a file that the caller left open.
pub(crate) fn duplicate(fd: RawFd) -> io::Result<File> {
    // SAFETY: no memory is involved; the descriptor returned is ours.
    unsafe {
        let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3);
        if copy < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(copy))
    }
}

/// Does not wait for a writer where it is a named pipe.
pub(crate) fn open_input(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::empty())?;
    Ok(file)
}

pub(crate) fn open_output(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let readable = options
        .clone()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path);
    // Not everything that can be written to can be read.
    readable.or_else(|_| options.write(true).create(true).truncate(true).open(path))
}
