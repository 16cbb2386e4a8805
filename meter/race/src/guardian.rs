//! The process that the caller sees. It starts the worker, passes its records on, and ends
//! everything when the worker dies without having done so. The worker does the same for it.

use crate::processes::kill::kill;
use crate::processes::spawn;
use crate::processes::usage::Exit;
use crate::run::{Groups, Life, Place, Run};
use crate::worker;
use ensign_host::clock;
use ensign_host::wait::{ending_signals, interest, poll};
use ensign_protocol::records::{last_words, Status};
use ensign_protocol::request::{FreezerChoice, Request};
use ensign_protocol::Code;
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

const CLEAN_UP_WITHIN_NS: u64 = 5_000_000_000;
/// How long a caller that does not read its records can delay our exit.
const READ_WITHIN_NS: u64 = 10_000_000_000;
/// Records that the caller did not read yet; the worker waits when there are more.
const MOST_PENDING_BYTES: usize = 1 << 20;
/// What a pipe takes without blocking once it is writable.
const CHUNK_BYTES: usize = 4096;
const KILLED: &str =
    "the worker of ensign-meter was killed, and everything it ran was ended; if nobody \
    did that, the machine ran out of memory";
const STDIN: RawFd = 0;
const STDOUT: RawFd = 1;

/// Why there was no run at all.
pub struct Refusal {
    pub code: Code,
    pub text: String,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal {
            code: Code::System,
            text: error.to_string(),
        }
    }
}

fn no_folder(scratch: Option<&str>, error: &io::Error) -> Refusal {
    let (parent, advice) = match scratch {
        Some(parent) => (PathBuf::from(parent), ""),
        None => (std::env::temp_dir(), "; TMPDIR names another"),
    };
    let code = Code::of_refusal(error, Code::Request);
    let (why, advice) = match code {
        Code::Storage => ("the disk is full".into(), ""),
        _ => (error.to_string(), advice),
    };
    Refusal {
        code,
        text: format!(
            "cannot make a folder in {}: {why}{advice}",
            parent.display()
        ),
    }
}

/// Runs a request to its end; gives the exit status.
pub fn guard(request: &Request) -> Result<i32, Refusal> {
    let groups = Groups {
        for_freezing: request.freezer() != FreezerChoice::Signal,
        for_limits: request.limits_trees(),
        nameless: !request.containment().marks,
    };
    let place = Place {
        folder: request.scratch(),
        passable: request.containment().user.is_some(),
    };
    let begun = Run::begin(place, groups);
    let (run, life) = begun.map_err(|error| no_folder(request.scratch(), &error))?;
    // Refused before its worker watches over it, it has its groups and its folder already.
    guard_run(request, &run, life).inspect_err(|_| run.end())
}

fn guard_run(request: &Request, run: &Run, life: Life) -> Result<i32, Refusal> {
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let signals = ending_signals()?;
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (ours, theirs) = pipe_with(flags).map_err(io::Error::from)?;
    // SAFETY: no memory is involved; this process has one thread.
    let (own, pid) = unsafe { (libc::getpid(), libc::fork()) };
    if pid < 0 {
        return Err(io::Error::last_os_error().into());
    }
    if pid == 0 {
        // What the worker starts may stand still before it has closed what it inherits: a lock of
        // theirs would outlive both of us.
        drop((signals, ours, life));
        let work = || worker::work(run, request, theirs, own);
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        std::process::exit(status.unwrap_or(101));
    }
    drop(theirs);
    let mut guardian = Guardian {
        worker: pid,
        pidfd: spawn::pidfd(pid)?,
        signals,
        records: File::from(ours),
        pending: Vec::new(),
        whole: 0,
        watch_stdin: request.hold(),
        watch_stdout: true,
        told_ns: None,
    };
    let exit = guardian.watch();
    Ok(guardian.conclude(run, exit))
}

struct Guardian {
    worker: libc::pid_t,
    pidfd: OwnedFd,
    signals: OwnedFd,
    records: File,
    /// Bytes from the worker that the caller has not got yet.
    pending: Vec<u8>,
    /// How many of them are whole lines.
    whole: usize,
    watch_stdin: bool,
    watch_stdout: bool,
    /// When the worker was told to end.
    told_ns: Option<u64>,
}

impl Guardian {
    /// Until the worker has ended.
    fn watch(&mut self) -> Option<Exit> {
        loop {
            let mut fds = self.interests();
            let left = self
                .told_ns
                .map(|told| (told + CLEAN_UP_WITHIN_NS).saturating_sub(clock::now_ns()));
            // Failing, it is tried again at once: there is nothing better to do.
            let ready = poll(&mut fds, left).unwrap_or(false);
            if left == Some(0) {
                kill(self.worker, libc::SIGKILL);
            }
            if !ready {
                continue;
            }
            let happened = |index: usize| fds[index].revents != 0;
            if happened(0) {
                self.heed_signal();
            }
            if happened(2) {
                self.receive(MOST_PENDING_BYTES);
            }
            if happened(3) {
                self.heed_stdin();
            }
            if happened(4) {
                self.pass_on();
            }
            if happened(1) {
                if let Some(exit) = crate::processes::usage::reap(self.worker) {
                    return Some(exit);
                }
            }
        }
    }

    fn interests(&self) -> [libc::pollfd; 5] {
        let when = |condition: bool, fd: RawFd| if condition { fd } else { -1 };
        let room = self.pending.len() < MOST_PENDING_BYTES;
        let output = if self.whole > 0 { libc::POLLOUT } else { 0 };
        [
            interest(self.signals.as_raw_fd(), libc::POLLIN),
            interest(self.pidfd.as_raw_fd(), libc::POLLIN),
            interest(when(room, self.records.as_raw_fd()), libc::POLLIN),
            interest(when(self.watch_stdin, STDIN), libc::POLLIN),
            interest(when(self.watch_stdout, STDOUT), output),
        ]
    }

    fn tell_worker_to_end(&mut self) {
        if self.told_ns.is_none() {
            self.told_ns = Some(clock::now_ns());
            kill(self.worker, libc::SIGTERM);
        }
    }

    /// Any number of signals is one: clean-up goes on.
    fn heed_signal(&mut self) {
        let mut record = [0u8; 128];
        // SAFETY: the buffer is as large as said.
        unsafe {
            libc::read(
                self.signals.as_raw_fd(),
                record.as_mut_ptr().cast(),
                record.len(),
            )
        };
        self.tell_worker_to_end();
    }

    fn heed_stdin(&mut self) {
        let mut bytes = [0u8; 4096];
        // SAFETY: the buffer is as large as said.
        let read = unsafe { libc::read(STDIN, bytes.as_mut_ptr().cast(), bytes.len()) };
        if read <= 0 {
            self.watch_stdin = false;
            self.tell_worker_to_end();
        }
    }

    fn receive(&mut self, most: usize) {
        let mut bytes = [0u8; 1 << 16];
        while let Ok(length @ 1..) = self.records.read(&mut bytes) {
            self.pending.extend(&bytes[..length]);
            if self.pending.len() >= most {
                break;
            }
        }
        let newline = self.pending.iter().rposition(|&byte| byte == b'\n');
        self.whole = newline.map_or(0, |at| at + 1);
    }

    fn pass_on(&mut self) {
        let chunk = self.whole.min(CHUNK_BYTES);
        // SAFETY: the buffer outlives the call.
        let written = unsafe { libc::write(STDOUT, self.pending.as_ptr().cast(), chunk) };
        if chunk > 0 && written > 0 {
            self.pending.drain(..written as usize);
            self.whole -= written as usize;
        } else if written <= 0 {
            self.nobody_reads();
        }
    }

    fn nobody_reads(&mut self) {
        self.watch_stdout = false;
        self.whole = 0;
        self.pending.clear();
        self.tell_worker_to_end();
    }

    /// After the worker: makes sure that nothing is left, and that the last record is an `end`.
    fn conclude(&mut self, run: &Run, exit: Option<Exit>) -> i32 {
        let status = exit.and_then(|exit| exit.code());
        let orderly = matches!(status, Some(0 | 2 | 3 | 4 | 5));
        run.end();
        if !orderly {
            run.end_strays();
        }
        // What is left in the pipe of the worker is not much.
        self.receive(usize::MAX);
        self.pending.truncate(self.whole);
        let mut status = status.filter(|_| orderly);
        if !orderly {
            let interrupted = self.told_ns.is_some();
            let error =
                (!interrupted).then_some(if exit.is_some_and(|exit| exit.code().is_none()) {
                    (Code::System, KILLED)
                } else {
                    (
                        Code::Internal,
                        "the worker of ensign-meter failed; everything it ran was ended",
                    )
                });
            let said = if interrupted {
                Status::Interrupted
            } else {
                Status::Failed
            };
            last_words(&mut self.pending, error, said);
            status = Some(error.map_or(worker::INTERRUPTED, |(code, _)| code.exit_status()));
        }
        self.whole = self.pending.len();
        self.drain();
        status.unwrap_or(Code::Internal.exit_status())
    }

    /// As long as somebody reads, however slowly.
    fn drain(&mut self) {
        let mut until = clock::now_ns() + READ_WITHIN_NS;
        while self.whole > 0 && self.watch_stdout {
            let before = self.whole;
            let mut fds = [interest(STDOUT, libc::POLLOUT)];
            let left = until.saturating_sub(clock::now_ns());
            if poll(&mut fds, Some(left)).unwrap_or(false) {
                self.pass_on();
            }
            if self.whole < before {
                until = clock::now_ns() + READ_WITHIN_NS;
            } else if left == 0 {
                return;
            }
        }
    }
}

/// The request: one line, or (where that is no whole request) everything to the end.
pub fn read_request() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = [0u8; 1 << 16];
    loop {
        // SAFETY: the buffer is as large as said. Unbuffered: what follows is not ours to take.
        let read = unsafe { libc::read(STDIN, chunk.as_mut_ptr().cast(), chunk.len()) };
        match read {
            0 => return Ok(bytes),
            1.. => bytes.extend(&chunk[..read as usize]),
            _ => return Err(io::Error::last_os_error()),
        }
        let line = bytes.iter().position(|&byte| byte == b'\n');
        let is_whole =
            |end: usize| serde_json::from_slice::<serde::de::IgnoredAny>(&bytes[..end]).is_ok();
        if let Some(end) = line.filter(|&end| is_whole(end)) {
            bytes.truncate(end);
            return Ok(bytes);
        }
    }
}
