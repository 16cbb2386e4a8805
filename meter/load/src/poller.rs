//! Which sockets are ready: epoll.

use ensign_host::wait;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub token: u64,
    /// There may be something to read, or the connection is lost.
    pub readable: bool,
    pub writable: bool,
}

const NS_PER_MS: u64 = 1_000_000;

impl Poller {
    /// Gives at most `most` events at a time.
    pub(crate) fn new(most: usize) -> io::Result<Poller> {
        // SAFETY: no memory is involved; the descriptor returned is ours.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Poller {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; most],
            ready: 0,
        })
    }

    pub(crate) fn add(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, false)
    }

    /// Whether to tell of room to write, too.
    pub(crate) fn watch_room(&self, fd: RawFd, token: u64, wanted: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, wanted)
    }

    fn control(&self, what: i32, fd: RawFd, token: u64, room: bool) -> io::Result<()> {
        let room = if room { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | room) as u32,
            u64: token,
        };
        // SAFETY: the event outlives the call.
        let status = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, fd, &mut event) };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Waits; a `precise` wait costs a system call more, others are rounded up to milliseconds.
    pub(crate) fn wait(&mut self, timeout_ns: u64, precise: bool) -> io::Result<()> {
        let mut timeout_ms = timeout_ns.div_ceil(NS_PER_MS).min(i32::MAX as u64) as i32;
        if precise {
            let mut polled = [wait::interest(self.epoll.as_raw_fd(), libc::POLLIN)];
            wait::poll(&mut polled, Some(timeout_ns))?;
            timeout_ms = 0;
        }
        // SAFETY: the events outlive the call, and there are as many as said.
        let ready = unsafe {
            let most = self.events.len() as i32;
            let events = self.events.as_mut_ptr();
            libc::epoll_wait(self.epoll.as_raw_fd(), events, most, timeout_ms)
        };
        self.ready = usize::try_from(ready).unwrap_or(0);
        let error = io::Error::last_os_error();
        if ready < 0 && error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        Ok(())
    }

    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// The `index`th of those that the last wait found.
    pub(crate) fn event(&self, index: usize) -> Event {
        let event = self.events[index];
        let has = |what: i32| event.events & what as u32 != 0;
        Event {
            token: event.u64,
            readable: has(libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLHUP),
            writable: has(libc::EPOLLOUT),
        }
    }
}
