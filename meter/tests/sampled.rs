//! Where variants stand at the ends of their slices.

mod common;

use common::{freezers, run, sh, variant, Place};
use serde_json::{json, Value};

fn total(samples: &Value) -> u64 {
    let count = |key: &str| samples[key].as_u64().unwrap();
    let files = samples["files"].as_array().unwrap();
    let places = files
        .iter()
        .flat_map(|file| file["places"].as_array().unwrap());
    let found: u64 = places.map(|place| place[1].as_u64().unwrap()).sum();
    found + count("elsewhere") + count("in_calls") + count("unknown")
}

#[test]
fn each_slice_tells_where_the_program_was() {
    for freezer in freezers() {
        let place = Place::new();
        let busy = sh(&common::busy(60_000));
        let request = place.request(
            freezer,
            json!({"slice_ns": 1_000_000, "code_samples": true,
                   "variants": [variant("a", busy.clone()), variant("b", busy)]}),
        );
        let records = run("race", &request);
        records.assert_complete();
        for record in records.of("variant") {
            let (samples, slices) = (&record["code_samples"], record["slices"].as_u64().unwrap());
            // At the end of the last slice there is nobody.
            let seen = total(samples);
            assert!(seen > 0 && seen < slices.max(2), "{seen} of {slices}");
            let files = samples["files"].as_array().unwrap();
            assert!(!files.is_empty(), "{samples}");
            let mapped = record["mapped"].as_array().unwrap();
            for file in files {
                let known = |each: &&Value| each["path"] == file["path"];
                assert!(mapped.iter().any(|each| known(&each)), "{file}");
            }
        }
    }
}

#[test]
fn nobody_looks_unasked() {
    let place = Place::new();
    let busy = sh(&common::busy(1_000));
    let request = place.request(
        "auto",
        json!({"variants": [variant("a", busy.clone()), variant("b", busy)]}),
    );
    let records = run("race", &request);
    records.assert_complete();
    for record in records.of("variant") {
        assert!(record.get("code_samples").is_none());
    }
}
