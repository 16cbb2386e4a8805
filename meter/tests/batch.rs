//! Batch variants: order of slices, totals, outcomes, own copies.

mod common;

use common::{busy, freezers, run, sh, variant, Place};
use serde_json::{json, Value};

fn number(record: &Value, key: &str) -> u64 {
    record[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {record}"))
}

#[test]
fn slices_alternate_and_add_up() {
    for freezer in freezers() {
        let place = Place::new();
        let variants: Vec<_> = ["a", "b", "c"]
            .map(|name| variant(name, sh(&busy(200_000))))
            .into();
        let request = json!({"variants": variants, "slice_ns": 1_000_000, "executions": 2});
        let records = run("race", &place.request(freezer, request));
        records.assert_complete();
        assert_eq!(records.only("start")["freezer"], freezer);
        assert_eq!(records.only("end")["executions"], 2);
        assert_eq!(records.of("variant").len(), 6);
        for execution in 0..2 {
            let slices: Vec<_> = records
                .of("slice")
                .into_iter()
                .filter(|s| s["execution"] == execution)
                .collect();
            assert!(slices.len() > 20, "{freezer}: {}", slices.len());
            assert!(slices
                .windows(2)
                .all(|pair| pair[0]["variant"] != pair[1]["variant"]));
            let ends = |s: &Value| number(s, "start_ns") + number(s, "wall_ns");
            assert!(slices
                .windows(2)
                .all(|pair| ends(pair[0]) <= number(pair[1], "start_ns")));
        }
        for total in records.of("variant") {
            check_total(&records.of("slice"), total);
        }
        place.assert_nothing_left(records.pid);
    }
}

/// The slices of a variant before its finish are its total.
fn check_total(slices: &[&Value], total: &Value) {
    let own: Vec<_> = slices
        .iter()
        .filter(|s| s["variant"] == total["variant"] && s["execution"] == total["execution"])
        .filter(|s| s["filler"] == false)
        .collect();
    let sum = |key: &str| own.iter().map(|slice| number(slice, key)).sum::<u64>();
    assert_eq!(own.len() as u64, number(total, "slices"));
    assert_eq!(sum("wall_ns"), number(total, "wall_ns"));
    let (parts, whole) = (sum("cpu_ns"), number(total, "cpu_ns"));
    // Children that were waited for are known in clock ticks only, where there is no cgroup.
    assert!(parts.abs_diff(whole) <= 20_000_000, "{parts} {whole}");
    assert!(whole > 0 && whole <= number(total, "wall_ns") * 2);
    let halves = number(total, "user_ns") + number(total, "system_ns");
    assert!(halves.abs_diff(whole) <= 20_000_000, "{halves} {whole}");
    assert_eq!(number(total, "operations"), 1);
    assert!(number(total, "peak_memory_bytes") > 100_000);
}

#[test]
fn a_short_variant_fills_until_the_long_one_has_finished() {
    for freezer in freezers() {
        let place = Place::new();
        let mut short = sh(&format!("echo once; {}; echo more", busy(40_000)));
        short["stdout"] = json!(place.path("short.txt"));
        let variants = [variant("long", sh(&busy(400_000))), variant("short", short)];
        let request = json!({"variants": variants, "slice_ns": 1_000_000});
        let records = run("race", &place.request(freezer, request));
        records.assert_complete();
        let fillers: Vec<_> = records
            .of("slice")
            .into_iter()
            .filter(|s| s["filler"] == true)
            .collect();
        assert!(fillers.iter().all(|slice| slice["variant"] == "short") && fillers.len() > 5);
        let outcomes = records.role("program");
        let reasons = |name: &str, reason: &str| {
            let of = |o: &&&Value| o["variant"] == name && o["reason"] == reason;
            outcomes.iter().filter(of).count()
        };
        assert_eq!(
            (reasons("long", "exited"), reasons("long", "filler")),
            (1, 0)
        );
        assert_eq!(reasons("short", "exited"), 1);
        assert!(reasons("short", "filler") >= 1);
        assert_eq!(place.read("short.txt"), "once\nmore\n");
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_variant_that_is_suddenly_slow_is_not_kept_waiting_by_fillers() {
    for freezer in freezers() {
        let place = Place::new();
        let seen = place.path("seen");
        // Its first execution takes no time, which the second is then expected to take too.
        let moody = format!(
            "[ -e {seen} ] || {{ : > {seen}; exit; }}; {}",
            busy(200_000)
        );
        let variants = [
            variant("moody", sh(&moody)),
            variant("steady", sh(&busy(20_000))),
        ];
        let request = json!({"variants": variants, "slice_ns": 1_000_000, "executions": 2});
        let records = run("race", &place.request(freezer, request));
        records.assert_complete();
        let second: Vec<_> = records
            .of("slice")
            .into_iter()
            .filter(|slice| slice["execution"] == 1)
            .collect();
        let fillers = second.iter().filter(|s| s["filler"] == true).count();
        let moody = second.iter().filter(|s| s["variant"] == "moody").count();
        assert!(fillers > 5 && fillers <= moody, "{fillers} {moody}");
    }
}

#[test]
fn cpu_time_covers_threads_and_children_that_ended() {
    let script = format!("({b}) & ({b}) & wait; {b}", b = busy(150_000));
    for freezer in freezers() {
        let place = Place::new();
        let variants = [
            variant("one", sh(&busy(150_000))),
            variant("three", sh(&script)),
        ];
        let records = run(
            "race",
            &place.request(freezer, json!({ "variants": variants })),
        );
        records.assert_complete();
        let cpu = |name: &str| {
            let total = records
                .of("variant")
                .into_iter()
                .find(|total| total["variant"] == name);
            number(total.unwrap(), "cpu_ns") as f64
        };
        let ratio = cpu("three") / cpu("one");
        assert!(ratio > 2.0, "{freezer}: {ratio}");
    }
}

#[test]
fn twins_run_from_inodes_of_their_own_under_their_given_name() {
    for freezer in freezers() {
        let place = Place::new();
        let script =
            "stat -L -c %i /proc/$$/exe; tr '\\0' ' ' < /proc/$$/cmdline; echo $ENSIGN_VARIANT";
        let program =
            |name: &str| json!({"argv": ["sh", "-c", script], "stdout": place.path(name)});
        let variants = [
            variant("a", program("a.txt")),
            variant("b", program("b.txt")),
        ];
        let records = run(
            "race",
            &place.request(freezer, json!({"variants": variants, "executions": 2})),
        );
        records.assert_complete();
        let texts = [place.read("a.txt"), place.read("b.txt")];
        let inode = |text: &String| text.lines().next().unwrap().to_string();
        assert_ne!(inode(&texts[0]), inode(&texts[1]));
        assert!(texts
            .iter()
            .all(|text| text.lines().nth(1).unwrap().starts_with("sh -c")));
    }
}

#[test]
fn scripts_are_not_copied_and_this_is_said() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let script = place.path("script");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let variants = [
        variant("a", json!({"argv": [script]})),
        variant("b", sh("exit 0")),
    ];
    let records = run(
        "race",
        &place.request("auto", json!({"variants": variants, "executions": 3})),
    );
    records.assert_complete();
    // A busy machine may add another.
    let codes = records.codes("warning");
    assert_eq!(
        codes.iter().filter(|code| **code == "not-copied").count(),
        1
    );
}

#[test]
fn placeholders_limits_and_files_reach_the_program() {
    for freezer in freezers() {
        let place = Place::new();
        std::fs::write(place.path("in.txt"), "input").unwrap();
        let script = "cat; echo \" $VALUE\"; ulimit -n; pwd; ls -A; echo {x} $0";
        let program = json!({
            "argv": ["sh", "-c", script, "{variant}"],
            "env": {"VALUE": "{variant}!"},
            "cwd": "{tmp}",
            "stdin": place.path("in.txt"),
            "stdout": place.path("{variant}.txt"),
            "limits": {"open_files": 77},
        });
        let request = json!({"variants": [variant("a", program.clone()), variant("b", program)]});
        let records = run("race", &place.request(freezer, request));
        records.assert_complete();
        let text = place.read("b.txt");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["input b!", "77"]);
        assert!(lines[2].contains("tmp-00000-001"), "{text}");
        assert_eq!(lines[3..], ["{x} b"]);
    }
}

#[test]
fn prepare_and_cleanup_surround_each_execution() {
    for freezer in freezers() {
        let place = Place::new();
        let log = place.path("log");
        let note = |word: &str| sh(&format!("echo {word} >> {log}"));
        let noting = json!({
            "name": "a", "program": note("run"), "prepare": [note("one"), note("two")],
            "cleanup": [note("end")],
        });
        let records = run(
            "race",
            &place.request(freezer, json!({"variants": [noting], "executions": 2})),
        );
        records.assert_complete();
        assert_eq!(
            place.read("log").replace('\n', " "),
            "one two run end ".repeat(2)
        );
        assert_eq!(records.role("prepare").len(), 4);
        assert_eq!(records.role("cleanup").len(), 2);
    }
}

#[test]
fn a_failing_program_that_is_required_fails_the_race_with_its_last_words() {
    for freezer in freezers() {
        let place = Place::new();
        let failing = format!("{}; echo no such input >&2; exit 7", busy(20_000));
        let mut bad = variant("bad", sh(&failing));
        bad["required"] = json!(true);
        let variants = [variant("good", sh(&place.sleeper())), bad];
        let records = run(
            "race",
            &place.request(freezer, json!({ "variants": variants })),
        );
        records.assert_failed(3, "failed");
        let error = records.only("error");
        assert_eq!(error["variant"], "bad");
        let text = error["text"].as_str().unwrap();
        assert!(
            text.contains("status 7") && text.contains("no such input"),
            "{text}"
        );
        assert_eq!(records.only("execution")["valid"], false);
        assert_eq!(records.only("end")["executions"], 0);
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn failures_that_may_be_ignored_are() {
    let place = Place::new();
    let mut failing = sh("exit 3");
    failing["ignore_failure"] = json!(true);
    let records = run(
        "race",
        &place.request("auto", json!({"variants": [variant("a", failing)]})),
    );
    records.assert_complete();
    assert_eq!(records.role("program")[0]["exit"], 3);
}

#[test]
fn a_crash_is_told_by_its_signal() {
    for freezer in freezers() {
        let place = Place::new();
        let variants = [variant("a", sh("kill -SEGV $$"))];
        let records = run(
            "race",
            &place.request(freezer, json!({ "variants": variants })),
        );
        records.assert_failed(3, "crashed");
        assert_eq!(records.role("program")[0]["signal"], 11);
    }
}

#[test]
fn a_deadline_counts_the_time_of_running_only() {
    for freezer in freezers() {
        let place = Place::new();
        let mut hanging = sh(&place.sleeper());
        hanging["deadline_ns"] = json!(50_000_000);
        let variants = [
            variant("hangs", hanging),
            variant("works", sh(&busy(300_000))),
        ];
        let records = run(
            "race",
            &place.request(freezer, json!({ "variants": variants })),
        );
        records.assert_complete();
        assert_eq!(records.codes("failure"), ["deadline"]);
        let outcomes = records.role("program");
        let hung = outcomes.iter().find(|o| o["reason"] == "deadline").unwrap();
        assert_eq!(hung["variant"], "hangs");
        assert!(number(hung, "active_wall_ns") >= 50_000_000);
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn programs_that_are_not_there_are_told_before_anything_runs() {
    let place = Place::new();
    let touch = sh(&format!("touch {}", place.path("ran")));
    for (program, code) in [
        ("no-such-program-7", "not-found"),
        ("/etc/passwd", "not-executable"),
    ] {
        let variants = [
            variant("a", touch.clone()),
            variant("b", json!({"argv": [program]})),
        ];
        let records = run(
            "race",
            &place.request("auto", json!({ "variants": variants })),
        );
        records.assert_failed(2, code);
        assert!(!common::exists(&place.path("ran")));
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn wrong_requests_are_refused() {
    for request in [
        json!({"schema": 1, "variants": []}),
        json!({"schema": 9}),
        json!([1]),
    ] {
        run("race", &request).assert_failed(2, "request");
    }
}

#[test]
fn whole_executions_go_in_balanced_turns() {
    for freezer in freezers() {
        let place = Place::new();
        let program = sh(&busy(20_000));
        let variants = [variant("a", program.clone()), variant("b", program)];
        let request = json!({"variants": variants, "mode": "alternating", "executions": 4});
        let records = run("race", &place.request(freezer, request));
        records.assert_complete();
        let order: Vec<_> = records
            .of("slice")
            .iter()
            .map(|s| s["variant"].as_str().unwrap())
            .collect();
        assert_eq!(order.len(), 8);
        assert_eq!((order[0], order[1]), (order[3], order[2]));
        assert_eq!((order[0], order[1]), (order[4], order[5]));
        assert_eq!(records.of("variant").len(), 8);
    }
}

#[test]
fn a_budget_ends_the_race_between_executions() {
    let place = Place::new();
    let variants = [variant("a", sh("sleep 0.2")), variant("b", sh("sleep 0.2"))];
    let request = json!({"variants": variants, "mode": "alternating", "executions": 1000, "budget_ns": 1_000_000_000u64});
    let records = run("race", &place.request("auto", request));
    records.assert_complete();
    let executions = records.of("execution").len();
    assert!((1..=2).contains(&executions), "{executions}");
    assert_eq!(records.only("end")["executions"], executions);
}

#[test]
fn software_counters_count_per_variant() {
    let place = Place::new();
    let request = json!({
        "variants": [variant("a", sh(&busy(100_000))), variant("b", sh(&busy(100_000)))],
        "counters": ["page-faults", "instructions"],
    });
    let records = run("race", &place.request("auto", request));
    records.assert_complete();
    let available = records.only("start")["counters"]
        .as_array()
        .unwrap()
        .clone();
    for total in records.of("variant") {
        let counters = total["counters"].as_object().unwrap();
        assert_eq!(counters.len(), available.len());
        for (name, value) in counters {
            assert!(value.as_u64().unwrap() > 0, "{name}");
        }
    }
}

/// The meter goes first on its CPU while slices are dealt: a variant there must still get to stop.
#[test]
fn variants_may_share_a_cpu_with_the_meter() {
    for freezer in freezers() {
        let place = Place::new();
        let mut program = sh(&busy(100_000));
        program["cpus"] = json!([0]);
        let variants = [variant("a", program.clone()), variant("b", program)];
        let request = json!({"variants": variants, "meter_cpus": [0], "slice_ns": 1_000_000});
        let records = run("race", &place.request(freezer, request));
        records.assert_complete();
        place.assert_nothing_left(records.pid);
    }
}
