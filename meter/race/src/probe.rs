//! What is possible on this machine, for this user: tried, not assumed.

use crate::commands::counters::Available;
use crate::processes::cgroup;
use crate::run;
use ensign_protocol::records::{Probe, Processor};
use ensign_protocol::request::COUNTERS;

pub fn probe(in_scope: bool) -> String {
    let tried = run::try_group();
    let parent = cgroup::parent();
    let available = Available::probe(&COUNTERS.map(String::from));
    let probe = Probe {
        r#type: "probe",
        meter: env!("CARGO_PKG_VERSION"),
        freezer: if tried.is_ok() { "cgroup" } else { "signal" },
        cgroup: parent.as_ref().map(|dir| dir.display().to_string()),
        hierarchy: parent.as_deref().map(cgroup::hierarchy),
        obstacle: tried.err(),
        systemd_scope: in_scope,
        counters_scope: available.scope(),
        counters: available.names,
    };
    serde_json::to_string(&probe).unwrap_or_default()
}

pub fn processor() -> String {
    let registers = ensign_host::processor::feature_registers();
    let said = Processor {
        r#type: "processor",
        registers,
    };
    serde_json::to_string(&said).unwrap_or_default()
}
