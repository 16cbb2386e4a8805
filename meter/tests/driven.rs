//! Servers under the meter's own load, slice by slice.

mod common;

use common::{freezers, run, Place, Records};
use serde_json::{json, Value};

/// A key-value server in a few lines: SET, GET, INCR, and three that misbehave.
const SERVER: &str = r#"
import selectors, socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen(64)
watch = selectors.DefaultSelector()
watch.register(server, selectors.EVENT_READ)
store, pending = {}, {}
def answer(words):
    name = words[0]
    if name == b"SET":
        store[words[1]] = words[2]
        return b"+OK\r\n"
    if name == b"GET":
        value = store.get(words[1])
        return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)
    if name == b"INCR":
        store[words[1]] = store.get(words[1], 0) + 1
        return b":%d\r\n" % store[words[1]]
    if name == b"FULL" and store.setdefault(b"asked", []).append(0) is None and len(store[b"asked"]) < 50:
        return b"+OK\r\n"
    if name == b"DIE":
        sys.exit("out of order")
    if name == b"HALF":
        return None
    return b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
def requests(data):
    while data.startswith(b"*") and b"\r\n" in data:
        head, rest = data.split(b"\r\n", 1)
        words = []
        for _ in range(int(head[1:])):
            if b"\r\n" not in rest:
                return data
            size, rest = rest.split(b"\r\n", 1)
            length = int(size[1:])
            if len(rest) < length + 2:
                return data
            words.append(rest[:length])
            rest = rest[length + 2:]
        data = rest
        yield words
    return data
while True:
    for key, _ in watch.select():
        if key.fileobj is server:
            peer, _ = server.accept()
            watch.register(peer, selectors.EVENT_READ)
            pending[peer] = b""
            continue
        peer = key.fileobj
        more = peer.recv(1 << 16)
        if not more:
            watch.unregister(peer)
            peer.close()
            continue
        replies = []
        parts = requests(pending[peer] + more)
        while True:
            try:
                words = next(parts)
            except StopIteration as end:
                pending[peer] = end.value
                break
            reply = answer(words)
            if reply is None:
                peer.sendall(b"".join(replies) + b"$10\r\nabc")
                watch.unregister(peer)
                peer.close()
                replies = []
                break
            replies.append(reply)
        if replies:
            peer.sendall(b"".join(replies))
"#;

fn keys(pattern: &str) -> Value {
    json!({"prefix": "k:", "last": 99, "pattern": pattern})
}

fn gets(operations: u64) -> Value {
    json!({
        "connections": 4, "pipeline": 3, "operations": operations, "latency": true,
        "data": {"sizes": [1, 40]},
        "commands": [{"argv": ["GET", "{key}"], "keys": keys("random"), "value": true}],
    })
}

fn sets() -> Value {
    json!({
        "connections": 5, "pipeline": 2, "operations": 100,
        "data": {"sizes": [1, 40]},
        "commands": [{"argv": ["SET", "{key}", "{data}"], "keys": keys("parallel"), "reply": "status"}],
    })
}

fn sends(word: &str) -> Value {
    json!({"connections": 4, "operations": 2000, "commands": [{"argv": [word]}]})
}

fn server(name: &str, drive: Value) -> Value {
    json!({
        "name": name,
        "program": {"argv": ["python3", "-c", SERVER, "{port}"]},
        "load": {"drive": drive},
        "ready": {"deadline_ns": 20_000_000_000u64},
        "preload": [{"drive": sets()}],
    })
}

fn race(place: &Place, freezer: &str, mode: &str, variants: &[Value]) -> Records {
    let more = json!({"variants": variants, "slice_ns": 2_000_000, "mode": mode, "executions": 2});
    run("race", &place.request(freezer, more))
}

fn number(record: &Value, key: &str) -> u64 {
    record[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {record}"))
}

#[test]
fn a_busy_server_is_found_in_its_code() {
    for freezer in freezers() {
        let place = Place::new();
        let variants = [server("a", gets(30000)), server("b", gets(30000))];
        let more = json!({"variants": variants, "slice_ns": 2_000_000, "mode": "driven",
                          "code_samples": true});
        let records = run("race", &place.request(freezer, more));
        records.assert_complete();
        for total in records.of("variant") {
            assert_eq!(number(total, "operations"), 30000);
            let files = total["code_samples"]["files"].as_array().unwrap();
            let python = |file: &&Value| file["path"].as_str().unwrap().contains("python");
            assert!(files.iter().any(|file| python(&file)), "{total}");
        }
    }
}

#[test]
fn all_operations_are_sent_in_slices_that_are_accounted() {
    for freezer in freezers() {
        let place = Place::new();
        let variants = [server("a", gets(1500)), server("b", gets(1500))];
        let records = race(&place, freezer, "driven", &variants);
        records.assert_complete();
        assert_eq!(records.only("start")["mode"], "driven");
        assert_eq!(records.of("variant").len(), 4);
        for total in records.of("variant") {
            assert_eq!(number(total, "operations"), 1500);
            assert!(number(total, "cpu_ns") > 1_000_000, "{total}");
            assert!(number(total, "load_cpu_ns") > 0, "{total}");
            assert!(number(total, "bytes_sent") > 1500 * 10);
            let latency = &total["latency_ns"];
            assert_eq!(number(latency, "count"), 1500);
            assert!(number(latency, "p50") <= number(latency, "p999"));
            let slices = records.of("slice");
            let own = slices.iter().filter(|slice| {
                slice["variant"] == total["variant"]
                    && slice["execution"] == total["execution"]
                    && slice["filler"] == false
            });
            let counted: u64 = own.clone().map(|slice| number(slice, "operations")).sum();
            assert_eq!(counted, 1500);
            let cpu: u64 = own.map(|slice| number(slice, "cpu_ns")).sum();
            assert_eq!(cpu, number(total, "cpu_ns"));
        }
        let slices = records.of("slice");
        let same = slices.windows(2).filter(|pair| {
            pair[0]["execution"] == pair[1]["execution"] && pair[0]["variant"] == pair[1]["variant"]
        });
        assert_eq!(same.count(), 0);
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_whole_execution_is_one_slice() {
    let place = Place::new();
    let variants = [server("a", gets(700)), server("b", gets(700))];
    let records = race(&place, "auto", "alternating", &variants);
    records.assert_complete();
    assert_eq!(records.of("slice").len(), 4);
    assert!(records
        .of("variant")
        .iter()
        .all(|total| total["operations"] == 700));
    place.assert_nothing_left(records.pid);
}

#[test]
fn an_error_reply_ends_its_variant_and_is_quoted() {
    for (word, code, part) in [
        ("FULL", "reply", "OOM command not allowed"),
        ("HALF", "reply", "inside a reply"),
    ] {
        let place = Place::new();
        let variants = [server("good", gets(500)), server("bad", sends(word))];
        let records = race(&place, "auto", "driven", &variants);
        records.assert_complete();
        assert_eq!(records.codes("failure"), [code]);
        let error = records.only("failure");
        assert_eq!(error["variant"], "bad");
        assert!(error["text"].as_str().unwrap().contains(part), "{error}");
        let finished = records.of("variant");
        assert!(finished.iter().all(|total| total["variant"] == "good"));
        assert_eq!(finished.len(), 2);
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_server_that_dies_under_its_drive_has_crashed() {
    for freezer in freezers() {
        let place = Place::new();
        let variants = [server("good", gets(500)), server("dying", sends("DIE"))];
        let records = race(&place, freezer, "driven", &variants);
        records.assert_complete();
        let error = records.only("failure");
        assert_eq!(error["code"], "crashed");
        assert_eq!(error["variant"], "dying");
        assert!(
            error["text"].as_str().unwrap().contains("out of order"),
            "{error}"
        );
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_filler_that_is_refused_fills_no_more_and_spoils_nothing() {
    let place = Place::new();
    // Fifty are taken: the drive itself, and not its repetition.
    let drive = json!({
        "connections": 1, "operations": 40, "commands": [{"argv": ["FULL"], "reply": "status"}],
    });
    let variants = [server("quick", drive), server("slow", gets(20_000))];
    let records = race(&place, "auto", "driven", &variants);
    records.assert_complete();
    let warned = records.of("warning");
    let refused = warned.iter().filter(|each| each["code"] == "filler-failed");
    let told: Vec<_> = refused.map(|each| &each["variant"]).collect();
    assert_eq!(told, ["quick"]);
    let totals = records.of("variant");
    assert_eq!(
        totals
            .iter()
            .map(|each| each["operations"].as_u64().unwrap())
            .sum::<u64>(),
        2 * 20_040
    );
    place.assert_nothing_left(records.pid);
}

#[test]
fn a_preload_that_is_refused_is_told_with_its_variant() {
    let place = Place::new();
    let mut variant = server("a", gets(10));
    variant["preload"] = json!([{"drive": sends("OTHER")}]);
    let records = race(&place, "auto", "driven", &[variant]);
    records.assert_failed(3, "reply");
    assert_eq!(records.only("error")["variant"], "a");
    assert!(records.only("error")["text"]
        .as_str()
        .unwrap()
        .contains("OOM"));
    place.assert_nothing_left(records.pid);
}

#[test]
fn modes_and_loads_must_fit() {
    let process = json!({"process": {"argv": ["true"]}, "operations": 1});
    for (mode, load, part) in [
        (
            "interleaved",
            json!({"drive": gets(10)}),
            "for mode \"driven\"",
        ),
        ("driven", process, "needs a `load` with a `drive`"),
        ("driven", json!({}), "either `process` or `drive`"),
        (
            "driven",
            json!({"drive": {"operations": 1, "commands": []}}),
            "`commands` is empty",
        ),
    ] {
        let place = Place::new();
        let mut variant = server("a", gets(10));
        variant["load"] = load;
        let records = race(&place, "auto", mode, &[variant]);
        records.assert_failed(2, "request");
        let error = records.only("error");
        assert!(error["text"].as_str().unwrap().contains(part), "{error}");
    }
}
