//! Takes what processes write, so that nothing of it is kept beyond a bound and nothing fills up.
//!
//! A small process of the meter reads the other ends of their pipes. Its CPU time is no variant's, it
//! is never stopped with one, and it is gone with the worker.

use crate::processes::process_trees::Inodes;
use ensign_host::clock;
use ensign_host::wait::{interest, poll};
use rustix::fs::{fcntl_setfl, memfd_create, MemfdFlags, OFlags};
use rustix::pipe::{fcntl_setpipe_size, pipe_with, PipeFlags};
use sha2::{Digest, Sha256};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
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

/// A message of one byte with two descriptors.
struct Message {
    bytes: [u8; 1],
    iov: libc::iovec,
    /// Aligned as the kernel wants its headers.
    control: [u64; 8],
    control_bytes: usize,
}

const FDS_BYTES: u32 = (2 * std::mem::size_of::<RawFd>()) as u32;

impl Message {
    fn new(bytes: &[u8; 1]) -> Message {
        Message {
            bytes: *bytes,
            iov: libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 1,
            },
            control: [0; 8],
            // SAFETY: arithmetic.
            control_bytes: unsafe { libc::CMSG_SPACE(FDS_BYTES) } as usize,
        }
    }

    fn header(&mut self) -> libc::msghdr {
        self.iov.iov_base = self.bytes.as_mut_ptr().cast();
        // SAFETY: plain data.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &mut self.iov;
        header.msg_iovlen = 1;
        header.msg_control = self.control.as_mut_ptr().cast();
        header.msg_controllen = self.control_bytes as _;
        header
    }

    fn put_fds(&mut self, fds: &[RawFd; 2]) {
        let header = self.header();
        // SAFETY: the buffer has room for one control message with two descriptors.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(FDS_BYTES) as _;
            std::ptr::copy_nonoverlapping(fds.as_ptr(), libc::CMSG_DATA(first).cast(), 2);
        }
    }
}

// From here on: in the process that drains.

/// A pipe under way.
struct Source {
    pipe: File,
    /// Memory of a stream that is kept or hashed, or /dev/null.
    sink: File,
    flags: u8,
    total: u64,
    hash: Sha256,
}

/// Until the worker is gone. While something flows the pipes are looked at by the clock: a reader
/// that sleeps in the kernel would have to be woken by every write, at the writer's expense.
fn drain_all(socket: RawFd) -> io::Result<()> {
    let mut sources: Vec<Source> = Vec::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut quiet = 0;
    loop {
        let mut fds = vec![interest(socket, libc::POLLIN)];
        fds.extend(
            sources
                .iter()
                .map(|source| interest(source.pipe.as_raw_fd(), libc::POLLIN)),
        );
        let nap_ns = if quiet < MOST_QUIET { Some(0) } else { None };
        let ready = poll(&mut fds, nap_ns)?;
        if ready && fds[0].revents != 0 {
            match receive(socket)? {
                Some(source) => sources.push(source),
                None => return Ok(()),
            }
        }
        let mut moved = 0;
        let mut ended = Vec::new();
        for (index, fd) in fds[1..]
            .iter()
            .enumerate()
            .filter(|(_, fd)| fd.revents != 0)
        {
            debug_assert_eq!(fd.fd, sources[index].pipe.as_raw_fd());
            let (bytes, over) = sources[index].take(&mut buffer);
            moved += bytes;
            if over {
                ended.push(index);
            }
        }
        for index in ended.into_iter().rev() {
            sources.swap_remove(index);
        }
        quiet = if moved > 0 { 0 } else { quiet + 1 };
        if quiet < MOST_QUIET && moved < ENOUGH_BYTES {
            clock::sleep_ns(if moved < FEW_BYTES { LONG_NS } else { SHORT_NS });
        }
    }
}

/// Looks without a byte before the kernel is asked to wake us.
const MOST_QUIET: u32 = 20;
/// So much in one look: the next one comes at once, soon, or after a while.
const ENOUGH_BYTES: usize = 1 << 18;
const FEW_BYTES: usize = 1 << 16;
const SHORT_NS: u64 = 50_000;
const LONG_NS: u64 = 300_000;

fn receive(socket: RawFd) -> io::Result<Option<Source>> {
    let mut message = Message::new(&[0]);
    let mut header = message.header();
    // SAFETY: the message lives during the call; what was received is ours.
    unsafe {
        let received = libc::recvmsg(socket, &mut header, libc::MSG_CMSG_CLOEXEC);
        let first = libc::CMSG_FIRSTHDR(&header);
        if received <= 0 || first.is_null() {
            return Ok(None);
        }
        let mut fds: [RawFd; 2] = [-1; 2];
        std::ptr::copy_nonoverlapping(libc::CMSG_DATA(first).cast(), fds.as_mut_ptr(), 2);
        Ok(Some(Source {
            pipe: File::from_raw_fd(fds[0]),
            sink: File::from_raw_fd(fds[1]),
            flags: message.bytes[0],
            total: 0,
            hash: Sha256::new(),
        }))
    }
}

impl Source {
    /// Takes what is there; how much that was, and whether it was the last.
    fn take(&mut self, buffer: &mut [u8]) -> (usize, bool) {
        if self.flags == 0 {
            return self.drop_some();
        }
        match self.pipe.read(buffer) {
            Ok(0) => {
                self.write_header(true);
                (0, true)
            }
            Ok(count) => {
                self.keep(&buffer[..count]);
                (count, false)
            }
            Err(error) => (0, !may_try_again(&error)),
        }
    }

    /// Without looking at it, or copying it.
    fn drop_some(&mut self) -> (usize, bool) {
        // SAFETY: no memory is involved.
        let moved = unsafe {
            libc::splice(
                self.pipe.as_raw_fd(),
                std::ptr::null_mut(),
                self.sink.as_raw_fd(),
                std::ptr::null_mut(),
                PIPE_BYTES,
                libc::SPLICE_F_NONBLOCK,
            )
        };
        match moved {
            0 => (0, true),
            1.. => (moved as usize, false),
            _ => (0, !may_try_again(&io::Error::last_os_error())),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.flags & HASH != 0 {
            self.hash.update(bytes);
        }
        if self.flags & KEEP != 0 {
            self.write(bytes);
        }
        self.total += bytes.len() as u64;
        self.write_header(false);
    }

    fn write(&self, mut bytes: &[u8]) {
        let mut at = self.total;
        while !bytes.is_empty() {
            let (place, room) = if at < HEAD_BYTES {
                (at, HEAD_BYTES - at)
            } else {
                let within = (at - HEAD_BYTES) % RING_BYTES;
                (HEAD_BYTES + within, RING_BYTES - within)
            };
            let count = bytes.len().min(room as usize);
            // Memory that is not to be had is output that is not kept.
            let _ = self
                .sink
                .write_all_at(&bytes[..count], HEADER_BYTES + place);
            bytes = &bytes[count..];
            at += count as u64;
        }
    }

    fn write_header(&self, ended: bool) {
        let mut header = [0u8; HEADER_BYTES as usize];
        header[..8].copy_from_slice(&self.total.to_le_bytes());
        header[8] = u8::from(ended);
        if ended {
            header[16..48].copy_from_slice(&self.hash.clone().finalize());
        }
        let _ = self.sink.write_all_at(&header, 0);
    }
}

fn may_try_again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
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
