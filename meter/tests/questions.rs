//! What is answered line by line, without anything being run.

use serde_json::{json, Value};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn ask(verb: &str, questions: &[Value]) -> Output {
    let mut meter = Command::new(env!("CARGO_BIN_EXE_ensign-meter"))
        .arg(verb)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = questions.iter().map(|each| format!("{each}\n")).collect();
    let mut input = meter.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    meter.wait_with_output().unwrap()
}

fn answers(verb: &str, questions: &[Value]) -> Vec<Value> {
    let done = ask(verb, questions);
    assert!(done.status.success());
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn requests_are_checked_without_being_run() {
    let touch = |name: &str| json!({"schema": 1, "process": {"argv": [name, "made"]}});
    let found = answers(
        "check",
        &[
            json!({"verb": "exec", "request": touch("no-such-program")}),
            json!({"verb": "exec", "request": touch("")}),
            json!({"verb": "race", "request": {"schema": 1, "slice_ns": 1, "variants": []}}),
        ],
    );
    assert_eq!(found[0], json!({"problems": []}));
    assert_eq!(found[1]["problems"][0]["path"], "/process/argv");
    let places = found[2]["problems"].as_array().unwrap();
    let places: Vec<_> = places.iter().map(|each| &each["path"]).collect();
    assert_eq!(places, ["/variants", "/slice_ns"]);
}

#[test]
fn command_lines_are_read_without_being_run() {
    let found = answers(
        "parse",
        &[
            json!({"tool": "cc", "arguments": ["-c", "a.c", "@no-such-file"]}),
            json!({"tool": "ar", "arguments": ["rcs", "lib.a", "a.o"]}),
        ],
    );
    assert_eq!(found[0]["outputs"], json!(["a.o"]));
    assert_eq!(found[0]["line"]["files"], json!([1, 2]));
    assert_eq!(found[1], json!({"line": Value::Null, "outputs": ["lib.a"]}));
}

#[test]
fn what_is_no_question_is_refused() {
    for verb in ["check", "parse"] {
        assert!(answers(verb, &[]).is_empty());
        let done = ask(verb, &[json!({"color": "red"})]);
        assert_eq!(done.status.code(), Some(2));
    }
}
