//! What variants have mapped when they stand still.

mod common;

use common::{freezers, run, sh, variant, Place};
use serde_json::{json, Value};

fn names(record: &Value) -> Vec<String> {
    let mapped = record["mapped"].as_array().unwrap();
    let paths = mapped.iter().map(|file| file["path"].as_str().unwrap());
    paths
        .map(|path| path.rsplit('/').next().unwrap().into())
        .collect()
}

/// What is executed by that name.
fn file_of(name: &str) -> String {
    let folders = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let path = found.filter_map(|path| path.canonicalize().ok()).next();
    let path = path.unwrap();
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_long_program_is_seen_and_the_meter_itself_is_not() {
    for freezer in freezers() {
        let place = Place::new();
        let busy = sh(&common::busy(60_000));
        let request = place.request(
            freezer,
            json!({"slice_ns": 1_000_000, "variants": [variant("a", busy.clone()), variant("b", busy)]}),
        );
        let records = run("race", &request);
        records.assert_complete();
        for record in records.of("variant") {
            let names = names(record);
            assert!(
                names.iter().any(|name| name.starts_with("libc")),
                "{names:?}"
            );
            assert!(!names.contains(&"ensign-meter".to_string()));
            assert!(record["mapped"][0]["inode"].as_u64().unwrap() > 0);
        }
    }
}

#[test]
fn a_program_in_a_whole_execution_is_seen_and_so_are_its_children() {
    let sleep = file_of("sleep");
    for freezer in freezers() {
        let place = Place::new();
        // It ends after many looks, however late these are.
        let parent = sh("sleep 5; :");
        let request = place.request(
            freezer,
            json!({"mode": "alternating", "variants": [variant("a", parent.clone()), variant("b", parent)]}),
        );
        let records = run("race", &request);
        records.assert_complete();
        for record in records.of("variant") {
            let names = names(record);
            assert!(names.contains(&sleep), "{names:?}");
            assert!(!names.contains(&"ensign-meter".to_string()));
        }
    }
}
