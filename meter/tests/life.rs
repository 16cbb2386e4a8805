//! Whoever dies: nothing is left, and nothing stays stopped.

mod common;

use common::{freezers, sh, signal_to, start, variant, Place, Running};
use serde_json::{json, Value};
use std::time::Duration;

/// Two variants that leave their groups, their sessions and their parents, and never end.
fn restless(place: &Place, freezer: &str, hold: bool) -> Value {
    let sleeper = place.sleeper();
    let script = format!(
        "(setsid sh -c '{sleeper} & {sleeper}' &) ; timeout 100000 {sleeper} & while :; do :; done"
    );
    let variants = [variant("a", sh(&script)), variant("b", sh(&script))];
    place.request(freezer, json!({"variants": variants, "hold": hold}))
}

fn under_way(place: &Place, freezer: &str, hold: bool) -> (Running, i32) {
    let mut meter = start("race", &restless(place, freezer, hold));
    let worker = meter.worker();
    place.await_sleepers(4);
    (meter, worker)
}

#[test]
fn signals_interrupt_in_good_order_also_when_they_come_twice() {
    for freezer in freezers() {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let place = Place::new();
            let (meter, _) = under_way(&place, freezer, false);
            meter.signal(signal);
            meter.signal(signal);
            let records = meter.finish();
            assert_eq!(records.status, Some(4));
            assert_eq!(records.all.last().unwrap()["status"], "interrupted");
            place.assert_nothing_left(records.pid);
        }
    }
}

#[test]
fn a_caller_that_is_gone_ends_the_run() {
    for freezer in freezers() {
        let place = Place::new();
        let (mut meter, _) = under_way(&place, freezer, true);
        meter.stdin = None;
        let records = meter.finish();
        assert_eq!(records.status, Some(4));
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_killed_worker_is_cleaned_up_after() {
    for freezer in freezers() {
        let place = Place::new();
        let (meter, worker) = under_way(&place, freezer, true);
        signal_to(worker, libc::SIGKILL);
        let records = meter.finish();
        records.assert_failed(3, "system");
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_killed_guardian_is_cleaned_up_after() {
    for freezer in freezers() {
        let place = Place::new();
        let (mut meter, _) = under_way(&place, freezer, true);
        meter.signal(libc::SIGKILL);
        meter.wait();
        place.await_nothing_left(meter.pid());
    }
}

#[test]
fn a_worker_that_hangs_is_killed_in_the_end() {
    let place = Place::new();
    let (meter, worker) = under_way(&place, "auto", true);
    signal_to(worker, libc::SIGSTOP);
    meter.signal(libc::SIGTERM);
    let records = meter.finish();
    assert_eq!(records.status, Some(4));
    place.assert_nothing_left(records.pid);
}

#[test]
fn the_next_run_rounds_what_a_double_death_left() {
    for freezer in freezers() {
        let place = Place::new();
        let (mut meter, worker) = under_way(&place, freezer, true);
        signal_to(worker, libc::SIGSTOP);
        meter.signal(libc::SIGKILL);
        signal_to(worker, libc::SIGKILL);
        meter.wait();
        let next = place.request(freezer, json!({"process": sh("true")}));
        let records = common::run("exec", &next);
        records.assert_complete();
        place.await_nothing_left(meter.pid());
    }
}

#[test]
fn a_reader_that_closes_ends_the_run() {
    use std::process::Stdio;
    let place = Place::new();
    let request = place.path("request");
    std::fs::write(&request, restless(&place, "auto", false).to_string()).unwrap();
    let mut command = common::meter();
    command
        .arg("race")
        .stdin(std::fs::File::open(request).unwrap())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    place.await_sleepers(2);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(4));
    place.assert_nothing_left(child.id());
}

#[test]
fn a_slow_reader_gets_every_record() {
    let place = Place::new();
    let variants = [
        variant("a", sh(&common::busy(400_000))),
        variant("b", sh(&common::busy(400_000))),
    ];
    let asked = json!({"variants": variants, "slice_ns": 200_000});
    let mut meter = start("race", &place.request("auto", asked));
    let bytes = meter.read_slowly(Duration::from_secs(3), Duration::from_millis(30));
    assert!(bytes > 100_000, "{bytes} bytes do not fill a pipe");
    let records = meter.finish();
    records.assert_complete();
    place.assert_nothing_left(records.pid);
}

#[test]
fn the_processor_says_what_it_has() {
    let output = common::meter().arg("processor").output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["type"], "processor");
    let registers = said["registers"].as_object().unwrap();
    assert_eq!(registers.is_empty(), cfg!(not(target_arch = "x86_64")));
}

#[test]
fn the_probe_says_what_is_possible() {
    let output = common::meter().arg("probe").output().unwrap();
    let probe: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(probe["type"], "probe");
    assert!(probe["freezer"] == "cgroup" || probe["obstacle"].is_string());
    assert!(probe["counters"].is_array());
}
