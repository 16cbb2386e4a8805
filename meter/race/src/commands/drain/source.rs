//! The process that drains: pipes that it reads to their ends.

use super::message::Message;
use super::{CHUNK_BYTES, HASH, HEADER_BYTES, HEAD_BYTES, KEEP, PIPE_BYTES, RING_BYTES};
use ensign_host::clock;
use ensign_host::wait::{interest, poll};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// A pipe under way.
pub(super) struct Source {
    pub(super) pipe: File,
    /// Memory of a stream that is kept or hashed, or /dev/null.
    pub(super) sink: File,
    pub(super) flags: u8,
    pub(super) total: u64,
    pub(super) hash: Sha256,
}

/// Until the worker is gone. While something flows the pipes are looked at by the clock: a reader
/// that sleeps in the kernel would have to be woken by every write, at the writer's expense.
pub(super) fn drain_all(socket: RawFd) -> io::Result<()> {
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
    // SAFETY: the message lives during the call, and its control data while it is read; without
    // truncation it is what the other end sent, two descriptors, which are ours now.
    unsafe {
        let received = libc::recvmsg(socket, &mut header, libc::MSG_CMSG_CLOEXEC);
        let first = libc::CMSG_FIRSTHDR(&header);
        if received <= 0 || first.is_null() {
            return Ok(None);
        }
        // Where this process may have no more files, fewer come.
        if header.msg_flags & libc::MSG_CTRUNC != 0 {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
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
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> (usize, bool) {
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
