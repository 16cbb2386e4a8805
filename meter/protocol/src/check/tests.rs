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
            r#"{{"schema":1,"colour":"red","variants":[{{"name":"a","program":{{"argv":["x"],"limits":{limits}}}}}]}}"#
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
