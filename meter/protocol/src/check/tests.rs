use super::*;

fn race(text: &str) -> Result<Race, String> {
    match Request::parse(Verb::Race, text.as_bytes())? {
        Request::Race(race) => Ok(race),
        Request::Exec(_) | Request::Drive(_) => unreachable!(),
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
