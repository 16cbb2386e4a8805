//! What an execution came to, as records.

use super::Racing;
use crate::halt::Halt;
use crate::run_state::RunState;
use crate::totals::Total;
use crate::turns::Turns;
use ensign_load::Report;
use ensign_protocol::records::{DriveFacts, Mapped, RaceMapped, Record, VariantTotal};
use ensign_protocol::WarningCode;
use std::collections::BTreeMap;

impl Racing<'_> {
    pub(super) fn tell(
        &mut self,
        run_state: &mut RunState,
        turns: &Turns,
        valid: bool,
    ) -> Result<(), Halt> {
        if valid {
            turns.tell(run_state, &self.variants)?;
            for index in 0..self.variants.len() {
                if !self.variants[index].is_out() {
                    self.tell_variant(run_state, index)?;
                }
            }
        }
        run_state.tell()
    }

    fn tell_variant(&mut self, run_state: &mut RunState, index: usize) -> Result<(), Halt> {
        let spec = self.variants[index].spec;
        let total = self.variants[index].total().cloned().unwrap_or_default();
        self.sums_ns[index] += total.wall_ns;
        if spec.load.is_some() {
            let threads = spec.drive().map_or(1, |drive| drive.threads);
            warn_bottleneck(run_state, (&spec.name, threads), &total);
        }
        let record = Record::Variant(Box::new(VariantTotal {
            execution: run_state.execution,
            variant: &spec.name,
            wall_ns: total.wall_ns,
            cpu_ns: total.usage.cpu_ns,
            user_ns: total.usage.user_ns,
            system_ns: total.usage.system_ns,
            load_cpu_ns: total.load_cpu_ns,
            operations: total.operations,
            peak_memory_bytes: total.footprint.peak_memory_bytes,
            voluntary_switches: total.footprint.voluntary_switches,
            involuntary_switches: total.footprint.involuntary_switches,
            page_faults: total.footprint.page_faults,
            slices: total.slices,
            counters: run_state.counters.named(&total.counters),
            cpu_wait_ns: total.cpu_wait_ns,
            activity: total.activity,
            load_activity: total.load_activity,
            score: total.score,
            scores: &total.scores,
            report: total.report.as_deref(),
            digest: total.digest,
            mapped: mapped(&self.variants[index].mapped),
            code_samples: (run_state.samples_code).then(|| self.variants[index].sampler.counts()),
            drive: total.drive.as_ref().map(drive_facts),
        }));
        run_state.out.put(&run_state.waiter, &record)
    }
}

/// The load generator is busy all the time and the server is not: its own speed is measured.
fn warn_bottleneck(run_state: &mut RunState, (variant, threads): (&str, usize), total: &Total) {
    let share = |cpu_ns: u64| cpu_ns as f64 / total.wall_ns.max(1) as f64;
    let (load, server) = (share(total.load_cpu_ns), share(total.usage.cpu_ns));
    if load >= 0.95 * threads as f64 && server < 0.90 {
        let text = format!(
            "the load generator used {:.0} % of a CPU, the server {:.0} %: the generator is the bottleneck",
            load * 100.0,
            server * 100.0
        );
        run_state.warn(WarningCode::LoadBottleneck, Some(variant), text);
    }
}

fn mapped(seen: &BTreeMap<Mapped, u32>) -> Vec<RaceMapped<'_>> {
    seen.iter()
        .map(|(file, &last_look)| RaceMapped { file, last_look })
        .collect()
}

fn drive_facts(report: &Report) -> DriveFacts {
    DriveFacts {
        bytes_sent: report.bytes_sent,
        bytes_received: report.bytes_received,
        latency_ns: report.latency_ns,
    }
}
