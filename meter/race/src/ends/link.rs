//! The devices between two network namespaces, by rtnetlink(7): a pair, addresses, a rate.

use super::Network;
use crate::processes::procfs::LINK;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    bind, recv, sendto, socket_with, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_QDISC: u16 = 36;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const EXCLUSIVE_NEW: u16 = 0x600;

const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_INFO: u16 = 18;
const LINK_KIND: u16 = 1;
const LINK_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const LINK_NAMESPACE: u16 = 28;
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const QDISC_KIND: u16 = 1;
const QDISC_OPTIONS: u16 = 2;
const TBF_PARAMETERS: u16 = 1;
const TBF_BURST: u16 = 6;

const UP: u32 = 1;
const LOOPBACK: u32 = 1;
/// Ours; those below are the kernel's.
const DEVICE: u32 = 1000;
const ROOT: u32 = u32::MAX;
const IPV4: u8 = 2;
const PREFIX_BITS: u8 = 24;
const ETHERNET: u8 = 1;
const LEAST_BURST_BYTES: u64 = 128 * 1024;
const LEAST_QUEUE_BYTES: u64 = 1024 * 1024;

/// The address of an end, 1 or 2.
pub(super) fn address(end: u8) -> [u8; 4] {
    [10, 77, 0, end]
}

/// A socket to the kernel, of the namespace in which it was opened.
pub(super) struct Link {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Link {
    pub(super) fn open() -> io::Result<Link> {
        let kind = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::NETLINK, kind.0, kind.1, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Link {
            socket,
            buffer: vec![0; 8192],
        })
    }

    /// A device here, and its peer in another namespace.
    pub(super) fn pair(&mut self, other: &File) -> io::Result<()> {
        let mut message = Message::new(NEW_LINK, EXCLUSIVE_NEW);
        message.device(DEVICE, 0);
        message.text(LINK_NAME, LINK);
        let info = message.begin(LINK_INFO);
        message.text(LINK_KIND, "veth");
        let data = message.begin(LINK_DATA);
        let peer = message.begin(VETH_PEER);
        message.device(DEVICE, 0);
        message.text(LINK_NAME, LINK);
        message.number(LINK_NAMESPACE, other.as_raw_fd() as u32);
        message.end(peer);
        message.end(data);
        message.end(info);
        self.send(message)
    }

    /// Address, rate, and both devices up, of the end in whose namespace this was opened.
    pub(super) fn configure(&mut self, end: u8, network: Network) -> io::Result<()> {
        self.up(LOOPBACK, None)?;
        let mut message = Message::new(NEW_ADDRESS, EXCLUSIVE_NEW);
        message.bytes(&[IPV4, PREFIX_BITS, 0, 0]);
        message.bytes(&DEVICE.to_ne_bytes());
        message.attribute(LOCAL, &address(end));
        message.attribute(ADDRESS, &address(end));
        self.send(message)?;
        self.up(DEVICE, Some(network.mtu))?;
        if network.rate_bits > 0 {
            self.limit(network.rate_bits / 8)?;
        }
        Ok(())
    }

    fn up(&mut self, device: u32, mtu: Option<u32>) -> io::Result<()> {
        let mut message = Message::new(NEW_LINK, 0);
        message.device(device, UP);
        if let Some(mtu) = mtu {
            message.number(LINK_MTU, mtu);
        }
        self.send(message)
    }

    /// A token bucket, tc-tbf(8): a millisecond of burst, ten of queue.
    fn limit(&mut self, rate_bytes: u64) -> io::Result<()> {
        let rate = u32::try_from(rate_bytes).unwrap_or(u32::MAX);
        let burst = (rate_bytes / 1000).max(LEAST_BURST_BYTES) as u32;
        let queue = (rate_bytes / 100).max(LEAST_QUEUE_BYTES) as u32;
        let mut parameters = vec![0, ETHERNET, 0, 0, 0, 0, 0, 0];
        parameters.extend(rate.to_ne_bytes());
        parameters.extend([0; 12]); // no peak rate
        parameters.extend(queue.to_ne_bytes());
        parameters.extend([0; 8]); // by the burst
        let mut message = Message::new(NEW_QDISC, EXCLUSIVE_NEW);
        message.bytes(&[0; 4]);
        for word in [DEVICE, 0, ROOT, 0] {
            message.bytes(&word.to_ne_bytes());
        }
        message.text(QDISC_KIND, "tbf");
        let options = message.begin(QDISC_OPTIONS);
        message.attribute(TBF_PARAMETERS, &parameters);
        message.number(TBF_BURST, burst);
        message.end(options);
        self.send(message)
    }

    fn send(&mut self, message: Message) -> io::Result<()> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(
            &self.socket,
            &message.finished(),
            SendFlags::empty(),
            &kernel,
        )?;
        let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
        match refusal(&self.buffer[..length]) {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(-errno)),
            None => Err(io::Error::other("the kernel answers nothing known")),
        }
    }
}

/// The number in the kernel's answer: 0 where it agrees, or a negative errno.
fn refusal(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let number = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (kind == ERROR).then_some(number)
}

/// A netlink message that is being written; attributes are padded to four bytes.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16) -> Message {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((REQUEST | ACKNOWLEDGE | flags).to_ne_bytes());
        bytes.extend([0; 8]);
        Message(bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// An `ifinfomsg`: the flags are those that it is to have, and that change.
    fn device(&mut self, index: u32, flags: u32) {
        self.bytes(&[0; 4]);
        for word in [index, flags, flags] {
            self.bytes(&word.to_ne_bytes());
        }
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let start = self.begin(kind);
        self.bytes(value);
        self.end(start);
    }

    fn text(&mut self, kind: u16, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes);
    }

    fn number(&mut self, kind: u16, number: u32) {
        self.attribute(kind, &number.to_ne_bytes());
    }

    fn begin(&mut self, kind: u16) -> usize {
        let start = self.0.len();
        self.bytes(&[0; 2]);
        self.bytes(&kind.to_ne_bytes());
        start
    }

    fn end(&mut self, start: usize) {
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn finished(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}
