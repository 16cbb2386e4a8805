//! Ports for servers: free ones, and who listens on them.

use ensign_protocol::random::Random;
use libc::pid_t;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};

/// Hands out ports of a range that are free now, each to one variant at a time.
pub(crate) struct Ports {
    first: u16,
    last: u16,
    next: u16,
    used: BTreeSet<u16>,
}

impl Ports {
    pub(crate) fn new((first, last): (u16, u16), random: &mut Random) -> Ports {
        let span = usize::from(last - first) + 1;
        Ports {
            first,
            last,
            next: first + random.below(span) as u16,
            used: BTreeSet::new(),
        }
    }

    pub(crate) fn range(&self) -> (u16, u16) {
        (self.first, self.last)
    }

    /// None when all are taken.
    pub(crate) fn take(&mut self) -> Option<u16> {
        for _ in self.first..=self.last {
            let port = self.next;
            self.next = if port == self.last {
                self.first
            } else {
                port + 1
            };
            if !self.used.contains(&port) && is_free(port) {
                self.used.insert(port);
                return Some(port);
            }
        }
        None
    }

    pub(crate) fn give_back(&mut self, port: u16) {
        self.used.remove(&port);
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    None,
    Ours,
    /// Another process' socket.
    Foreign,
}

/// Who listens on a port, in the network that the first of our processes sees.
pub(crate) fn listener(port: u16, ours: &[pid_t]) -> Listener {
    let Some(&first) = ours.first() else {
        return Listener::None;
    };
    let mut found = Listener::None;
    for table in ["tcp", "tcp6"] {
        let Ok(table) = File::open(format!("/proc/{first}/net/{table}")) else {
            continue;
        };
        let inodes: Vec<String> = listening(BufReader::new(table), port)
            .iter()
            .map(|inode| format!("socket:[{inode}]"))
            .collect();
        // Each table takes long to read: the second one only where the first does not tell.
        if !inodes.is_empty() && ours.iter().any(|&pid| holds(pid, &inodes)) {
            return Listener::Ours;
        }
        if !inodes.is_empty() {
            found = Listener::Foreign;
        }
    }
    found
}

/// True if anybody listens on a port, in the network that this process sees.
pub(crate) fn is_listened_to(port: u16, pid: pid_t) -> bool {
    let tables = ["tcp", "tcp6"].map(|table| File::open(format!("/proc/{pid}/net/{table}")));
    let mut found = tables.into_iter().flatten();
    found.any(|table| !listening(BufReader::new(table), port).is_empty())
}

/// Inodes of the sockets that listen on a port, from /proc/net/tcp or tcp6.
///
/// Listening sockets come first there. What follows may be thousands of connections that are
/// being forgotten, and takes milliseconds to read.
fn listening(table: impl BufRead, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let lines = table.lines().skip(1).map_while(Result::ok);
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let field = |index: usize| fields.get(index).copied().unwrap_or_default();
            let inode = field(1).ends_with(&suffix).then(|| field(9).parse().ok());
            (field(3) == LISTEN, inode.flatten())
        })
        .take_while(|(listens, _)| *listens)
        .filter_map(|(_, inode)| inode)
        .collect()
}

fn holds(pid: pid_t, sockets: &[String]) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|target| {
            sockets
                .iter()
                .any(|socket| target.as_os_str() == socket.as_str())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// A process that another test is just forking still holds every socket of this one.
    fn soon(holds: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        std::iter::repeat_with(holds)
            .inspect(|_| std::thread::sleep(Duration::from_millis(1)))
            .take_while(|_| start.elapsed() < Duration::from_secs(60))
            .any(|held| held)
    }

    #[test]
    fn ports_are_unique_free_and_run_out() {
        let mut random = Random::new(3);
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let busy = taken.local_addr().unwrap().port();
        let mut ports = Ports::new((busy, busy), &mut random);
        assert_eq!(ports.take(), None);
        drop(taken);
        assert!(soon(|| ports.take() == Some(busy)));
        assert_eq!(ports.take(), None);
        ports.give_back(busy);
        assert!(soon(|| ports.take() == Some(busy)));
    }

    #[test]
    fn a_listener_is_known_by_its_process() {
        let own = std::process::id() as pid_t;
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listener(port, &[own]), Listener::Ours);
        assert_eq!(listener(port, &[]), Listener::None);
        drop(socket);
        assert!(soon(|| listener(port, &[own]) == Listener::None));
    }

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx rx tr tm retr uid timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 4711 1 0 100 0 0 10 0\n\
            1: 0100007F:1F91 00000000:0000 0A 0:0 00:0 0 0 0 4713 1 0 100 0 0 10 0\n\
            2: 0100007F:1F90 0100007F:9999 01 0:0 00:0 0 0 0 4712 1 0 100 0 0 10 0\n";
        assert_eq!(listening(table.as_bytes(), 0x1f90), [4711]);
    }
}
