//! Limits of whole process trees, and programs that run as another user.

mod common;

use common::{freezers, run, sh, variant, Place, Records};
use serde_json::{json, Value};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::geteuid() == 0 }
}

fn limited(script: &str, limits: Value) -> Value {
    let mut process = sh(script);
    process["limits"] = limits;
    process["deadline_ns"] = json!(60_000_000_000u64);
    process
}

fn text_of(records: &Records, kind: &str) -> String {
    records.only(kind)["text"].as_str().unwrap().to_string()
}

/// 40 processes that last, of which a limit allows fewer; the first that is refused ends it.
const MANY: &str = "i=0; while [ $i -lt 40 ]; do sleep 30 & i=$((i+1)); done; sleep 1; kill 0";

#[test]
fn too_many_processes_are_refused_or_ended_and_the_outcome_says_so() {
    for freezer in freezers() {
        let place = Place::new();
        let process = limited(MANY, json!({"tree_processes": 12}));
        let records = run(
            "exec",
            &place.request(freezer, json!({ "process": process })),
        );
        records.assert_failed(3, "limit");
        let outcome = records.only("outcome");
        assert_eq!(outcome["reason"], "processes", "{outcome}");
        assert_eq!(outcome["limits_met"], json!(["processes"]));
        let text = text_of(&records, "error");
        assert!(
            text.contains("met the limit of 12 processes and threads"),
            "{text}"
        );
        place.assert_nothing_left(records.pid);
    }
}

/// Takes memory for ever, in one process.
const EATER: &str = "x=0123456789; while :; do x=$x$x; done";

#[test]
fn too_much_memory_ends_the_tree_and_the_outcome_says_so() {
    for freezer in freezers() {
        let place = Place::new();
        let process = limited(EATER, json!({"tree_memory_bytes": 64 << 20}));
        let records = run(
            "exec",
            &place.request(freezer, json!({ "process": process })),
        );
        records.assert_failed(3, "limit");
        let outcome = records.only("outcome");
        assert_eq!(outcome["reason"], "memory", "{outcome}");
        assert!(text_of(&records, "error").contains("met the limit of 0.06 GiB of memory"));
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_signal_alone_is_no_limit() {
    let place = Place::new();
    let limits = json!({"tree_memory_bytes": 1u64 << 40, "tree_processes": 100_000});
    let process = limited("kill -9 $$", limits);
    let records = run(
        "exec",
        &place.request("auto", json!({ "process": process })),
    );
    records.assert_failed(3, "crashed");
    let outcome = records.only("outcome");
    assert_eq!(
        (&outcome["reason"], &outcome["signal"]),
        (&json!("exited"), &json!(9))
    );
    assert_eq!(outcome.get("limits_met"), None);
}

fn filler(script: &str) -> Value {
    json!({
        "process": limited(script, json!({})),
        "containment": {"tmp_bytes": 64 << 20},
    })
}

#[test]
fn what_is_written_below_tmp_is_limited() {
    for script in [
        // One file, many files, and one without a name.
        "cd $0 && exec dd if=/dev/zero of=one bs=1M",
        "cd $0 && i=0; while :; do dd if=/dev/zero of=$i bs=1M count=8 2>/dev/null || exit 1; i=$((i+1)); done",
        "cd $0 && exec 3>gone && rm gone && while :; do head -c 4000000 /dev/zero >&3 || exit 1; done",
    ] {
        let place = Place::new();
        let mut asked = filler(script);
        asked["process"]["argv"] = json!(["sh", "-c", script, "{tmp}"]);
        let records = run("exec", &place.request("auto", asked));
        let outcome = records.only("outcome");
        let nameless = script.contains("gone");
        if nameless && outcome["reason"] != "disk" {
            // Its own limit for one file came first; nothing of it is left to be seen.
            assert_ne!(outcome["exit"], 0, "{outcome}");
        } else {
            records.assert_failed(3, "limit");
            assert_eq!(outcome["reason"], "disk", "{outcome}");
            assert!(text_of(&records, "error").contains("wrote more than 0.06 GiB below {tmp}"));
        }
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn in_a_race_the_variant_is_out_and_the_others_go_on() {
    let place = Place::new();
    let greedy = limited(EATER, json!({"tree_memory_bytes": 64 << 20}));
    let many = limited(MANY, json!({"tree_processes": 12}));
    let asked = json!({
        "executions": 1,
        "containment": {"tmp_bytes": 16 << 20},
        "variants": [
            variant("plain", sh("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")),
            variant("greedy", greedy),
            variant("many", many),
            variant("writer", sh("exec cat /dev/zero >{tmp}/file")),
        ],
    });
    let records = run("race", &place.request("auto", asked));
    records.assert_complete();
    assert_eq!(records.only("variant")["variant"], "plain");
    let mut failed: Vec<_> = (records.of("failure").iter())
        .map(|failure| {
            (
                failure["variant"].as_str().unwrap(),
                failure["code"].as_str().unwrap(),
            )
        })
        .collect();
    failed.sort_unstable();
    let expected = [("greedy", "limit"), ("many", "limit"), ("writer", "limit")];
    assert_eq!(failed, expected, "{:#?}", records.of("failure"));
    place.assert_nothing_left(records.pid);
}

fn as_nobody(more: Value) -> Value {
    let mut asked =
        json!({"containment": {"user": {"uid": NOBODY, "gid": NOBODY}, "marks": false}});
    for (key, value) in more.as_object().unwrap() {
        asked[key] = value.clone();
    }
    asked
}

#[test]
fn programs_run_as_the_user_and_can_use_what_they_are_given() {
    if !is_root() {
        return;
    }
    for freezer in freezers() {
        let place = Place::new();
        let secret = place.path("secret");
        fs::write(&secret, "secret").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let script = format!(
            "id -u; id -G; grep CapBnd /proc/self/status; env | grep ENSIGN; \
             touch {{tmp}}/mine && echo mine; cat {secret} 2>&1 || echo closed; \
             touch $(dirname $0)/copy 2>/dev/null || echo kept; exit 0"
        );
        let process = json!({"argv": ["sh", "-c", script, "{tmp}"]});
        let asked = as_nobody(json!({"process": process}));
        let records = run("exec", &place.request(freezer, asked));
        records.assert_complete();
        let said = records.only("outcome")["stdout_tail"].as_str().unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(&lines[..2], ["65534", "65534"], "{said}");
        assert!(said.contains("CapBnd:\t0000000000000000\nmine\n"), "{said}");
        assert!(
            said.contains("closed") && !said.contains("ENSIGN"),
            "{said}"
        );
        assert!(said.ends_with("kept\n"), "{said}");
        place.assert_nothing_left(records.pid);
    }
}

#[test]
fn a_race_of_another_user_runs_from_copies_that_it_cannot_change() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let folder = place.path("tree");
    fs::create_dir_all(format!("{folder}/bin")).unwrap();
    let tool = format!("{folder}/bin/tool");
    fs::copy("/bin/sh", &tool).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o700)).unwrap();
    let script = "{ touch {files}/new || chmod 777 {files}/bin/tool; } 2>/dev/null && exit 9; \
                  cat >{tmp}/out && test \"$(cat {tmp}/out)\" = given";
    let input = place.path("input");
    fs::write(&input, "given").unwrap();
    let one = |name: &str| {
        json!({
            "name": name,
            "program": {"argv": ["{files}/bin/tool", "-c", script], "stdin": input},
            "files": {"folders": [folder]},
        })
    };
    let asked = as_nobody(json!({"executions": 2, "variants": [one("a"), one("b")]}));
    let records = run("race", &place.request("auto", asked));
    records.assert_complete();
    assert_eq!(records.of("variant").len(), 4);
    place.assert_nothing_left(records.pid);
}

#[test]
fn nobody_always_gets_its_files_first() {
    let place = Place::new();
    let folder = place.path("tree");
    fs::create_dir_all(&folder).unwrap();
    // Copying them takes longer than the kernel's clock of files ticks.
    for number in 0..1000 {
        fs::write(format!("{folder}/{number}"), "").unwrap();
    }
    let names = ["a", "b", "c"];
    let firsts: Vec<&str> = (0..12)
        .map(|seed| {
            let variants = names.map(|name| {
                let mut program = sh("find {files} -maxdepth 0 -printf %C@");
                program["stdout"] = json!(place.path(name));
                json!({"name": name, "program": program, "files": {"folders": [folder]}})
            });
            let asked = json!({"seed": seed, "variants": variants});
            run("race", &place.request("auto", asked)).assert_complete();
            let made = |name: &&str| place.read(name).parse::<f64>().unwrap();
            names
                .into_iter()
                .min_by(|one, other| made(one).total_cmp(&made(other)))
                .unwrap()
        })
        .collect();
    assert!(names.iter().all(|name| firsts.contains(name)), "{firsts:?}");
}

#[test]
fn a_link_left_in_tmp_opens_nothing_for_the_user() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let secret = place.path("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    for (key, link) in [("stdin", "in"), ("stdout", "out")] {
        let mut program = sh("cat");
        program[key] = json!(format!("{{tmp}}/{link}"));
        let one = json!({
            "name": "one",
            "program": program,
            "prepare": [sh(&format!("ln -s {secret} {{tmp}}/{link}"))],
        });
        let asked = as_nobody(json!({"variants": [one]}));
        let records = run("race", &place.request("auto", asked));
        records.assert_failed(2, "request");
        assert!(text_of(&records, "error").contains("Permission denied"));
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
}

#[test]
fn root_is_refused_as_the_user() {
    let place = Place::new();
    let mut asked = place.request("auto", json!({"process": sh("true")}));
    asked["containment"] = json!({"user": {"uid": 0, "gid": 5}});
    run("exec", &asked).assert_failed(2, "request");
}
