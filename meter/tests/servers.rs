//! Servers with load generators, written in a few lines of Python.

mod common;

use common::{freezers, run, Place, Records};
use serde_json::{json, Value};
use std::net::TcpListener;
use std::process::Command;

/// Answers each line with a line; `die` ends it, as does the end of its patience.
const SERVER: &str = r#"
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
print("listening", flush=True)
while True:
    peer, _ = server.accept()
    for line in peer.makefile():
        if line == "die\n":
            sys.exit("out of order")
        sum(range(2000))
        peer.sendall(b"ok\n")
"#;

const LOAD: &str = r#"
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
replies = peer.makefile()
word = sys.argv[3].encode() + b"\n"
for n in range(int(sys.argv[2])):
    peer.sendall(word)
    if not replies.readline():
        while word == b"die\n":
            pass
        sys.exit("no answer")
    print(f"{n + 1} requests\r", end="")
print()
sys.exit(int(sys.argv[4]))
"#;

fn python() -> String {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    String::from_utf8(output.expect("python3 is there").stdout)
        .unwrap()
        .trim()
        .into()
}

fn load(word: &str, status: &str) -> Value {
    json!({
        "process": {"argv": [python(), "-c", LOAD, "{port}", "300", word, status],
                    "deadline_ns": 20_000_000_000u64},
        "operations_pattern": "(\\d+) requests",
    })
}

fn server(name: &str) -> Value {
    json!({
        "name": name,
        "program": {"argv": [python(), "-c", SERVER, "{port}"]},
        "load": load("hello", "0"),
        "ready": {"deadline_ns": 20_000_000_000u64},
        "preload": [{"argv": [python(), "-c", LOAD, "{port}", "3", "fill", "0"]}],
    })
}

fn race(place: &Place, freezer: &str, variants: &[Value], more: Value) -> Records {
    let mut request = place.request(
        freezer,
        json!({"variants": variants, "slice_ns": 2_000_000}),
    );
    for (key, value) in more.as_object().unwrap() {
        request[key] = value.clone();
    }
    run("race", &request)
}

#[test]
fn servers_and_loads_are_accounted_apart() {
    for (freezer, mode) in freezers()
        .into_iter()
        .flat_map(|f| [(f, "interleaved"), (f, "alternating")])
    {
        let place = Place::new();
        let variants = [server("a"), server("b")];
        let records = race(
            &place,
            freezer,
            &variants,
            json!({"executions": 2, "mode": mode}),
        );
        records.assert_complete();
        for total in records.of("variant") {
            assert_eq!(total["operations"], 300);
            let cpu = |key: &str| total[key].as_u64().unwrap();
            assert!(
                cpu("cpu_ns") > 1_000_000 && cpu("load_cpu_ns") > 1_000_000,
                "{total}"
            );
            assert!(cpu("peak_memory_bytes") > 1_000_000);
        }
        assert_eq!(records.role("preload").len(), 4);
        let servers = records.role("server");
        assert_eq!(servers.len(), 4);
        assert!(servers.iter().all(|server| server["reason"] == "ended"));
        let slices = records.of("slice");
        let pairs = slices
            .windows(2)
            .filter(|pair| pair[0]["execution"] == pair[1]["execution"]);
        assert!(pairs.clone().count() > 0);
        assert!(pairs
            .into_iter()
            .all(|pair| pair[0]["variant"] != pair[1]["variant"]));
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_load_generator_may_write_its_count_into_a_file() {
    let written = LOAD.replace(
        "print()\n",
        "import json; json.dump({'ALL STATS': {'Count': n + 1}}, open(sys.argv[5], 'w'))\n",
    );
    let at = |pointer: &str| {
        let mut variant = server("a");
        variant["load"] = json!({
            "process": {"argv": [python(), "-c", written, "{port}", "250", "hello", "0",
                                 "{tmp}/count.json"]},
            "operations_json": {"file": "{tmp}/count.json", "pointer": pointer},
        });
        race(&Place::new(), "auto", &[variant], json!({}))
    };
    let records = at("/ALL STATS/Count");
    records.assert_complete();
    assert_eq!(records.only("variant")["operations"], 250);
    let records = at("/ALL STATS/Totals/Count");
    records.assert_failed(3, "operations-unknown");
    let text = records.only("error")["text"].as_str().unwrap().to_string();
    assert!(text.contains("wrote no number"), "{text}");
}

#[test]
fn a_server_may_say_that_it_is_ready() {
    let place = Place::new();
    let mut variant = server("a");
    variant["ready"]["output"] = json!("^listening");
    race(&place, "auto", &[variant], json!({})).assert_complete();
}

#[test]
fn a_dead_server_ends_its_load_generator() {
    for freezer in freezers() {
        let place = Place::new();
        let mut dying = server("dying");
        dying["load"] = load("die", "0");
        let argv = dying["load"]["process"]["argv"].as_array_mut().unwrap();
        argv.push(json!(place.mark));
        let records = race(&place, freezer, &[server("good"), dying], json!({}));
        records.assert_complete();
        let error = records.only("failure");
        assert_eq!(
            (&error["variant"], &error["code"]),
            (&json!("dying"), &json!("crashed"))
        );
        assert!(
            error["text"].as_str().unwrap().contains("out of order"),
            "{error}"
        );
        place.assert_nothing_left(records.pid);
        assert_eq!(
            common::pids_where(|line| line.contains(&place.mark)),
            Vec::<i32>::new()
        );
    }
}

#[test]
fn a_server_that_is_never_ready_is_given_up() {
    for freezer in freezers() {
        let place = Place::new();
        let mut variant = server("a");
        variant["program"] = common::sh(&format!("echo warming up {{port}}; {}", place.sleeper()));
        variant["ready"]["deadline_ns"] = json!(300_000_000);
        let records = race(&place, freezer, &[variant], json!({}));
        records.assert_failed(3, "not-ready");
        assert!(records.only("error")["text"]
            .as_str()
            .unwrap()
            .contains("warming up"));
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_server_that_ends_early_has_crashed() {
    let place = Place::new();
    let mut variant = server("a");
    variant["program"] = common::sh("echo bad option {port} >&2; exit 1");
    let records = race(&place, "auto", &[variant], json!({}));
    records.assert_failed(3, "crashed");
    assert!(records.only("error")["text"]
        .as_str()
        .unwrap()
        .contains("bad option"));
}

#[test]
fn a_load_generator_that_fails_fails_the_race() {
    for freezer in freezers() {
        let place = Place::new();
        let mut variant = server("a");
        variant["load"] = load("hello", "9");
        let records = race(&place, freezer, &[variant], json!({}));
        records.assert_failed(3, "load-failed");
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_count_that_is_not_there_is_an_error() {
    let place = Place::new();
    let mut variant = server("a");
    variant["load"]["operations_pattern"] = json!("(\\d+) cakes");
    race(&place, "auto", &[variant], json!({})).assert_failed(3, "operations-unknown");
}

#[test]
fn taken_ports_are_passed_over_until_there_are_none() {
    let place = Place::new();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let records = race(
        &place,
        "auto",
        &[server("a")],
        json!({"ports": [port, port]}),
    );
    records.assert_failed(2, "port-in-use");
    place.assert_nothing_left(records.pid);
}

#[test]
fn a_server_that_finds_its_port_taken_gets_another() {
    let place = Place::new();
    let flag = place.path("flag");
    let python = python();
    let script = format!(
        "if [ ! -e {flag} ]; then touch {flag}; echo Address already in use >&2; exit 1; fi; \
         exec {python} -c \"$0\" {{port}}"
    );
    let mut variant = server("a");
    variant["program"] = json!({"argv": ["sh", "-c", script, SERVER]});
    let records = race(&place, "auto", &[variant], json!({}));
    records.assert_complete();
    let servers = records.role("server");
    assert_eq!(servers.len(), 2);
    assert_ne!(servers[0]["argv"], servers[1]["argv"]);
}

#[test]
fn servers_need_a_way_to_be_ready() {
    let place = Place::new();
    let mut variant = server("a");
    variant["program"] = common::sh("sleep 1");
    race(&place, "auto", &[variant], json!({})).assert_failed(2, "request");
}

#[test]
fn servers_that_fail_in_any_phase_leave_the_others_racing() {
    let bad = |change: &dyn Fn(&mut Value)| {
        let mut variant = server("bad");
        change(&mut variant);
        variant
    };
    let deaf = bad(&|variant| {
        variant["program"] = common::sh("echo deaf {port}; sleep 30");
        variant["ready"]["deadline_ns"] = json!(200_000_000);
    });
    let early = bad(&|variant| variant["program"] = common::sh("echo {port}; kill -ABRT $$"));
    let empty = bad(&|variant| variant["preload"] = json!([common::sh("exit 6")]));
    let refused = bad(&|variant| variant["load"] = load("hello", "9"));
    let uncounted = bad(&|variant| variant["load"]["operations_pattern"] = json!("(\\d+) cakes"));
    for (variant, code, mode) in [
        (deaf, "not-ready", "interleaved"),
        (early, "crashed", "alternating"),
        (empty, "failed", "interleaved"),
        (refused.clone(), "load-failed", "interleaved"),
        (refused, "load-failed", "alternating"),
        (uncounted, "operations-unknown", "interleaved"),
    ] {
        let place = Place::new();
        let more = json!({"executions": 2, "mode": mode});
        let records = race(&place, "auto", &[server("good"), variant], more);
        records.assert_complete();
        assert_eq!(records.codes("failure"), [code]);
        assert_eq!(records.of("variant").len(), 2);
        place.assert_nothing_left(records.pid);
    }
}
