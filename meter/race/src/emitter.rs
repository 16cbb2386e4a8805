//! The way of the records out.

use crate::halt::Halt;
use ensign_host::clock;
use ensign_host::wait::Waiter;
use ensign_protocol::records::{line, Record};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The worker's end of the pipe to the guardian, which passes whole lines on.
pub(crate) struct Emitter {
    pipe: OwnedFd,
    buffer: Vec<u8>,
}

const FLUSH_BYTES: usize = 1 << 16;

impl Emitter {
    pub(crate) fn new(pipe: OwnedFd) -> Emitter {
        Emitter {
            pipe,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn put(&mut self, waiter: &Waiter, record: &Record) -> Result<(), Halt> {
        serde_json::to_writer(&mut self.buffer, record)
            .map_err(|e| Halt::internal(e.to_string()))?;
        self.buffer.push(b'\n');
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush(waiter)?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self, waiter: &Waiter) -> Result<(), Halt> {
        while !self.buffer.is_empty() {
            match self.write_some() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    waiter.writable(self.pipe.as_raw_fd(), None)?;
                }
                // Nobody reads any more.
                Err(_) => return Err(Halt::Interrupted),
            }
        }
        Ok(())
    }

    /// The last words, said also when the run is being ended; the guardian reads until we exit.
    pub(crate) fn last(&mut self, record: &Record) {
        self.buffer.extend(line(record));
        while !self.buffer.is_empty() {
            match self.write_some() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    clock::sleep_ns(1_000_000);
                }
                Err(_) => return,
            }
        }
    }

    fn write_some(&mut self) -> io::Result<()> {
        // SAFETY: the buffer outlives the call.
        let written = unsafe {
            let data = self.buffer.as_ptr().cast();
            libc::write(self.pipe.as_raw_fd(), data, self.buffer.len())
        };
        if written < 0 {
            return Err(io::Error::last_os_error());
        }
        self.buffer.drain(..written as usize);
        Ok(())
    }
}
