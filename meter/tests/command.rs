//! `exec`: one command, its limits, and what it leaves behind.

mod common;

use common::{busy, freezers, run, sh, Place};
use serde_json::json;

#[test]
fn a_command_is_run_and_accounted() {
    for freezer in freezers() {
        let place = Place::new();
        let mut process = sh(&format!(
            "{}; echo said; echo cried >&2; pwd",
            busy(100_000)
        ));
        process["cwd"] = json!(place.path("."));
        let records = run(
            "exec",
            &place.request(freezer, json!({ "process": process })),
        );
        records.assert_complete();
        let outcome = records.only("outcome");
        assert_eq!(
            (&outcome["exit"], &outcome["reason"]),
            (&json!(0), &json!("exited"))
        );
        assert!(outcome["stdout_tail"]
            .as_str()
            .unwrap()
            .starts_with("said\n"));
        assert_eq!(outcome["stderr_tail"], "cried\n");
        assert!(outcome["user_ns"].as_u64().unwrap() > 0);
        assert!(outcome["active_wall_ns"].as_u64().unwrap() > 0);
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_command_of_one_thread_used_no_more_cpu_than_time() {
    let place = Place::new();
    for _ in 0..20 {
        let request = json!({ "process": sh(":") });
        let records = run("exec", &place.request("auto", request));
        let outcome = records.only("outcome");
        let ns = |key: &str| outcome[key].as_u64().unwrap();
        let cpu_ns = ns("user_ns") + ns("system_ns");
        assert!(ns("active_wall_ns") >= cpu_ns, "{outcome}");
    }
}

#[test]
fn both_outputs_may_go_to_one_file() {
    let place = Place::new();
    let mut process = sh("echo one; echo two >&2; echo three");
    process["stdout"] = json!(place.path("log"));
    process["stderr"] = json!(place.path("log"));
    run(
        "exec",
        &place.request("auto", json!({ "process": process })),
    )
    .assert_complete();
    assert_eq!(place.read("log"), "one\ntwo\nthree\n");
}

#[test]
fn a_failing_command_says_why() {
    let place = Place::new();
    let records = run(
        "exec",
        &place.request("auto", json!({"process": sh("echo why >&2; exit 2")})),
    );
    records.assert_failed(3, "failed");
    assert!(records.only("error")["text"]
        .as_str()
        .unwrap()
        .ends_with("status 2: why"));
    assert_eq!(records.only("outcome")["exit"], 2);
}

#[test]
fn a_command_that_never_ends_meets_its_deadline_with_all_its_tree() {
    for freezer in freezers() {
        let place = Place::new();
        let sleeper = place.sleeper();
        let mut process = sh(&format!(
            "(setsid {sleeper} &); timeout 1000 {sleeper} & {sleeper}"
        ));
        process["deadline_ns"] = json!(400_000_000);
        let records = run(
            "exec",
            &place.request(freezer, json!({ "process": process })),
        );
        records.assert_failed(3, "deadline");
        assert_eq!(records.only("outcome")["reason"], "deadline");
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn background_processes_are_ended_and_reported() {
    for freezer in freezers() {
        let place = Place::new();
        let daemon = format!("setsid sh -c 'setsid {} & exit' & wait", place.sleeper());
        let records = run(
            "exec",
            &place.request(freezer, json!({"process": sh(&daemon)})),
        );
        records.assert_complete();
        let codes = records.codes("warning");
        assert!(
            codes.contains(&"left-running"),
            "{freezer}: {:#?}",
            records.all
        );
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn limits_hold() {
    let place = Place::new();
    let mut process = sh(&format!("head -c 100000 /dev/zero > {}", place.path("big")));
    process["limits"] = json!({"file_bytes": 5000});
    let records = run(
        "exec",
        &place.request("auto", json!({ "process": process })),
    );
    assert_eq!(records.status, Some(3));
    assert_eq!(std::fs::metadata(place.path("big")).unwrap().len(), 5000);
}

#[test]
fn what_cannot_begin_is_told_with_the_step() {
    let place = Place::new();
    let mut process = sh("true");
    process["cwd"] = json!("/no/such/folder");
    let records = run(
        "exec",
        &place.request("auto", json!({ "process": process })),
    );
    assert_eq!(records.status, Some(2));
    assert!(
        records.only("error")["text"]
            .as_str()
            .unwrap()
            .contains("/no/such/folder"),
        "{:#?}",
        records.all
    );
    let missing = json!({"process": {"argv": ["no-such-program-7"]}});
    run("exec", &place.request("auto", missing)).assert_failed(2, "not-found");
}

#[test]
fn children_inherit_no_blocked_signals_and_no_files() {
    let place = Place::new();
    let script = "ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let records = run(
        "exec",
        &place.request("auto", json!({"process": sh(script)})),
    );
    records.assert_complete();
    let outcome = records.only("outcome");
    let text = outcome["stdout_tail"].as_str().unwrap();
    let lines: Vec<_> = text.lines().collect();
    // Standard files, and the folder that `ls` reads.
    assert_eq!(lines[0].trim(), "4");
    assert!(
        lines[1..]
            .iter()
            .all(|line| line.ends_with("0000000000000000")),
        "{text}"
    );
}

#[test]
fn several_meters_do_not_disturb_each_other() {
    let place = Place::new();
    let request = place.request("auto", json!({"process": sh("sleep 0.2; echo fine")}));
    let running: Vec<_> = (0..4).map(|_| common::start("exec", &request)).collect();
    for meter in running {
        let records = meter.finish();
        records.assert_complete();
        assert_eq!(records.only("outcome")["stdout_tail"], "fine\n");
    }
    place.assert_nothing_left(0);
}

#[test]
fn a_meter_runs_under_a_meter() {
    let place = Place::new();
    let inner = place.request("auto", json!({"process": sh("echo inner")}));
    std::fs::write(place.path("request"), inner.to_string()).unwrap();
    let process = json!({
        "argv": [env!("CARGO_BIN_EXE_ensign-meter"), "exec"], "stdin": place.path("request"),
    });
    let records = run(
        "exec",
        &place.request("auto", json!({ "process": process })),
    );
    records.assert_complete();
    assert!(records.only("outcome")["stdout_tail"]
        .as_str()
        .unwrap()
        .contains("inner"));
    place.assert_nothing_left(records.pid);
}
