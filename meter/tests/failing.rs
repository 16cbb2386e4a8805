//! A variant that fails ends; the others race on, and what they measure is theirs alone.

mod common;

use common::{busy, freezers, run, sh, variant, Place, Records};
use serde_json::{json, Value};

const EXECUTIONS: usize = 4;

fn raced(place: &Place, freezer: &str, mode: &str, variants: &[Value]) -> Records {
    let request = json!({
        "variants": variants, "mode": mode, "slice_ns": 1_000_000, "executions": EXECUTIONS,
    });
    run("race", &place.request(freezer, request))
}

/// The n-th run of this command and all later ones do `then`.
fn from_run(place: &Place, n: u32, then: &str) -> String {
    let count = place.path("count");
    format!(
        "echo run >> {count}; test $(wc -l < {count}) -ge {n} && {{ {then}; }}; {}",
        busy(20_000)
    )
}

fn good(name: &str) -> Value {
    variant(name, sh(&busy(20_000)))
}

#[track_caller]
fn assert_others_raced_on(place: &Place, records: &Records, code: &str, execution: u64) -> Value {
    records.assert_complete();
    assert_eq!(records.codes("failure"), [code], "{:#?}", records.all);
    let failure = records.only("failure").clone();
    assert_eq!(failure["variant"], "bad");
    assert_eq!(failure["execution"], execution);
    assert_eq!(records.only("end")["executions"], EXECUTIONS as u64);
    let valid = |record: &&&Value| record["valid"] == true;
    assert_eq!(
        records.of("execution").iter().filter(valid).count(),
        EXECUTIONS
    );
    for kind in ["variant", "slice"] {
        let of = records.of(kind);
        for name in ["one", "two"] {
            for execution in 0..EXECUTIONS as u64 {
                let own =
                    |each: &&&Value| each["variant"] == name && each["execution"] == execution;
                assert!(of.iter().any(|each| own(&each)), "{kind} {name}");
            }
        }
        let late = |each: &&&Value| {
            each["variant"] == "bad" && each["execution"].as_u64().unwrap() >= execution
        };
        assert_eq!(of.iter().filter(late).count(), 0, "{kind}");
    }
    place.assert_nothing_left(records.pid);
    failure
}

#[test]
fn a_program_that_fails_in_the_third_execution_has_raced_in_two() {
    for mode in ["interleaved", "alternating"] {
        for freezer in freezers() {
            let place = Place::new();
            // It has had slices in the execution in which it fails.
            let failing = from_run(
                &place,
                3,
                &format!("{}; echo bad luck >&2; exit 7", busy(5_000)),
            );
            let mut bad = variant("bad", sh(&failing));
            // A filler would count as a run, too.
            bad["expected_ns"] = json!(1_000_000_000_000u64);
            let variants = [good("one"), bad, good("two")];
            let records = raced(&place, freezer, mode, &variants);
            records.assert_complete();
            let execution = records.only("failure")["execution"].as_u64().unwrap();
            let failure = assert_others_raced_on(&place, &records, "failed", execution);
            assert!(execution > 0 || mode == "interleaved");
            assert_eq!(
                (&failure["exit"], &failure["signal"]),
                (&json!(7), &Value::Null)
            );
            assert!(failure["text"].as_str().unwrap().contains("bad luck"));
        }
    }
}

#[test]
fn a_crash_and_a_hang_end_their_variant() {
    for mode in ["interleaved", "alternating"] {
        let place = Place::new();
        let variants = [
            good("one"),
            variant("bad", sh("kill -SEGV $$")),
            good("two"),
        ];
        let records = raced(&place, "auto", mode, &variants);
        let failure = assert_others_raced_on(&place, &records, "crashed", 0);
        assert_eq!(
            (&failure["exit"], &failure["signal"]),
            (&Value::Null, &json!(11))
        );

        let place = Place::new();
        // What it left in the background ends with it.
        let mut hanging = sh(&format!("{s} & setsid {s} & {s}", s = place.sleeper()));
        hanging["deadline_ns"] = json!(30_000_000);
        let variants = [good("one"), good("two"), variant("bad", hanging)];
        let records = raced(&place, "auto", mode, &variants);
        assert_others_raced_on(&place, &records, "deadline", 0);
    }
}

#[test]
fn set_up_and_clean_up_of_a_variant_end_it_alone() {
    for (key, script) in [("prepare", "exit 4"), ("cleanup", "exit 4")] {
        let place = Place::new();
        let mut bad = good("bad");
        bad[key] = json!([sh(script)]);
        let records = raced(
            &place,
            "auto",
            "interleaved",
            &[bad.clone(), good("one"), good("two")],
        );
        let failure = assert_others_raced_on(&place, &records, "failed", 0);
        assert_eq!(failure["exit"], 4);
    }
}

#[test]
fn a_variant_that_failed_is_cleaned_up_after_once() {
    let place = Place::new();
    let mut bad = variant("bad", sh("exit 1"));
    bad["cleanup"] = json!([sh(&format!("echo clean >> {}", place.path("log")))]);
    let records = raced(
        &place,
        "auto",
        "interleaved",
        &[good("one"), bad, good("two")],
    );
    assert_others_raced_on(&place, &records, "failed", 0);
    assert_eq!(place.read("log"), "clean\n");
}

#[test]
fn two_variants_that_are_left_take_turns_as_two_do() {
    let place = Place::new();
    let variants = [good("one"), variant("bad", sh("exit 1")), good("two")];
    let records = raced(&place, "auto", "alternating", &variants);
    assert_others_raced_on(&place, &records, "failed", 0);
    let order: Vec<_> = records
        .of("slice")
        .iter()
        .map(|slice| slice["variant"].as_str().unwrap().to_string())
        .collect();
    for pair in order.chunks(4).filter(|pair| pair.len() == 4) {
        assert_eq!((&pair[0], &pair[1]), (&pair[3], &pair[2]), "{order:?}");
    }
}

#[test]
fn a_race_without_variants_has_failed() {
    let place = Place::new();
    let variants = [variant("a", sh("exit 3")), variant("b", sh("exit 5"))];
    let records = raced(&place, "auto", "interleaved", &variants);
    assert_eq!(records.codes("failure").len(), 1);
    assert_eq!(records.only("execution")["valid"], false);
    let told = [
        &records.only("failure")["variant"],
        &records.only("error")["variant"],
    ];
    assert!(told.contains(&&json!("a")) && told.contains(&&json!("b")));
    records.assert_failed(3, "failed");
    place.assert_nothing_left(records.pid);
}

#[test]
fn a_required_variant_ends_the_race_and_what_was_measured_stays() {
    let place = Place::new();
    let mut needed = variant("needed", sh(&from_run(&place, 3, "exit 9")));
    needed["required"] = json!(true);
    let records = raced(&place, "auto", "alternating", &[needed, good("one")]);
    records.assert_failed(3, "failed");
    assert_eq!(records.only("error")["variant"], "needed");
    assert_eq!(records.only("end")["executions"], 2);
}

#[test]
fn what_fails_as_a_filler_is_said_also_where_a_signal_ended_it() {
    let place = Place::new();
    let quick = format!(
        "test -e {{tmp}}/again && kill -SEGV $$; touch {{tmp}}/again; {}",
        busy(1_000)
    );
    let variants = [
        variant("quick", sh(&quick)),
        variant("slow", sh(&busy(300_000))),
    ];
    let request = json!({"variants": variants, "slice_ns": 1_000_000});
    let records = run("race", &place.request("auto", request));
    records.assert_complete();
    assert!(records.codes("warning").contains(&"filler-failed"));
    assert_eq!(records.of("variant").len(), 2);
}
