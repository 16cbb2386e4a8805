use super::*;
use serde_json::{json, Value};

fn refusal(mut change: Value) -> String {
    let mut drive = json!({
        "operations": 10,
        "commands": [{"argv": ["GET", "{key}"], "keys": {"last": 99}}],
        "data": {"size": 32},
    });
    for (key, value) in change.as_object_mut().unwrap() {
        drive[key] = value.take();
    }
    match serde_json::from_value::<Drive>(drive) {
        Ok(drive) => Problem::listed(&drive.problems()),
        Err(error) => error.to_string(),
    }
}

fn command(command: Value) -> String {
    refusal(json!({ "commands": [command] }))
}

#[test]
fn a_plain_drive_is_good() {
    assert_eq!(refusal(json!({})), "");
    assert_eq!(
        refusal(json!({"data": {"weighted": [[10, 1], [20, 0]]}})),
        ""
    );
}

#[test]
fn wrong_drives_say_what_is_wrong() {
    for (change, part) in [
        (json!({"protocol": 4}), "`protocol`"),
        (json!({"connections": 0}), "`connections`"),
        (json!({"pipeline": 0}), "`pipeline`"),
        (
            json!({"threads": 51}),
            "`threads` must lie between 1 and 50",
        ),
        (
            json!({"at_once": 51}),
            "`at_once` must lie between 1 and 50",
        ),
        (json!({"at_once": 2, "rate_per_s": 9}), "for closed loops"),
        (json!({"operations": 0}), "`operations`"),
        (json!({"rate_per_s": -1}), "`rate_per_s`"),
        (json!({"deadline_ns": 0}), "`deadline_ns`"),
        (json!({"init": [[]]}), "`init`"),
        (json!({"commands": []}), "`commands` is empty"),
        (json!({"expiry_s": [3, 2]}), "`expiry_s`"),
        (json!({"data": {}}), "one of `size`"),
        (
            json!({"data": {"size": 1, "sizes": [1, 2]}}),
            "one of `size`",
        ),
        (json!({"data": {"sizes": [2, 1]}}), "`sizes`"),
        (json!({"data": {"weighted": []}}), "`weighted`"),
        (json!({"data": {"size": 1u64 << 40}}), "larger"),
        (json!({"pipline": 3}), "pipline"),
    ] {
        let text = refusal(change);
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn wrong_commands_say_what_is_wrong() {
    let keyed = |keys: Value| json!({"argv": ["GET", "{key}"], "keys": keys});
    for (spec, part) in [
        (json!({"argv": []}), "no name"),
        (json!({"argv": ["A"], "transaction": [["B"]]}), "both"),
        (json!({"argv": ["A"], "share": 0}), "`share`"),
        (json!({"argv": ["GET", "{key}"]}), "needs `keys`"),
        (json!({"argv": ["A", "{random}"]}), "needs `keys`"),
        (json!({"argv": ["A", "{expiry}"]}), "needs `expiry_s`"),
        (json!({"argv": ["A", "{script:x}"]}), "has no \"x\""),
        (
            json!({"argv": ["A", "{data}", "{key}"], "keys": {"last": 5}}),
            "before it",
        ),
        (keyed(json!({"first": 5, "last": 4})), "first <= last"),
        (keyed(json!({"last": 4, "center": 2})), "gaussian"),
        (keyed(json!({"last": 4, "exponent": 2})), "zipf"),
        (
            keyed(json!({"last": 4, "pattern": "zipf", "exponent": 5.5})),
            "`exponent`",
        ),
        (
            keyed(json!({"last": 4, "pattern": "gaussian", "center": 9})),
            "`center`",
        ),
        (
            keyed(json!({"last": 4, "pattern": "gaussian", "deviation": 0})),
            "`deviation`",
        ),
        (
            keyed(json!({"last": 4, "pattern": "parallel"})),
            "fewer keys",
        ),
        (json!({"argv": ["A"], "reply": []}), "empty list"),
        (json!({"argv": ["A"], "value": true}), "`value` needs"),
        (
            json!({"transaction": [["A"]], "reply": "status"}),
            "not for transactions",
        ),
        (
            json!({"argv": ["GET", "{key}"], "keys": {"last": 5}, "value": true, "reply": "array"}),
            "a `value` is",
        ),
    ] {
        let text = command(spec);
        assert!(text.contains(part), "{part}: {text}");
    }
}
