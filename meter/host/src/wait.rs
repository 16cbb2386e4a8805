//! Waiting for processes without missing the signal to stop.

use crate::clock;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The signals that end a run; the rest keep their meaning.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

const MOST_FDS: usize = 8;

/// Blocks the ending signals for this process and gives a descriptor that tells of them.
pub fn ending_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use; the new descriptor is ours.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        for signal in ENDING {
            libc::sigaddset(&mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Polls; true when something is ready. A timeout of None waits for ever.
pub fn poll(fds: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<bool> {
    let time = timeout_ns.map(clock::timespec);
    let pointer = time
        .as_ref()
        .map_or(std::ptr::null(), |time| time as *const _);
    // SAFETY: the slice and the time outlive the call.
    let ready = unsafe {
        libc::ppoll(
            fds.as_mut_ptr(),
            fds.len() as libc::nfds_t,
            pointer,
            std::ptr::null(),
        )
    };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(false)
        } else {
            Err(error)
        };
    }
    Ok(ready > 0)
}

pub fn interest(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Why a wait ended without what was waited for.
#[derive(Debug)]
pub enum Error {
    /// A signal to end the run.
    Interrupted,
    System(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::System(error)
    }
}

/// Waits that end when the run is to end. The signal is not consumed: every later wait ends too.
pub struct Waiter {
    signals: OwnedFd,
}

impl Waiter {
    pub fn new() -> io::Result<Waiter> {
        Ok(Waiter {
            signals: ending_signals()?,
        })
    }

    /// Index of the first readable descriptor, or None when the time has come.
    pub fn readable(&self, fds: &[RawFd], until_ns: Option<u64>) -> Result<Option<usize>, Error> {
        self.wait(fds, libc::POLLIN, until_ns)
    }

    /// True when there is room, false when the time has come.
    pub fn writable(&self, fd: RawFd, until_ns: Option<u64>) -> Result<bool, Error> {
        let ready = self.wait(&[fd], libc::POLLOUT, until_ns)?;
        Ok(ready.is_some())
    }

    /// Readable once the run is to end, for others to wait on; not to be read.
    pub fn signals(&self) -> RawFd {
        self.signals.as_raw_fd()
    }

    fn wait(
        &self,
        fds: &[RawFd],
        events: libc::c_short,
        until_ns: Option<u64>,
    ) -> Result<Option<usize>, Error> {
        let mut polled = [interest(-1, 0); MOST_FDS];
        polled[0] = interest(self.signals.as_raw_fd(), libc::POLLIN);
        for (slot, &fd) in polled[1..].iter_mut().zip(fds) {
            *slot = interest(fd, events);
        }
        let count = fds.len() + 1;
        loop {
            let left = until_ns.map(|until| until.saturating_sub(clock::now_ns()));
            if poll(&mut polled[..count], left)? {
                if polled[0].revents != 0 {
                    return Err(Error::Interrupted);
                }
                let ready = polled[1..count].iter().position(|p| p.revents != 0);
                return Ok(ready);
            }
            if until_ns.is_some_and(|until| clock::now_ns() >= until) {
                return Ok(None);
            }
        }
    }
}

/// True when the descriptor is readable within the time, whatever signals say.
pub fn readable_within(fd: RawFd, ns: u64) -> bool {
    let until = clock::now_ns() + ns;
    loop {
        let left = until.saturating_sub(clock::now_ns());
        let mut polled = [interest(fd, libc::POLLIN)];
        match poll(&mut polled, Some(left)) {
            Ok(true) => return true,
            Ok(false) if left > 0 => {}
            _ => return false,
        }
    }
}
