//! `ends`: several programs that work together, as one; two of them with a network between them.
//!
//! The process that runs here makes the network, starts each end when the one before it listens,
//! and waits for all. A network is two namespaces and a pair of devices, in a user namespace of its
//! own: nobody needs rights for that, and it is gone with the last process.

mod link;

use crate::ports;
use crate::processes::kill::kill;
use libc::pid_t;
use link::Link;
use rustix::process::{getgid, getuid, wait, Pid, WaitOptions, WaitStatus};
use rustix::thread::{move_into_link_name_space, unshare_unsafe, LinkNameSpaceType, UnshareFlags};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};

const FAILED: i32 = 125;
const LOOK: Duration = Duration::from_micros(500);
const GRACE: Duration = Duration::from_secs(2);
const STARTING: Duration = Duration::from_secs(20);

/// One program: its words, its CPUs (none: those of this process), the port that it listens on
/// before the next one begins (0: it need not), and whether it runs until the others have ended.
#[derive(Clone, Debug)]
pub struct End {
    pub words: Vec<OsString>,
    pub cpus: Vec<usize>,
    pub port: u16,
    pub serves: bool,
}

/// Between two ends: bits per second (0: as fast as it goes), and bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub rate_bits: u64,
    pub mtu: u32,
}

/// Runs all ends; the exit status of the first that failed, or 128 and its signal.
pub fn ends(ends: &[End], network: Option<Network>) -> i32 {
    match run(ends, network) {
        Ok(status) => status,
        Err(text) => {
            eprintln!("ensign-meter ends: {text}");
            FAILED
        }
    }
}

struct Running {
    pid: Pid,
    name: String,
    serves: bool,
}

fn run(ends: &[End], network: Option<Network>) -> Result<i32, String> {
    let places = match network {
        None => None,
        Some(_) if ends.len() != 2 => return Err("a network is between two ends".to_owned()),
        Some(network) => Some(places(network).map_err(|why| format!("no network: {why}"))?),
    };
    let mut running = Vec::new();
    let started = ends.iter().enumerate().try_for_each(|(index, end)| {
        let place = places.as_ref().map(|places| &places[index]);
        let pid = start(end, place)?;
        let name = end.words[0].to_string_lossy().into_owned();
        running.push(Running {
            pid,
            name,
            serves: end.serves,
        });
        await_port(end, pid)
    });
    let status = started.map_or_else(Err, |()| await_all(&mut running));
    for left in &running {
        kill(left.pid.as_raw_pid(), libc::SIGKILL);
    }
    while !running.is_empty() && matches!(wait(WaitOptions::empty()), Ok(Some(_))) {}
    status
}

/// The network namespaces of both ends, as files that hold them.
fn places(network: Network) -> Result<[File; 2], String> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    enter_new(
        UnshareFlags::NEWUSER | UnshareFlags::NEWNET,
        "user and network namespaces",
    )?;
    // By whose numbers files are reached: the same as before.
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in maps {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).map_err(|error| format!("{path}: {error}"))?;
    }
    let first = own_network()?;
    enter_new(UnshareFlags::NEWNET, "network namespaces")?;
    let second = own_network()?;
    let said = |error: io::Error| format!("the devices between both ends: {error}");
    let mut link = Link::open().map_err(said)?;
    link.pair(&first).map_err(said)?;
    link.configure(2, network).map_err(said)?;
    enter(&first)?;
    let mut link = Link::open().map_err(said)?;
    link.configure(1, network).map_err(said)?;
    Ok([first, second])
}

fn enter_new(spaces: UnshareFlags, what: &str) -> Result<(), String> {
    // SAFETY: descriptors stay what they are.
    let entered = unsafe { unshare_unsafe(spaces) };
    entered.map_err(|error| format!("this user may make no {what} here ({error})"))
}

fn own_network() -> Result<File, String> {
    File::open("/proc/self/ns/net").map_err(|error| format!("/proc/self/ns/net: {error}"))
}

fn enter(place: &File) -> Result<(), String> {
    let network = Some(LinkNameSpaceType::Network);
    move_into_link_name_space(place.as_fd(), network)
        .map_err(|error| format!("a network namespace cannot be entered: {error}"))
}

/// What is started is where this process is: so it goes there first, and to the end's CPUs.
fn start(end: &End, place: Option<&File>) -> Result<Pid, String> {
    if let Some(place) = place {
        enter(place)?;
    }
    let before = ensign_host::cpus::own_cpus();
    let said = |error: io::Error| format!("{:?}: {error}", end.words[0]);
    if !end.cpus.is_empty() {
        ensign_host::cpus::keep_to(&end.cpus).map_err(said)?;
    }
    let child = Command::new(&end.words[0])
        .args(&end.words[1..])
        .spawn()
        .map_err(said)?;
    if let (false, Some(before)) = (end.cpus.is_empty(), before) {
        ensign_host::cpus::keep_to_set(&before).map_err(said)?;
    }
    Pid::from_raw(child.id() as pid_t).ok_or_else(|| "a process without a number".to_owned())
}

/// Until it listens, or has ended: that is judged later.
fn await_port(end: &End, pid: Pid) -> Result<(), String> {
    let start = Instant::now();
    while end.port != 0 && !ports::is_listened_to(end.port, pid.as_raw_pid()) {
        let ended = rustix::process::waitid(
            rustix::process::WaitId::Pid(pid),
            rustix::process::WaitIdOptions::EXITED
                | rustix::process::WaitIdOptions::NOHANG
                | rustix::process::WaitIdOptions::NOWAIT,
        );
        if matches!(ended, Ok(Some(_))) {
            return Ok(());
        }
        if start.elapsed() > STARTING {
            let (name, port) = (&end.words[0], end.port);
            return Err(format!(
                "{name:?} does not listen on port {port} after 20 s"
            ));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Waits for all; who serves is asked to end when the others have.
fn await_all(running: &mut Vec<Running>) -> Result<i32, String> {
    while running.iter().any(|end| !end.serves) {
        let status = next_to_end(running, WaitOptions::empty())?;
        if let Some(status) = status.filter(|&status| status != 0) {
            return Ok(status);
        }
    }
    for end in running.iter() {
        kill(end.pid.as_raw_pid(), libc::SIGTERM);
    }
    let asked = Instant::now();
    while !running.is_empty() && asked.elapsed() < GRACE {
        next_to_end(running, WaitOptions::NOHANG)?;
        std::thread::sleep(LOOK);
    }
    Ok(0)
}

/// The status of an end that has ended, said where it is none of success; None: none has.
fn next_to_end(running: &mut Vec<Running>, how: WaitOptions) -> Result<Option<i32>, String> {
    let ended = wait(how).map_err(|error| format!("waiting: {error}"))?;
    let Some((pid, status)) = ended else {
        return Ok(None);
    };
    let Some(index) = running.iter().position(|end| end.pid == pid) else {
        return Ok(Some(0));
    };
    let end = running.swap_remove(index);
    let (code, how) = how_ended(status);
    let last = end.serves && running.iter().all(|other| other.serves);
    if code != 0 && !last {
        eprintln!("ensign-meter ends: {} {how}", end.name);
    }
    Ok(Some(code))
}

fn how_ended(status: WaitStatus) -> (i32, String) {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => (code, format!("exited with status {code}")),
        (None, Some(signal)) => (128 + signal, format!("was ended by signal {signal}")),
        (None, None) => (FAILED, "ended".to_owned()),
    }
}
