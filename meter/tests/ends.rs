//! `ends`: programs that work together, as one.

use std::process::{Command, Output};
use std::time::Instant;

const LISTENER: &str = "
import socket, sys, time
time.sleep(0.2)
server = socket.create_server(('0.0.0.0', int(sys.argv[1])))
peer, address = server.accept()
received = 0
while data := peer.recv(1 << 16):
    received += len(data)
print('received', received, 'from', address[0], flush=True)
";
const SENDER: &str = "
import os, socket, sys
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
peer.sendall(bytes(int(sys.argv[3])))
print('cpus', sorted(os.sched_getaffinity(0)), flush=True)
";

fn ends(options: &[&str], each: &[&[&str]]) -> Output {
    let counts = each.iter().map(|words| format!("--words={}", words.len()));
    Command::new(env!("CARGO_BIN_EXE_ensign-meter"))
        .arg("ends")
        .args(counts)
        .args(options)
        .arg("--")
        .args(each.iter().flat_map(|words| words.iter()))
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// What this machine forbids is no mistake of ours.
fn is_refused(output: &Output) -> bool {
    said(output).contains("this user may make no")
}

fn free_port() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port().to_string()
}

#[test]
fn the_second_begins_when_the_first_listens() {
    let port = free_port();
    let (listener, sender) = (
        ["python3", "-c", LISTENER, &port],
        ["python3", "-c", SENDER, "127.0.0.1", &port, "5000"],
    );
    let options = [&format!("--port={port}"), "--port=0", "--cpus=", "--cpus=0"];
    let output = ends(&options, &[&listener, &sender]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("received 5000 from 127.0.0.1"), "{text}");
    assert!(text.contains("cpus [0]"), "{text}");
}

#[test]
fn a_network_holds_its_rate_and_is_of_its_own() {
    const BYTES: u64 = 2_000_000;
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let bytes = BYTES.to_string();
    let (listener, sender) = (
        ["python3", "-c", LISTENER, &port],
        ["python3", "-c", SENDER, "10.77.0.1", &port, &bytes],
    );
    let options = [&format!("--port={port}"), "--port=0", "--rate=20000000"];
    let start = Instant::now();
    let output = ends(&options, &[&listener, &sender]);
    if is_refused(&output) {
        return;
    }
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains(&format!("received {BYTES} from 10.77.0.2")),
        "{text}"
    );
    // 0.8 s at that rate, but for what the bucket lets pass at once and the queue holds.
    assert!(start.elapsed().as_secs_f64() > 0.2, "faster than its rate");
}

#[test]
fn who_serves_is_ended_with_the_others() {
    let start = Instant::now();
    let output = ends(
        &["--serves=true", "--serves=false"],
        &[&["sleep", "600"], &["sh", "-c", "echo done"]],
    );
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "done\n");
    assert!(start.elapsed().as_secs() < 300);
}

#[test]
fn the_first_that_fails_ends_the_others_and_gives_its_status() {
    for (script, status, words) in [
        ("exit 7", 7, "sh exited with status 7"),
        ("kill -9 $$", 128 + 9, "sh was ended by signal 9"),
    ] {
        let output = ends(&[], &[&["sleep", "600"], &["sh", "-c", script]]);
        assert_eq!(output.status.code(), Some(status));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
fn mistakes_are_said() {
    type Case<'a> = (&'a [&'a str], &'a [&'a [&'a str]], &'a str);
    let cases: [Case; 3] = [
        (&[], &[&["true"], &["/nowhere/program"]], "No such file"),
        (&["--rate=0"], &[&["true"]], "between two ends"),
        (&["--words=9"], &[&["true"]], "the words or CPUs are not"),
    ];
    for (options, each, words) in cases {
        let output = ends(options, each);
        assert_eq!(output.status.code(), Some(125));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}
