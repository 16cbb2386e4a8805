//! Starts the meter, reads its records, and sees whether anything is left of a run.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

pub mod fake_server;

use serde_json::{json, Value};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a busy machine; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn meter() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ensign-meter"))
}

/// The ways to stop a variant that this machine has: signals always.
pub fn freezers() -> Vec<&'static str> {
    let output = meter().arg("probe").output().expect("the probe runs");
    let probe: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    if probe["freezer"] == "cgroup" {
        vec!["cgroup", "signal"]
    } else {
        vec!["signal"]
    }
}

/// A folder for one test, and a number that no other process has on its command line.
pub struct Place {
    pub dir: PathBuf,
    pub mark: String,
}

static PLACES: AtomicU32 = AtomicU32::new(0);

impl Place {
    pub fn new() -> Place {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}.{number:03}", 70_000_000 + std::process::id());
        let dir = std::env::temp_dir().join(format!("meter-test-{mark}"));
        fs::create_dir_all(dir.join("scratch")).unwrap();
        Place { dir, mark }
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_default()
    }

    /// A command that sleeps (nearly) for ever and can be told from all others.
    pub fn sleeper(&self) -> String {
        format!("sleep {}", self.mark)
    }

    pub fn request(&self, freezer: &str, more: Value) -> Value {
        let mut request = json!({
            "schema": 1,
            "freezer": freezer,
            "scratch": self.path("scratch"),
        });
        merge(&mut request, more);
        request
    }

    fn marked(&self) -> Vec<i32> {
        pids_where(|cmdline| cmdline.contains(&self.mark) && cmdline.contains("sleep"))
    }

    pub fn await_sleepers(&self, count: usize) {
        await_that("the sleepers are there", || self.marked().len() >= count);
    }

    /// No process, no control group, no scratch folder: at once after an orderly end.
    pub fn assert_nothing_left(&self, pid: u32) {
        assert_eq!(self.marked(), Vec::<i32>::new(), "processes are left");
        let left: Vec<_> = fs::read_dir(self.dir.join("scratch")).unwrap().collect();
        assert!(left.is_empty(), "scratch holds {left:?}");
        assert_eq!(cgroups_of(pid), Vec::<PathBuf>::new());
    }

    /// The same, within some time: for a meter that was killed.
    pub fn await_nothing_left(&self, pid: u32) {
        await_that("nothing is left", || {
            let scratch = fs::read_dir(self.dir.join("scratch")).unwrap();
            self.marked().is_empty() && scratch.count() == 0 && cgroups_of(pid).is_empty()
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn merge(into: &mut Value, more: Value) {
    let Value::Object(more) = more else { return };
    for (key, value) in more {
        into[key] = value;
    }
}

pub fn pids_where(matches: impl Fn(&str) -> bool) -> Vec<i32> {
    let own = std::process::id() as i32;
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid: &i32| {
        let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        pid != own && matches(&String::from_utf8_lossy(&cmdline).replace('\0', " "))
    })
    .collect()
}

fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("ensign-{pid:07}-");
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(&prefix) {
                    found.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}

pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub struct Records {
    pub status: Option<i32>,
    pub pid: u32,
    pub all: Vec<Value>,
}

impl Records {
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.all
            .iter()
            .filter(|record| record["type"] == kind)
            .collect()
    }

    pub fn only(&self, kind: &str) -> &Value {
        let found = self.of(kind);
        assert_eq!(found.len(), 1, "{kind}: {:#?}", self.all);
        found[0]
    }

    pub fn role(&self, role: &str) -> Vec<&Value> {
        let outcomes = self.of("outcome").into_iter();
        outcomes.filter(|outcome| outcome["role"] == role).collect()
    }

    pub fn codes(&self, kind: &str) -> Vec<&str> {
        self.of(kind)
            .iter()
            .map(|record| record["code"].as_str().unwrap())
            .collect()
    }

    #[track_caller]
    pub fn assert_complete(&self) {
        assert_eq!(self.status, Some(0), "{:#?}", self.all);
        assert_eq!(self.all.last().unwrap()["status"], "complete");
    }

    #[track_caller]
    pub fn assert_failed(&self, status: i32, code: &str) {
        assert_eq!(self.codes("error"), [code], "{:#?}", self.all);
        assert_eq!(self.status, Some(status));
        assert_eq!(self.all.last().unwrap()["status"], "failed");
    }
}

/// A meter under way.
pub struct Running {
    child: Child,
    pub stdin: Option<ChildStdin>,
    out: BufReader<std::process::ChildStdout>,
    seen: Vec<Value>,
}

pub fn start(verb: &str, request: &Value) -> Running {
    let mut command = meter();
    command
        .arg(verb)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("the meter starts");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{request}\n").as_bytes()).unwrap();
    let hold = request["hold"] == true;
    Running {
        out: BufReader::new(child.stdout.take().unwrap()),
        child,
        stdin: hold.then_some(stdin),
        seen: Vec::new(),
    }
}

pub fn run(verb: &str, request: &Value) -> Records {
    start(verb, request).finish()
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the `start` record; gives the worker's process number.
    pub fn worker(&mut self) -> i32 {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        let start: Value = serde_json::from_str(&line).unwrap();
        let pid = start["pid"].as_i64().unwrap() as i32;
        self.seen.push(start);
        pid
    }

    /// Reads nothing for a while, then a page at a time with naps; gives how many bytes.
    pub fn read_slowly(&mut self, begin: Duration, nap: Duration) -> usize {
        std::thread::sleep(begin);
        let mut text = Vec::new();
        let mut page = [0u8; 4096];
        while let Ok(length @ 1..) = self.out.get_mut().read(&mut page) {
            text.extend(&page[..length]);
            std::thread::sleep(nap);
        }
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        self.seen
            .extend(lines.map(|line| serde_json::from_slice(line).expect("a whole record")));
        text.len()
    }

    pub fn signal(&self, signal: i32) {
        signal_to(self.pid() as i32, signal);
    }

    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "the meter does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn finish(mut self) -> Records {
        let pid = self.pid();
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        let status = self.wait().code();
        let mut all = std::mem::take(&mut self.seen);
        all.extend(
            text.lines()
                .map(|line| serde_json::from_str(line).expect(line)),
        );
        Records { status, pid, all }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal_to(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "no process {pid}");
}

pub fn sh(script: &str) -> Value {
    json!({"argv": ["sh", "-c", script]})
}

pub fn variant(name: &str, program: Value) -> Value {
    json!({"name": name, "program": program})
}

/// A shell loop that is busy for a while: some slices, whatever the machine.
pub fn busy(rounds: u32) -> String {
    format!("i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done")
}

pub fn exists(path: &str) -> bool {
    Path::new(path).exists()
}
