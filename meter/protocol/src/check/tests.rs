use super::*;

fn race(text: &str) -> Result<Race, String> {
    match Request::parse(Verb::Race, text.as_bytes()) {
        Ok(Request::Race(race)) => Ok(race),
        Ok(Request::Exec(_) | Request::Drive(_)) => unreachable!(),
        Err(problems) => Err(Problem::listed(&problems)),
    }
}

#[test]
fn defaults_are_those_of_the_protocol() {
    let race = race(r#"{"schema":1,"variants":[{"name":"a","program":{"argv":["x"]}}]}"#).unwrap();
    assert_eq!(race.mode, Mode::Interleaved);
    assert_eq!(
        (race.slice_ns, race.executions, race.seed),
        (5_000_000, 1, 0)
    );
    assert_eq!(race.ports, (20_000, 29_999));
    assert!(race.env_padding && !race.hold && race.variants[0].copy_program);
}

#[test]
fn unknown_keys_are_ignored_but_unknown_limits_are_not() {
    let variant = |limits: &str| {
        format!(
            r#"{{"schema":1,"color":"red","variants":[{{"name":"a","program":{{"argv":["x"],"limits":{limits}}}}}]}}"#
        )
    };
    assert!(race(&variant("{}")).is_ok());
    assert!(race(&variant(r#"{"file_byts":3}"#)).is_err());
}

#[test]
fn wrong_requests_say_what_is_wrong() {
    for (text, part) in [
        (r#"{"schema":2,"variants":[]}"#, "`schema` is 2"),
        (r#"{"schema":1,"variants":[]}"#, "`variants` is empty"),
        (
            r#"{"schema":1,"variants":[{"name":"a","program":{"argv":[]}}]}"#,
            "`argv`",
        ),
        (
            r#"{"schema":1,"slice_ns":5,"variants":[{"name":"a","program":{"argv":["x"]}}]}"#,
            "`slice_ns`",
        ),
        (
            r#"{"schema":1,"variants":[{"name":"a","program":{"argv":["x"]}},{"name":"a","program":{"argv":["x"]}}]}"#,
            "two variants",
        ),
        (
            r#"{"schema":1,"variants":[{"name":"a","program":{"argv":["x"]},"load":{"process":{"argv":["y"]}}}]}"#,
            "{port}",
        ),
        (
            r#"{"schema":1,"counters":["cycle"],"variants":[{"name":"a","program":{"argv":["x"]}}]}"#,
            "cycle",
        ),
        ("not json", "not as expected"),
    ] {
        let error = race(text).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn every_mistake_has_its_place() {
    let request = br#"{"schema":1,"slice_ns":5,"variants":[
        {"name":"a","program":{"argv":["s","{port}"]},"load":{"drive":{"operations":9,"pipeline":0,
            "commands":[{"argv":["SCAN","{cursor}"],"keys":{"last":9,"width":65}}]}}},
        {"name":"a","program":{"argv":["s","{port}"],"cpus":[]},"load":{"process":{"argv":["x"]},
            "operations_pattern":"("}}]}"#;
    let found = Request::parse(Verb::Race, request).unwrap_err();
    let places: Vec<_> = found.iter().map(|p| (p.code, p.path.as_str())).collect();
    assert_eq!(
        places,
        [
            (Range, "/slice_ns"),
            (Range, "/variants/0/load/drive/pipeline"),
            (Range, "/variants/0/load/drive/commands/0/keys/width"),
            (Conflict, "/variants/0/load/drive/commands/0/argv"),
            (Conflict, "/variants/0/load"),
            (Conflict, "/variants/1/name"),
            (Missing, "/variants/1/program/cpus"),
            (Range, "/variants/1/load/operations_pattern"),
        ]
    );
}

#[test]
fn values_of_another_type_have_their_place_too() {
    let place = |text: &str| {
        let found = Request::parse(Verb::Race, text.as_bytes()).unwrap_err();
        assert_eq!(found.len(), 1);
        (found[0].code, found[0].path.clone())
    };
    let drive = |drive: &str| {
        format!(
            r#"{{"schema":1,"variants":[{{"name":"a","program":{{}},"load":{{"drive":{drive}}}}}]}}"#
        )
    };
    assert_eq!(place("{"), (Syntax, String::new()));
    for (wrong, path) in [
        (r#"{"operations":"x","commands":[]}"#, "/operations"),
        (
            r#"{"operations":1,"commands":[{"share":-1}]}"#,
            "/commands/0/share",
        ),
        (r#"{"operations":1,"commands":[],"pipline":1}"#, "/pipline"),
    ] {
        assert_eq!(
            place(&drive(wrong)),
            (Shape, format!("/variants/0/load/drive{path}"))
        );
    }
}

mod any_request {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use serde_json::json;

    fn good() -> Value {
        json!({
            "schema": 1, "mode": "driven", "slice_ns": 5_000_000, "ports": [1, 2], "budget_ns": null,
            "counters": ["cycles"], "variants": [{
                "name": "a",
                "program": {"argv": ["s", "{port}"], "env": {"a": "b"}, "cpus": [0], "limits": {"cpu_s": 1}},
                "preload": [{"argv": ["x"]}, {"drive": {"operations": 1, "commands": [{"argv": ["A"]}]}}],
                "ready": {"output": "x"},
                "load": {"drive": {
                    "operations": 9, "pipeline": 2, "init": [["A"]], "scripts": {"x": "y"},
                    "commands": [
                        {"argv": ["GET", "{key}"], "keys": {"last": 9, "pattern": "zipf"}, "value": true},
                        {"transaction": [["A", "{script:x}"]], "share": 3},
                    ],
                    "data": {"weighted": [[1, 2]]}, "expiry_s": [1, 2],
                }},
            }],
        })
    }

    /// Pointers to all values.
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_string());
        let inside: Vec<(String, &Value)> = match value {
            Value::Array(all) => (0..).map(|n: usize| n.to_string()).zip(all).collect(),
            Value::Object(all) => all.iter().map(|(key, each)| (escaped(key), each)).collect(),
            _ => Vec::new(),
        };
        for (step, each) in inside {
            places(each, &format!("{at}/{step}"), found);
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (0..3u64).prop_map(Value::from),
            "[{}a-z:/~(]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-z/~]{0,5}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// To a value, or to a key that an object has not.
    fn leads_somewhere(request: &Value, path: &str) -> bool {
        let mut here = request;
        let steps: Vec<&str> = path.split('/').skip(1).collect();
        for (depth, step) in steps.iter().enumerate() {
            match here.pointer(&format!("/{step}")) {
                Some(there) => here = there,
                // Where an object is due serde takes a list of its values, too.
                None if here.is_array() => return step.parse::<usize>().is_err(),
                None => return here.is_object() && depth + 1 == steps.len(),
            }
        }
        true
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn is_read_or_its_mistakes_have_places(
            changes in prop::collection::vec((any::<Index>(), any_value()), 1..4)
        ) {
            let mut request = good();
            for (which, value) in changes {
                let mut all = Vec::new();
                places(&request, "", &mut all);
                let place = which.get(&all).clone();
                *request.pointer_mut(&place).unwrap() = value;
            }
            let found = Request::read(Verb::Race, request.clone());
            for problem in found.err().unwrap_or_default() {
                prop_assert!(leads_somewhere(&request, &problem.path), "{}", problem);
                prop_assert!(!problem.text.is_empty());
            }
        }
    }

    #[test]
    fn the_good_one_is_good() {
        assert_eq!(Request::read(Verb::Race, good()).err(), None);
    }
}
