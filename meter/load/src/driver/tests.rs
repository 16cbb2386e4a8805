use super::*;
use ensign_host::clock;
use fake_server::{reply, Answer, FakeServer};
use serde_json::{json, Value};
use std::sync::atomic::AtomicU64;

#[path = "../../../tests/common/fake_server.rs"]
mod fake_server;

const SLICE_NS: u64 = 2_000_000;

fn drive(change: Value) -> Drive {
    let mut drive = json!({
        "connections": 5,
        "operations": 1003,
        "pipeline": 4,
        "data": {"sizes": [0, 50]},
        "commands": [{"argv": ["SET", "{key}", "{data}"], "keys": {"last": 99}, "reply": "status"}],
    });
    for (key, value) in change.as_object().unwrap() {
        drive[key] = value.clone();
    }
    let drive: Drive = serde_json::from_value(drive).unwrap();
    assert_eq!(drive.problems(), []);
    drive
}

fn connect(server: &FakeServer, change: Value) -> Driver {
    let waiter = Waiter::new().unwrap();
    let driver = Driver::connect(&drive(change), server.address, None, &waiter).unwrap();
    // The shares watch its descriptor.
    std::mem::forget(waiter);
    driver
}

fn text(error: DriveError) -> String {
    match error {
        DriveError::Failed { text, .. } => text,
        DriveError::Interrupted => "interrupted".into(),
    }
}

#[test]
fn slices_leave_nothing_in_flight_and_add_up() {
    for threads in [1, 3] {
        let server = FakeServer::store();
        let mut driver = connect(&server, json!({"threads": threads, "operations": 5_003}));
        let mut sum = 0;
        while !driver.is_finished() {
            let burst = driver.run(Some(SLICE_NS), None).unwrap();
            sum += burst.operations;
            assert_eq!(server.count(), sum);
            assert!(burst.wall_ns > 0 && burst.load_cpu_ns > 0);
        }
        assert_eq!((sum, driver.report().operations), (5_003, 5_003));
        let more = driver.run(Some(SLICE_NS), None).unwrap();
        assert_eq!((more.operations, more.wall_ns), (0, 0));
    }
}

#[test]
fn connections_send_in_turn() {
    for (threads, at_once) in [(1, 2), (2, 2), (1, 5)] {
        let server = FakeServer::store();
        let change = json!({"threads": threads, "at_once": at_once, "operations": 40});
        let mut driver = connect(&server, change);
        let mut bursts = Vec::new();
        while !driver.is_finished() {
            bursts.push(driver.run(Some(1), None).unwrap().operations);
        }
        // 40 operations are 8 for each of the 5 connections, 4 at a time.
        let senders: Vec<u64> = bursts.iter().map(|operations| operations / 4).collect();
        assert_eq!(senders.iter().sum::<u64>(), 10);
        assert!(senders[0] < at_once + threads, "{senders:?}");
        let sent: Vec<usize> = server.requests().iter().map(Vec::len).collect();
        assert_eq!(sent, [8; 5]);
    }
}

#[test]
fn few_operations_are_whole_batches_of_some_connections() {
    let lengths = |change: Value| {
        let server = FakeServer::store();
        connect(&server, change).run(None, None).unwrap();
        let mut lengths: Vec<usize> = server.requests().iter().map(Vec::len).collect();
        lengths.resize(5, 0);
        lengths
    };
    assert_eq!(lengths(json!({"operations": 13})), [5, 4, 4, 0, 0]);
    assert_eq!(lengths(json!({"operations": 3})), [3, 0, 0, 0, 0]);
    let keys = json!({"last": 99, "pattern": "parallel"});
    let commands = json!([{"argv": ["SET", "{key}", "{data}"], "keys": keys}]);
    let cut = json!({"operations": 13, "commands": commands});
    assert_eq!(lengths(cut), [3, 3, 3, 2, 2]);
}

#[test]
fn a_slice_ends_though_operations_are_left() {
    let server = FakeServer::store();
    let mut driver = connect(&server, json!({"operations": 1u64 << 40}));
    let burst = driver.run(Some(SLICE_NS), None).unwrap();
    assert!(burst.operations > 0 && burst.wall_ns >= SLICE_NS && !driver.is_finished());
}

#[test]
fn what_a_connection_sends_does_not_depend_on_timing() {
    let sent = |change: Value, slice_ns: Option<u64>| {
        let server = FakeServer::store();
        let mut driver = connect(&server, change);
        while !driver.is_finished() {
            driver.run(slice_ns, None).unwrap();
        }
        server.requests()
    };
    let whole = sent(json!({"seed": 7}), None);
    assert_eq!(whole, sent(json!({"seed": 7}), Some(300_000)));
    assert_eq!(whole, sent(json!({"seed": 7, "threads": 3}), None));
    assert_eq!(whole, sent(json!({"seed": 7, "rate_per_s": 1e6}), None));
    assert_eq!(whole, sent(json!({"seed": 7, "at_once": 2}), Some(1)));
    assert_ne!(whole, sent(json!({"seed": 8}), None));
    let lengths: Vec<usize> = whole.iter().map(Vec::len).collect();
    assert_eq!(lengths, [201, 201, 201, 200, 200]);
}

#[test]
fn parallel_connections_write_each_key_once() {
    let server = FakeServer::store();
    let keys = json!({"prefix": "k", "last": 1002, "pattern": "parallel"});
    let commands = json!([{"argv": ["SET", "{key}", "{data}"], "keys": keys}]);
    connect(&server, json!({"commands": commands, "threads": 2}))
        .run(None, None)
        .unwrap();
    let mut keys: Vec<String> = server
        .requests()
        .iter()
        .flatten()
        .map(|argv| argv[1].clone())
        .collect();
    keys.sort_by_key(|key| key[1..].parse::<u64>().unwrap());
    let all: Vec<String> = (0..1003).map(|number| format!("k{number}")).collect();
    assert_eq!(keys, all);
}

#[test]
fn more_of_the_same_counts_nowhere() {
    let server = FakeServer::store();
    let mut driver = connect(&server, json!({"latency": true}));
    driver.run(None, None).unwrap();
    let report = driver.report();
    assert_eq!(report.latency_ns.unwrap().count, 1003);
    for _ in 0..2 {
        driver.refill();
        assert!(!driver.is_finished());
        assert_eq!(driver.run(None, None).unwrap().operations, 1003);
    }
    assert_eq!(driver.report(), report);
    assert_eq!(server.count(), 3 * 1003);
}

#[test]
fn large_values_arrive_whole_both_ways() {
    let server = FakeServer::store();
    let keys = json!({"last": 3, "pattern": "parallel"});
    let change = |command: Value| {
        json!({
            "connections": 1, "operations": 4, "pipeline": 4, "commands": [command],
            "data": {"size": 3_000_000, "random": true},
        })
    };
    let set = json!({"argv": ["SET", "{key}", "{data}"], "keys": keys});
    let get = json!({"argv": ["GET", "{key}"], "keys": keys, "value": true});
    let mut writer = connect(&server, change(set));
    writer.run(None, None).unwrap();
    assert!(writer.report().bytes_sent > 12_000_000);
    let mut reader = connect(&server, change(get));
    reader.run(None, None).unwrap();
    assert!(reader.report().bytes_received > 12_000_000);
}

#[test]
fn an_open_loop_keeps_to_its_times() {
    let server = FakeServer::store();
    let mut driver = connect(&server, json!({"operations": 41, "rate_per_s": 2000}));
    let mut wall_ns = 0;
    while !driver.is_finished() {
        wall_ns += driver.run(Some(SLICE_NS), None).unwrap().wall_ns;
        // The clock of intended times stands still meanwhile.
        clock::sleep_ns(5_000_000);
    }
    // The last one is due 40 intervals after the first.
    assert!(wall_ns >= 40 * 500_000, "{wall_ns}");
}

#[test]
fn an_open_loop_counts_the_waiting_that_a_stall_causes() {
    let stalled = AtomicU64::new(0);
    let server = FakeServer::start(move |_, _| {
        if stalled.fetch_add(1, Ordering::Relaxed) == 0 {
            clock::sleep_ns(50_000_000);
        }
        reply("+OK\r\n")
    });
    let change = json!({
        "connections": 1, "pipeline": 1, "operations": 20, "rate_per_s": 1000, "latency": true,
    });
    let mut driver = connect(&server, change);
    driver.run(None, None).unwrap();
    // Operation 10 was due after 10 ms, and cannot be sent before 50 ms.
    let latency = driver.report().latency_ns.unwrap();
    assert!(latency.p50 >= 39_000_000, "{latency:?}");
}

#[test]
fn a_server_that_closes_between_slices_is_noticed() {
    let server = FakeServer::start(|_, _| Answer::Last(b"+OK\r\n".to_vec()));
    let change = json!({"connections": 1, "pipeline": 1, "operations": 2});
    let mut driver = connect(&server, change);
    driver.run(Some(1), None).unwrap();
    let error = text(driver.run(Some(1), None).unwrap_err());
    assert!(
        error.contains("the connection was lost before the reply to `SET"),
        "{error}"
    );
}

#[test]
fn one_thread_that_fails_ends_the_others() {
    let server = FakeServer::start(|connection, argv| {
        let wrong = connection == 1 && argv[0] == "SET";
        reply(if wrong { "-ERR wrong\r\n" } else { "+OK\r\n" })
    });
    let change = json!({"connections": 2, "threads": 2, "operations": 1u64 << 40});
    let error = text(connect(&server, change).run(None, None).unwrap_err());
    assert!(error.ends_with("got an error: ERR wrong"), "{error}");
}
