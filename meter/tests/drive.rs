//! `ensign-meter drive` against servers that answer rightly and wrongly.

mod common;

use common::fake_server::{reply, Answer, FakeServer};
use common::{run, start, Records};
use serde_json::{json, Value};
use std::net::SocketAddr;

const DEADLINE_NS: u64 = 200_000_000;

fn request(address: SocketAddr, change: Value) -> Value {
    let mut drive = json!({
        "connections": 2,
        "operations": 1000,
        "pipeline": 3,
        "data": {"size": 20},
        "commands": [{"argv": ["GET", "{key}"], "keys": {"prefix": "k", "last": 9}}],
    });
    for (key, value) in change.as_object().unwrap() {
        drive[key] = value.clone();
    }
    json!({"schema": 1, "address": address, "drive": drive})
}

fn driven(server: &FakeServer, change: Value) -> Records {
    run("drive", &request(server.address, change))
}

/// The text of the failure.
#[track_caller]
fn failure(server: &FakeServer, change: Value, code: &str) -> String {
    let records = driven(server, change);
    records.assert_failed(3, code);
    assert!(records.of("drive").is_empty());
    records.only("error")["text"].as_str().unwrap().into()
}

fn always(answer: &'static str) -> FakeServer {
    FakeServer::start(move |_, _| reply(answer))
}

#[test]
fn what_one_drive_writes_another_verifies() {
    let server = FakeServer::store();
    let keys = json!({"prefix": "memtier-", "last": 499, "pattern": "parallel", "width": 6});
    let data = json!({"weighted": [[10, 1], [200, 2]], "random": true});
    let set = json!({"argv": ["SET", "{key}", "{data}"], "keys": keys, "reply": "status"});
    let records = driven(
        &server,
        json!({"operations": 500, "data": data, "commands": [set]}),
    );
    records.assert_complete();
    assert_eq!(records.only("start")["mode"], "drive");
    assert_eq!(records.only("drive")["operations"], 500);
    let get = json!({"argv": ["GET", "{key}"], "keys": keys, "value": true});
    let change = json!({
        "operations": 5000, "protocol": 3, "latency": true, "threads": 2, "data": data,
        "commands": [get],
    });
    let records = driven(&server, change);
    records.assert_complete();
    let total = records.only("drive");
    assert_eq!(total["latency_ns"]["count"], 5000);
    for key in ["wall_ns", "load_cpu_ns", "bytes_sent", "bytes_received"] {
        assert!(total[key].as_u64().unwrap() > 0, "{key}");
    }
    let other = json!({"size": 10});
    let get = json!([{"argv": ["GET", "{key}"], "keys": keys, "value": true}]);
    let text = failure(&server, json!({"data": other, "commands": get}), "reply");
    assert!(
        text.contains("got 200 bytes; the data of its key has 10"),
        "{text}"
    );
}

#[test]
fn an_error_reply_is_quoted_with_its_request() {
    let server = always("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    let text = failure(&server, json!({}), "reply");
    assert!(text.starts_with("`GET k"), "{text}");
    assert!(
        text.ends_with("got an error: OOM command not allowed when used memory > 'maxmemory'."),
        "{text}"
    );
}

#[test]
fn a_reply_cut_in_half_is_told_from_a_lost_connection() {
    let half = FakeServer::start(|_, _| Answer::Last(b"$20\r\nabc".to_vec()));
    let text = failure(&half, json!({}), "reply");
    assert!(
        text.starts_with("the connection ended inside a reply: that to `GET k"),
        "{text}"
    );
    let none = FakeServer::start(|_, _| Answer::Last(Vec::new()));
    let text = failure(&none, json!({"pipeline": 1}), "reply");
    assert!(
        text.starts_with("the connection was lost before the reply to `GET k"),
        "{text}"
    );
}

#[test]
fn a_reply_of_another_kind_is_an_error_where_one_is_demanded() {
    let demand = |kind: &str| json!({"commands": [{"argv": ["INCR", "n"], "reply": kind}], "operations": 10});
    let text = failure(&always("+OK\r\n"), demand("integer"), "reply");
    assert_eq!(text, "`INCR n` got a status; wanted an integer");
    driven(&always(":5\r\n"), demand("integer")).assert_complete();
    driven(&always("_\r\n"), demand("nil")).assert_complete();
}

#[test]
fn another_value_of_the_right_length_is_found() {
    let get = json!([{"argv": ["GET", "{key}"], "keys": {"last": 9}, "value": true}]);
    let server = always("$20\r\nabcdefghijklmnopqrst\r\n");
    let text = failure(&server, json!({"commands": get}), "reply");
    assert!(
        text.contains("got other bytes than the data of its key"),
        "{text}"
    );
}

#[test]
fn what_is_no_protocol_is_said() {
    let text = failure(&always("HTTP/1.1 400 Bad Request\r\n"), json!({}), "reply");
    assert!(text.contains("malformed reply to `GET k"), "{text}");
    let text = failure(&always("+OK\r\n+OK\r\n"), json!({}), "reply");
    assert!(text.contains("nobody asked for"), "{text}");
}

#[test]
fn a_server_that_is_not_there_or_silent_ends_the_drive() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let records = run("drive", &request(address, json!({})));
    records.assert_failed(3, "not-ready");
    let text = records.only("error")["text"].as_str().unwrap();
    assert!(text.contains("refused"), "{text}");
    let server = FakeServer::start(|_, _| Answer::Nothing);
    let text = failure(&server, json!({"deadline_ns": DEADLINE_NS}), "deadline");
    assert!(
        text.contains("sent nothing for 0.2 s; 6 operations wait"),
        "{text}"
    );
    let change = json!({"deadline_ns": DEADLINE_NS, "protocol": 3});
    let text = failure(&server, change, "deadline");
    assert_eq!(text, "no reply to `HELLO 3` within 0.2 s");
}

#[test]
fn transactions_are_one_operation_and_checked_throughout() {
    let answers = |results: &'static str| {
        FakeServer::start(move |_, argv| {
            reply(match argv[0].as_str() {
                "MULTI" => "+OK\r\n",
                "EXEC" => results,
                _ => "+QUEUED\r\n",
            })
        })
    };
    let change = || {
        json!({
            "operations": 100,
            "commands": [{"transaction": [["INCR", "{key}"], ["LPUSH", "l", "{data}"]], "keys": {"last": 3}}],
        })
    };
    let server = answers("*2\r\n:1\r\n:2\r\n");
    let records = driven(&server, change());
    records.assert_complete();
    assert_eq!(records.only("drive")["operations"], 100);
    assert_eq!(server.count(), 400);
    for (results, part) in [
        (
            "*2\r\n:1\r\n-WRONGTYPE no list\r\n",
            "`EXEC` got an error inside its reply: WRONGTYPE no list",
        ),
        ("*-1\r\n", "`EXEC` got nil; wanted an array"),
        ("*1\r\n:1\r\n", "`EXEC` got 1 results; wanted 2"),
    ] {
        assert_eq!(failure(&answers(results), change(), "reply"), part);
    }
    let text = failure(&always("+OK\r\n"), change(), "reply");
    assert!(
        text.starts_with("`INCR ") && text.ends_with("another status than QUEUED"),
        "{text}"
    );
}

#[test]
fn what_is_sent_once_is_sent_first_and_checked() {
    const SHA1: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let server = FakeServer::start(|_, argv| {
        let loads = argv[0] == "SCRIPT";
        reply(if loads {
            format!("$40\r\n{SHA1}\r\n")
        } else {
            "+OK\r\n".into()
        })
    });
    let change = |source: &str| {
        json!({
            "init": [["FLUSHALL"]],
            "scripts": {"one": source},
            "operations": 4,
            "commands": [{"argv": ["EVALSHA", "{script:one}", "0"]}],
        })
    };
    driven(&server, change("return 1")).assert_complete();
    let first = &server.requests()[0];
    assert_eq!(first[0], ["FLUSHALL"]);
    assert_eq!(first[1], ["SCRIPT", "LOAD", "return 1"]);
    assert_eq!(first[2], ["EVALSHA", SHA1, "0"]);
    let text = failure(&server, change("return 2"), "reply");
    assert!(text.contains("`SCRIPT LOAD return 2` got"), "{text}");
    let text = failure(&always("-NOPERM no\r\n"), change("return 1"), "reply");
    assert_eq!(text, "`FLUSHALL` got an error: NOPERM no");
}

#[test]
fn pushes_and_attributes_of_resp3_are_no_replies() {
    let server = FakeServer::start(|_, argv| {
        reply(if argv[0] == "HELLO" {
            "%1\r\n+proto\r\n:3\r\n"
        } else {
            ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n|1\r\n+ttl\r\n:5\r\n$1\r\nv\r\n"
        })
    });
    let commands = json!([{"argv": ["GET", "k"], "reply": "bulk"}]);
    driven(&server, json!({"protocol": 3, "commands": commands})).assert_complete();
    let text = failure(&always("-NOPROTO no\r\n"), json!({"protocol": 3}), "reply");
    assert_eq!(text, "`HELLO 3` got an error: NOPROTO no");
}

#[test]
fn wrong_requests_are_refused() {
    for (address, change, part) in [
        ("192.0.2.1:6379", json!({}), "not of this machine"),
        ("localhost:6379", json!({}), "address"),
        (
            "127.0.0.1:1",
            json!({"connections": 0}),
            "/drive/connections: `connections`",
        ),
        ("127.0.0.1:1", json!({"pipline": 2}), "pipline"),
    ] {
        let mut wrong = request("127.0.0.1:1".parse().unwrap(), change);
        wrong["address"] = json!(address);
        let records = run("drive", &wrong);
        records.assert_failed(2, "request");
        let text = records.only("error")["text"].as_str().unwrap();
        assert!(text.contains(part), "{text}");
    }
    let server = FakeServer::store();
    let mut wrong = request(server.address, json!({}));
    wrong["cpus"] = json!([1000]);
    run("drive", &wrong).assert_failed(2, "request");
}

#[test]
fn a_drive_can_be_interrupted_at_any_time() {
    const LONG_NS: u64 = 3_600_000_000_000;
    let silent = FakeServer::start(|_, _| Answer::Nothing);
    let busy = FakeServer::store();
    for (server, change) in [
        (&silent, json!({"deadline_ns": LONG_NS, "protocol": 3})),
        (&silent, json!({"deadline_ns": LONG_NS})),
        (&busy, json!({"operations": 1u64 << 50})),
        (
            &busy,
            json!({"operations": 1u64 << 50, "rate_per_s": 100, "threads": 2}),
        ),
    ] {
        let before = server.count();
        let mut meter = start("drive", &request(server.address, change));
        meter.worker();
        common::await_that("it has begun", || server.count() > before);
        meter.signal(libc::SIGTERM);
        let records = meter.finish();
        assert_eq!(records.status, Some(4), "{:#?}", records.all);
        assert_eq!(records.only("end")["status"], "interrupted");
    }
}

#[test]
fn a_drive_ends_with_its_caller() {
    let server = FakeServer::store();
    let mut held = request(server.address, json!({"operations": 1u64 << 50}));
    held["hold"] = json!(true);
    let mut meter = start("drive", &held);
    meter.worker();
    common::await_that("it has begun", || server.count() > 0);
    meter.stdin = None;
    assert_eq!(meter.finish().status, Some(4));
}

#[test]
fn too_many_connections_for_this_process_are_said() {
    let server = FakeServer::store();
    let place = common::Place::new();
    let many = request(server.address, json!({"connections": 200}));
    std::fs::write(place.path("request"), many.to_string()).unwrap();
    let process = json!({
        "argv": [env!("CARGO_BIN_EXE_ensign-meter"), "drive"], "stdin": place.path("request"),
        "limits": {"open_files": 50},
    });
    let records = run(
        "exec",
        &place.request("auto", json!({ "process": process })),
    );
    records.assert_failed(3, "failed");
    let outcome = records.only("outcome");
    assert_eq!(outcome["exit"], 2);
    let said = outcome["stdout_tail"].as_str().unwrap();
    assert!(said.contains("may be open here"), "{said}");
}

#[test]
fn a_scan_follows_the_cursor_of_the_last_reply() {
    // Three steps of an iteration, over and over, of which the server knows nothing.
    let server = FakeServer::start(|_, argv| {
        let next = match argv[1].as_str() {
            "0" => "7",
            "7" => "18446744073709551615",
            _ => "0",
        };
        let size = next.len();
        reply(format!("*2\r\n${size}\r\n{next}\r\n*1\r\n$3\r\nkey\r\n"))
    });
    let commands = json!([{"argv": ["SCAN", "{cursor}"], "reply": "array"}]);
    let change = json!({"operations": 14, "pipeline": 1, "commands": commands});
    driven(&server, change.clone()).assert_complete();
    for requests in server.requests() {
        let sent: Vec<&str> = requests.iter().map(|argv| argv[1].as_str()).collect();
        let wanted = [
            "0",
            "7",
            "18446744073709551615",
            "0",
            "7",
            "18446744073709551615",
            "0",
        ];
        assert_eq!(sent, wanted);
    }
    let text = failure(&always("*1\r\n:5\r\n"), change.clone(), "reply");
    assert_eq!(text, "`SCAN 0` got a reply without a cursor");
    let mut more = change;
    more["pipeline"] = json!(2);
    driven(&server, more).assert_failed(2, "request");
}

#[test]
fn bytes_that_json_cannot_hold_are_sent() {
    let server = always("+OK\r\n");
    let commands = json!([{"argv": ["RESTORE", "k", "{hex:00ff}"]}]);
    driven(&server, json!({"operations": 2, "commands": commands})).assert_complete();
    assert_eq!(server.requests()[0][0][2], "\u{0}\u{ff}");
    let wrong = json!([{"argv": ["RESTORE", "{hex:0}"]}]);
    driven(&server, json!({"commands": wrong})).assert_failed(2, "request");
}

/// Servers that never send a whole reply, each in its way: the drive ends by its deadline.
#[test]
fn what_never_becomes_a_whole_reply_ends_by_the_deadline() {
    let endless = |head: &'static [u8], more: &'static [u8]| {
        FakeServer::start(move |_, _| Answer::Endless(head.to_vec(), more.repeat(10_000), 0))
    };
    let drip =
        FakeServer::start(|_, _| Answer::Endless(b"$1000000\r\n".to_vec(), b"x".to_vec(), 20));
    let cases = [
        ("drip", drip),
        ("array", endless(b"*4000000000\r\n", b":1\r\n")),
        ("pushes", endless(b"", b">2\r\n+a\r\n+b\r\n")),
        ("attributes", endless(b"", b"|1\r\n+a\r\n+b\r\n")),
        ("nested", endless(b"", b"*1\r\n")),
        ("line", endless(b"+", b"x")),
        ("number", endless(b"$", b"0")),
        ("text", endless(b"$4000000000\r\n", b"x")),
    ];
    for (name, server) in cases {
        for threads in [1, 2] {
            let change = json!({"deadline_ns": DEADLINE_NS, "threads": threads});
            let records = driven(&server, change);
            assert_eq!(records.status, Some(3), "{name}: {:#?}", records.all);
            let text = records.only("error")["text"].as_str().unwrap();
            assert!(
                !text.contains('\n') && text.contains("`GET k"),
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn a_flood_does_not_keep_a_drive_from_being_interrupted() {
    const LONG_NS: u64 = 3_600_000_000_000;
    let flood = FakeServer::start(|_, _| {
        Answer::Endless(
            b"*4000000000\r\n".to_vec(),
            b"$1\r\nx\r\n".repeat(10_000),
            0,
        )
    });
    for protocol in [2, 3] {
        let before = flood.count();
        let change = json!({"deadline_ns": LONG_NS, "protocol": protocol});
        let mut meter = start("drive", &request(flood.address, change));
        meter.worker();
        common::await_that("it has begun", || flood.count() > before);
        meter.signal(libc::SIGTERM);
        let records = meter.finish();
        assert_eq!(records.status, Some(4), "{:#?}", records.all);
    }
}

#[test]
fn a_drive_of_slow_replies_ends_within_its_time() {
    let slow = FakeServer::start(|_, _| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        reply("+OK\r\n")
    });
    let change = json!({"within_ns": DEADLINE_NS, "operations": 100_000, "pipeline": 1});
    let text = failure(&slow, change, "deadline");
    assert!(
        text.starts_with("the drive did not end within 0.2 s; "),
        "{text}"
    );
}

#[test]
fn a_long_string_has_its_deadline_for_each_stretch() {
    let long = FakeServer::start(|_, _| {
        let mut bytes = b"$200000000\r\n".to_vec();
        bytes.resize(bytes.len() + 200_000_000, b'x');
        bytes.extend(b"\r\n");
        reply(bytes)
    });
    let change = json!({"connections": 1, "operations": 2, "pipeline": 1});
    driven(&long, change).assert_complete();
}
