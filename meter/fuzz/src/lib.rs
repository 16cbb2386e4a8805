//! The parsers of the meter that read what others wrote, each as a function of bytes: it may refuse
//! them, and must not panic, hang, or take memory without a bound.

#![forbid(unsafe_code)]

use ensign_protocol::request::{Request, Verb};
use ensign_protocol::schema::Question;
use ensign_protocol::Problem;

pub type Target = (&'static str, fn(&[u8]));

/// All of them; the names are those of folders in `corpus`.
pub const TARGETS: [Target; 12] = [
    ("units", ensign_code::fuzz::units),
    ("places", ensign_code::fuzz::places),
    ("code", ensign_code::fuzz::code),
    ("replies", ensign_load::fuzz::replies),
    ("sent", ensign_load::fuzz::sent),
    ("request", request),
    ("check", check),
    ("linked", ensign_record::fuzz::linked),
    ("settings", ensign_record::fuzz::settings),
    ("question", ensign_record::fuzz::question),
    ("printed", ensign_race::fuzz::printed),
    ("kernel", ensign_race::fuzz::kernel),
];

pub fn target(name: &str) -> Option<fn(&[u8])> {
    let found = TARGETS.iter().find(|(each, _)| *each == name);
    found.map(|(_, run)| *run)
}

/// A request to race, to execute or to drive.
fn request(data: &[u8]) {
    for verb in [Verb::Race, Verb::Exec, Verb::Drive] {
        if let Err(found) = Request::parse(verb, data) {
            assert!(!found.is_empty());
            let _ = Problem::listed(&found);
        }
    }
}

/// A question about a request.
fn check(data: &[u8]) {
    if let Ok(asked) = serde_json::from_slice::<Question>(data) {
        let _ = Request::read(asked.verb, asked.request);
    }
}
