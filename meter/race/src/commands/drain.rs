//! Takes what processes write, so that nothing of it is kept beyond a bound and nothing fills up.
//!
//! A small process of the meter reads the other ends of their pipes. Its CPU time is no variant's, it
//! is never stopped with one, and it is gone with the worker.

mod message;
mod source;

use crate::processes::process_trees::Inodes;
use ensign_host::clock;
use message::Message;
use rustix::fs::{fcntl_setfl, memfd_create, MemfdFlags, OFlags};
use rustix::pipe::{fcntl_setpipe_size, pipe_with, PipeFlags};
use source::drain_all;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

/// As large as an unprivileged user may have it: a writer waits less often.
const PIPE_BYTES: usize = 1 << 20;
/// Of a stream that is kept: so much of its beginning, and so much of its end.
const HEAD_BYTES: u64 = 1 << 16;
const RING_BYTES: u64 = 1 << 20;
const HEADER_BYTES: u64 = 64;
const CHUNK_BYTES: usize = 1 << 18;
const READ_WITHIN_NS: u64 = 1_000_000_000;
const KEEP: u8 = 1;
const HASH: u8 = 2;

/// What is wanted of a stream besides that it flows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted {
    /// Its text, head and tail.
    pub text: bool,
    /// The hash of all of it.
    pub digest: bool,
}

/// The process that drains, and the way to it.
pub(crate) struct Drain {
    socket: OwnedFd,
    pub pid: libc::pid_t,
    /// Of the pipes that it reads.
    inodes: Inodes,
}

impl Drain {
    /// To be called while this process has one thread.
    pub(crate) fn start(inodes: Inodes) -> io::Result<Drain> {
        let mut ends = [0; 2];
        let parent = std::process::id() as libc::pid_t;
        // SAFETY: the array has room for both; the descriptors are ours. One thread: fork is safe.
        unsafe {
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
            if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) < 0 {
                return Err(io::Error::last_os_error());
            }
            let (ours, theirs) = (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]));
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    crate::processes::spawn::close_all_but(theirs.as_raw_fd());
                    if libc::getppid() == parent {
                        // On a busy machine too: a writer must not wait for its reader's turn.
                        let _on_time = crate::processes::priority::Priority::raise();
                        let _ = drain_all(theirs.as_raw_fd());
                    }
                    libc::_exit(0)
                }
                pid => Ok(Drain {
                    socket: ours,
                    pid,
                    inodes,
                }),
            }
        }
    }

    /// The end to write into, and what can be read of it.
    pub(crate) fn stream(&self, wanted: Wanted) -> io::Result<(File, Option<Stream>)> {
        let (read, write) = pipe()?;
        self.inodes.borrow_mut().push(write.metadata()?.ino());
        let mut flags = 0;
        let mut memory = None;
        if wanted.text || wanted.digest {
            flags |= if wanted.text { KEEP } else { 0 };
            flags |= if wanted.digest { HASH } else { 0 };
            memory = Some(memory_file(c"ensign-stream")?);
        }
        self.send(flags, read.as_raw_fd(), memory.as_ref())?;
        Ok((write, memory.map(|memory| Stream { memory })))
    }

    fn send(&self, flags: u8, read: RawFd, memory: Option<&File>) -> io::Result<()> {
        let null;
        let second = match memory {
            Some(file) => file.as_raw_fd(),
            None => {
                null = File::options().write(true).open("/dev/null")?;
                null.as_raw_fd()
            }
        };
        let fds = [read, second];
        let mut message = Message::new(&[flags]);
        message.put_fds(&fds);
        // SAFETY: the message points into itself and lives during the call.
        let sent = unsafe {
            libc::sendmsg(
                self.socket.as_raw_fd(),
                &message.header(),
                libc::MSG_NOSIGNAL,
            )
        };
        if sent < 0 {
            return Err(io::Error::other(
                "the process that takes the output is gone",
            ));
        }
        Ok(())
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        // SAFETY: the pid is our unreaped child.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// What was kept of a stream.
pub(crate) struct Stream {
    memory: File,
}

struct Header {
    ended: bool,
    total: u64,
    digest: [u8; 32],
}

impl Stream {
    fn header(&self) -> Header {
        let mut bytes = [0u8; HEADER_BYTES as usize];
        // Nothing written yet reads as zeros.
        let _ = self.memory.read_at(&mut bytes, 0);
        let mut digest = [0; 32];
        digest.copy_from_slice(&bytes[16..48]);
        Header {
            ended: bytes[8] != 0,
            total: u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")),
            digest,
        }
    }

    /// Once nobody writes any more: waits until all is read. What is written after is lost.
    pub(crate) fn finish(&self) {
        let until = clock::now_ns() + READ_WITHIN_NS;
        let mut naps = clock::Naps::default();
        while !self.header().ended && clock::now_ns() < until {
            naps.nap();
        }
    }

    /// Beginning and end of what was written so far.
    pub(crate) fn text(&self) -> String {
        let total = self.header().total;
        let mut bytes = self.read(HEADER_BYTES, total.min(HEAD_BYTES));
        let rest = total.saturating_sub(HEAD_BYTES);
        if rest > RING_BYTES {
            bytes.push(b'\n');
        }
        bytes.extend(self.last(rest.min(RING_BYTES), rest));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last bytes, at most so many.
    pub(crate) fn tail(&self, most: u64) -> Vec<u8> {
        let total = self.header().total;
        let rest = total.saturating_sub(HEAD_BYTES);
        let of_ring = most.min(rest);
        let of_head = (most - of_ring).min(total.min(HEAD_BYTES));
        let mut bytes = self.read(HEADER_BYTES + total.min(HEAD_BYTES) - of_head, of_head);
        bytes.extend(self.last(of_ring, rest));
        bytes
    }

    /// The hash of everything that was written, in hexadecimal digits.
    pub(crate) fn digest(&self) -> Option<String> {
        let header = self.header();
        let digits = header.digest.iter().map(|byte| format!("{byte:02x}"));
        header.ended.then(|| digits.collect())
    }

    fn last(&self, count: u64, rest: u64) -> Vec<u8> {
        let start = (rest - count) % RING_BYTES;
        let before = count.min(RING_BYTES - start);
        let mut bytes = self.read(HEADER_BYTES + HEAD_BYTES + start, before);
        bytes.extend(self.read(HEADER_BYTES + HEAD_BYTES, count - before));
        bytes
    }

    fn read(&self, at: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        let read = self.memory.read_at(&mut bytes, at).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Where it may not be larger it works as it is.
    let _ = fcntl_setpipe_size(&read, PIPE_BYTES);
    fcntl_setfl(&read, OFlags::NONBLOCK)?;
    Ok((File::from(read), File::from(write)))
}

fn memory_file(name: &CStr) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use super::source::Source;
    use super::*;
    use sha2::{Digest, Sha256};
    use std::io::Write;

    fn written(parts: &[&[u8]]) -> Stream {
        let (read, mut write) = pipe().unwrap();
        let memory = memory_file(c"test").unwrap();
        let mut source = Source {
            pipe: read,
            sink: memory.try_clone().unwrap(),
            flags: KEEP | HASH,
            total: 0,
            hash: Sha256::new(),
        };
        let mut buffer = vec![0; 1000];
        for part in parts {
            for piece in part.chunks(10_000) {
                write.write_all(piece).unwrap();
                while source.take(&mut buffer).0 > 0 {}
            }
        }
        drop(write);
        assert!(source.take(&mut buffer).1);
        Stream { memory }
    }

    #[test]
    fn what_is_short_is_kept_whole() {
        let stream = written(&[b"one\n", b"two\n"]);
        assert_eq!(stream.text(), "one\ntwo\n");
        assert_eq!(stream.tail(5), b"\ntwo\n");
        let expected = Sha256::digest(b"one\ntwo\n");
        let digits: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(stream.digest(), Some(digits));
    }

    #[test]
    fn of_what_is_long_both_ends_are_kept() {
        let middle = vec![b'x'; 2_500_000];
        let stream = written(&[b"begin\n", &middle, b"\nend\n"]);
        let text = stream.text();
        assert!(text.starts_with("begin\nxxx") && text.ends_with("xxx\nend\n"));
        assert_eq!(text.len() as u64, HEAD_BYTES + 1 + RING_BYTES);
        assert_eq!(stream.tail(6), b"x\nend\n");
    }

    #[test]
    fn a_tail_may_lie_across_the_end_of_the_head() {
        let head = vec![b'a'; HEAD_BYTES as usize];
        let stream = written(&[&head, b"bc"]);
        assert_eq!(stream.tail(4), b"aabc");
    }
}
