//! Descriptors on their way to another process.

use std::os::fd::RawFd;

/// A message of one byte with two descriptors.
pub(super) struct Message {
    pub(super) bytes: [u8; 1],
    iov: libc::iovec,
    /// Aligned as the kernel wants its headers.
    control: [u64; 8],
    control_bytes: usize,
}

const FDS_BYTES: u32 = (2 * std::mem::size_of::<RawFd>()) as u32;

impl Message {
    pub(super) fn new(bytes: &[u8; 1]) -> Message {
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

    pub(super) fn header(&mut self) -> libc::msghdr {
        self.iov.iov_base = self.bytes.as_mut_ptr().cast();
        // SAFETY: plain data.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &mut self.iov;
        header.msg_iovlen = 1;
        header.msg_control = self.control.as_mut_ptr().cast();
        header.msg_controllen = self.control_bytes as _;
        header
    }

    pub(super) fn put_fds(&mut self, fds: &[RawFd; 2]) {
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
