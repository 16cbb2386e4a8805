//! In the place of a compiler: what is run, what is written down.

mod common;

use common::Place;
use serde_json::{json, Value};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

struct Bench {
    place: Place,
}

impl Bench {
    fn new(more: Value) -> Bench {
        let bench = Bench {
            place: Place::new(),
        };
        let bin = bench.place.dir.join("bin");
        fs::create_dir_all(&bin).unwrap();
        for name in ["cc", "ar", "fails", "strip", "cache"] {
            symlink(env!("CARGO_BIN_EXE_ensign-meter"), bin.join(name)).unwrap();
        }
        let mut settings = json!({
            "schema": 1,
            "log": bench.place.path("calls.jsonl"),
            "tools": {
                "cc": {"tool": "cc", "program": "/usr/bin/cc"},
                "ar": {"tool": "ar", "program": "/usr/bin/ar"},
                "fails": {"tool": "cc", "program": "/bin/false"},
                "strip": {"tool": "strip", "program": "/usr/bin/strip"},
                "cache": {"tool": "launcher", "program": "/usr/bin/env"},
            },
        });
        for (key, value) in more.as_object().unwrap() {
            settings[key] = value.clone();
        }
        fs::write(bench.place.dir.join("settings.json"), settings.to_string()).unwrap();
        fs::write(bench.place.dir.join("a.c"), "int main(void) { return 0; }").unwrap();
        bench
    }

    /// A shell line, as a build tool would run it.
    fn run(&self, line: &str) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new("/bin/sh")
            .args(["-c", line])
            .current_dir(&self.place.dir)
            .env("PATH", format!("{}:{path}", self.place.path("bin")))
            .env("ENSIGN_RECORDER", self.place.path("settings.json"))
            .output()
            .unwrap()
    }

    fn calls(&self) -> Vec<Value> {
        let text = self.place.read("calls.jsonl");
        let parse = |line| serde_json::from_str(line).unwrap();
        text.lines().map(parse).collect()
    }
}

#[test]
fn sources_of_their_own_get_other_flags_and_another_compiler() {
    let units = |inverted: bool| {
        let bench = Bench::new(json!({
            "units": {
                "root": "/placeholder", "patterns": ["sub/?.c"], "inverted": inverted,
                "told": ["-O1", "-g"], "flags": ["-O3", "-g"], "programs": {"cc": "/usr/bin/c++"},
            },
        }));
        let settings = bench.place.dir.join("settings.json");
        let text = fs::read_to_string(&settings).unwrap();
        let root = bench.place.dir.to_str().unwrap();
        fs::write(&settings, text.replace("/placeholder", root)).unwrap();
        fs::create_dir_all(bench.place.dir.join("sub")).unwrap();
        fs::copy(bench.place.dir.join("a.c"), bench.place.dir.join("sub/b.c")).unwrap();
        let done = bench.run(
            "cc -O1 -g -c a.c && cd sub && cc -O1 -g -c ../sub/b.c && cc -O1 -g -c ./b.c ../a.c",
        );
        assert!(done.status.success(), "{done:?}");
        bench.calls()
    };
    let said = |calls: &[Value]| -> Vec<(String, bool)> {
        let program = |call: &Value| call["program"].as_str().unwrap().to_string();
        let faster = |call: &Value| call["ran"].as_array().unwrap().contains(&json!("-O3"));
        calls
            .iter()
            .map(|call| (program(call), faster(call)))
            .collect()
    };
    assert_eq!(
        units(false)[1]["ran"],
        json!(["cc", "-O3", "-g", "-c", "../sub/b.c"])
    );
    let (own, usual) = (
        ("/usr/bin/c++".to_string(), true),
        ("/usr/bin/cc".to_string(), false),
    );
    assert_eq!(
        said(&units(false)),
        [usual.clone(), own.clone(), usual.clone()]
    );
    assert_eq!(said(&units(true)), [own, usual.clone(), usual]);
}

#[test]
fn calls_are_run_and_written_down() {
    let bench = Bench::new(json!({}));
    let done = bench.run("cc -c a.c && ar rcs lib.a a.o && cc -o program a.o && ./program");
    assert!(done.status.success(), "{done:?}");
    let calls = bench.calls();
    let tools: Vec<_> = calls.iter().map(|call| call["tool"].clone()).collect();
    assert_eq!(tools, ["cc", "ar", "cc"]);
    assert_eq!(calls[0]["argv"], json!(["cc", "-c", "a.c"]));
    assert_eq!(calls[0]["ran"], calls[0]["argv"]);
    assert_eq!(calls[0]["exit"], 0);
    assert_eq!(calls[0]["line"]["sources"], json!(["a.c"]));
    assert_eq!(calls[1]["line"], Value::Null);
    assert_eq!(calls[2]["line"]["output"], "program");
    let output = &calls[2]["outputs"][0];
    assert_eq!(output["path"], bench.place.path("program"));
    let size = fs::metadata(bench.place.dir.join("program")).unwrap().len();
    assert_eq!(output["size_bytes"], size);
    let sum = bench.run("sha256sum program");
    let sum = String::from_utf8(sum.stdout).unwrap();
    assert!(sum.starts_with(output["sha256"].as_str().unwrap()));
}

#[test]
fn links_say_what_they_took() {
    let bench = Bench::new(json!({}));
    fs::write(bench.place.dir.join("b.c"), "int b(void) { return 0; }").unwrap();
    fs::create_dir(bench.place.dir.join("d")).unwrap();
    let line = "cc -g -c a.c b.c && ar rcs d/libb.a b.o && ar rcT thin.a b.o && \
                cc -o p a.o -Ld -lb -Wl,thin.a -lc && strip a.o && strip a.o";
    let done = bench.run(line);
    assert!(done.status.success(), "{done:?}");
    let calls = bench.calls();
    let (compiled, link, strip) = (&calls[0], &calls[3], &calls[4]);
    let kinds: Vec<_> = link["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| &i["kind"])
        .collect();
    assert_eq!(kinds, ["object", "archive", "thin"]);
    assert_eq!(
        link["inputs"][0]["sha256"],
        compiled["outputs"][0]["sha256"]
    );
    for archive in [1, 2] {
        let member = &link["inputs"][archive]["members"][0];
        assert_eq!(member["name"], "b.o");
        assert_eq!(member["sha256"], compiled["outputs"][1]["sha256"]);
    }
    assert_eq!(
        strip["inputs"][0]["sha256"],
        compiled["outputs"][0]["sha256"]
    );
    assert_ne!(
        strip["outputs"][0]["sha256"],
        compiled["outputs"][0]["sha256"]
    );
    assert_eq!(calls[5]["outputs"], json!([]), "nothing was left to strip");
}

#[test]
fn behind_a_launcher_the_compiler_is_recorded_and_changed() {
    let bench = Bench::new(json!({"compile": ["-DX=1"]}));
    let done = bench.run("cache A=b cc -c a.c && cache --version");
    assert!(done.status.success(), "{done:?}");
    let calls = bench.calls();
    assert_eq!(calls[0]["tool"], "cc");
    assert_eq!(calls[0]["program"], "/usr/bin/cc");
    assert_eq!(calls[0]["ran"], json!(["cc", "-c", "a.c", "-DX=1"]));
    assert_eq!(calls[0]["outputs"].as_array().unwrap().len(), 1);
    assert_eq!(calls[1]["tool"], "launcher");
}

#[test]
fn failures_come_through() {
    let bench = Bench::new(json!({}));
    let done = bench.run("cc -c nowhere.c");
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("nowhere.c"));
    assert_eq!(bench.run("fails x.c").status.code(), Some(1));
    let exits: Vec<_> = bench.calls().iter().map(|c| c["exit"].clone()).collect();
    assert_eq!(exits, [1, 1]);
    assert_eq!(bench.calls()[0]["outputs"], json!([]));
}

#[test]
fn flags_are_changed_for_projects_that_do_not_listen() {
    let changes = json!({"compile": ["-DX=1"], "link": ["-Wl,-z,now"], "remove": ["-O?"]});
    let bench = Bench::new(changes);
    let done = bench.run("cc -O2 -c a.c && cc -O2 a.o -o p && cc --version");
    assert!(done.status.success(), "{done:?}");
    let calls = bench.calls();
    assert_eq!(calls[0]["argv"], json!(["cc", "-O2", "-c", "a.c"]));
    assert_eq!(calls[0]["ran"], json!(["cc", "-c", "a.c", "-DX=1"]));
    assert_eq!(
        calls[1]["ran"],
        json!(["cc", "a.o", "-o", "p", "-Wl,-z,now"])
    );
    assert_eq!(calls[2]["ran"], json!(["cc", "--version"]));
}

#[test]
fn many_calls_at_once_leave_whole_lines() {
    let bench = Bench::new(json!({}));
    let done = bench.run("for i in 1 2 3 4 5 6 7 8; do cc -c a.c -o $i.o & done; wait");
    assert!(done.status.success());
    assert_eq!(bench.calls().len(), 8);
}

#[test]
fn a_wrapper_that_calls_the_compiler_again_is_one_call() {
    let bench = Bench::new(json!({}));
    let wrapper = bench.place.dir.join("wrapper");
    fs::write(&wrapper, "#!/bin/sh\nexec cc \"$@\"\n").unwrap();
    bench.run("chmod +x wrapper");
    let settings = json!({
        "schema": 1,
        "log": bench.place.path("calls.jsonl"),
        "tools": {
            "cc": {"tool": "cc", "program": "/usr/bin/cc"},
            "fails": {"tool": "cc", "program": wrapper},
        },
    });
    fs::write(bench.place.dir.join("settings.json"), settings.to_string()).unwrap();
    let done = bench.run("fails -c a.c");
    assert!(done.status.success(), "{done:?}");
    assert_eq!(bench.calls().len(), 1);
}

#[test]
fn what_is_wrong_is_said() {
    let bench = Bench::new(json!({"schema": 2}));
    let done = bench.run("cc -c a.c");
    assert_eq!(done.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&done.stderr).contains("schema 2"));
    let bench = Bench::new(json!({"log": "/nowhere/calls.jsonl"}));
    let done = bench.run("cc -c a.c");
    assert_eq!(done.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&done.stderr).contains("/nowhere/calls.jsonl"));
}
