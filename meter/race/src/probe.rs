//! What is possible on this machine, for this user: tried, not assumed.

use crate::commands::counters::Available;
use crate::processes::cgroup;
use crate::run::Run;
use ensign_protocol::records::Probe;
use ensign_protocol::request::COUNTERS;

pub fn probe(in_scope: bool) -> String {
    let run = Run::new(None);
    let tried = match &run.cgroup {
        Some(dir) => cgroup::create(dir),
        None => Err("there is no cgroup v2 hierarchy".into()),
    };
    let parent = run.cgroup.as_deref().and_then(|dir| dir.parent());
    if let Some(dir) = run.cgroup.as_deref().filter(|_| tried.is_ok()) {
        cgroup::destroy(dir);
    }
    let available = Available::probe(&COUNTERS.map(String::from));
    let probe = Probe {
        r#type: "probe",
        meter: env!("CARGO_PKG_VERSION"),
        freezer: if tried.is_ok() { "cgroup" } else { "signal" },
        cgroup: parent.map(|dir| dir.display().to_string()),
        hierarchy: parent.map(cgroup::hierarchy),
        obstacle: tried.err(),
        systemd_scope: in_scope,
        counters_scope: available.scope(),
        counters: available.names,
    };
    serde_json::to_string(&probe).unwrap_or_default()
}
