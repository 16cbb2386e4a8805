//! Slices: one variant runs, all others stand still.

use crate::halt::Halt;
use crate::limited::Waited;
use crate::run_state::RunState;
use crate::totals::Reading;
use crate::variant::Variant;
use ensign_host::clock;
use ensign_protocol::records::{Record, Slice};
use ensign_protocol::WarningCode;
use std::os::fd::AsRawFd;

const OVERSHOOT_NS: u64 = 5_000_000;
/// Wake-ups later than this are chance, not habit.
const HABITUAL_LATENESS_NS: f64 = 200_000.0;

struct Row {
    variant: u16,
    filler: bool,
    start_ns: u64,
    wall_ns: u64,
    cpu_ns: u64,
    load_cpu_ns: u64,
    cpu_wait_ns: Option<u64>,
    operations: Option<u64>,
}

fn waited_ns(now: &Reading, before: &Reading) -> Option<u64> {
    let before_ns = before.cpu_wait_ns.unwrap_or(0);
    now.cpu_wait_ns.map(|ns| ns.saturating_sub(before_ns))
}

/// The slices of one execution, kept in memory until its end.
#[derive(Default)]
pub(crate) struct Turns {
    rows: Vec<Row>,
    first_ns: Option<u64>,
    end_ns: u64,
    running_ns: u64,
    lateness_ns: f64,
}

impl Turns {
    /// Lets a variant run for a slice, or (without a length) until it ends; gives the time it ran.
    pub(crate) fn slice(
        &mut self,
        run_state: &mut RunState,
        variant: &mut Variant,
        length_ns: Option<u64>,
    ) -> Result<u64, Halt> {
        let filler = variant.is_finished();
        let limit = [length_ns, variant.left_ns()].into_iter().flatten().min();
        let mut fds = [-1; 2];
        for (fd, process) in fds.iter_mut().zip(variant.processes()) {
            *fd = process.child.pidfd.as_raw_fd();
        }
        if length_ns.is_some() && run_state.samples_code {
            variant.sample(run_state);
        }
        let start = clock::now_ns();
        run_state.process_trees.tree(variant.tree).thaw()?;
        let end = limit.map(|limit| start + limit);
        let wake = end.map(|end| end - (self.lateness_ns as u64).min(end - start));
        let whole = length_ns.is_none();
        let waited = run_state.wait_limited(variant.tree, wake, |run_state, wake| {
            variant.wait(run_state, &fds, wake, whole)
        })?;
        let stop = clock::now_ns();
        if let (Waited::TimeOut, Some(end)) = (waited, end) {
            self.learn_lateness(stop as f64 - end as f64);
        }
        run_state.process_trees.tree(variant.tree).freeze()?;
        let now = clock::now_ns();
        self.warn_overshoot(run_state, variant, now - stop);
        run_state.process_trees.collect();
        self.book(run_state, variant, (start, now - start), filler)?;
        variant.look(run_state);
        if let Waited::Beyond(limit) = waited {
            return Err(variant.beyond(run_state, limit));
        }
        variant.ran(run_state, now - start)?;
        Ok(now - start)
    }

    /// Lets a variant's server answer what the meter sends it for a slice, or (without a length) until
    /// everything is sent. The time is that from the first send to the last reply.
    pub(crate) fn drive(
        &mut self,
        run_state: &mut RunState,
        variant: &mut Variant,
        length_ns: Option<u64>,
    ) -> Result<u64, Halt> {
        let filler = variant.is_finished();
        let length_ns = [length_ns, variant.left_ns()].into_iter().flatten().min();
        let start = clock::now_ns();
        run_state.process_trees.tree(variant.tree).thaw()?;
        let burst = variant.send(run_state, length_ns);
        let stop = clock::now_ns();
        run_state.process_trees.tree(variant.tree).freeze()?;
        self.warn_overshoot(run_state, variant, clock::now_ns() - stop);
        run_state.process_trees.collect();
        let burst = match burst {
            Ok(burst) => burst,
            Err(error) => {
                let halt = variant.drive_failed(run_state, error);
                return variant.forgive_filler(run_state, halt, filler).map(|()| 0);
            }
        };
        self.book(run_state, variant, (start, burst.wall_ns), filler)?;
        if let Some(row) = self.rows.last_mut() {
            row.operations = Some(burst.operations);
        }
        variant.look(run_state);
        if let Some(limit) = run_state.look_at_limits(variant.tree) {
            return Err(variant.beyond(run_state, limit));
        }
        variant.drove(run_state, burst.wall_ns)?;
        Ok(burst.wall_ns)
    }

    /// Timers fire a little late, as a rule by the same amount.
    fn learn_lateness(&mut self, error_ns: f64) {
        let learned = self.lateness_ns + error_ns / 8.0;
        self.lateness_ns = learned.clamp(0.0, HABITUAL_LATENESS_NS);
    }

    fn warn_overshoot(&self, run_state: &mut RunState, variant: &Variant, took_ns: u64) {
        if took_ns > OVERSHOOT_NS {
            let ms = took_ns as f64 / 1e6;
            let text =
                format!("took {ms:.1} ms to stop; its CPU time is right, its slice is longer");
            run_state.warn(WarningCode::Overshoot, variant.name(), text);
        }
    }

    fn book(
        &mut self,
        run_state: &mut RunState,
        variant: &mut Variant,
        (start, wall_ns): (u64, u64),
        filler: bool,
    ) -> Result<(), Halt> {
        let reading = variant.reading(run_state)?;
        let cpu_ns = (reading.main - variant.last.main).cpu_ns;
        // What waits while all stand still, or between two slices, is none of this slice's.
        let cpu_wait_ns = waited_ns(&reading, &variant.last)
            .map(|ns| ns.min(variant.taken_at_most_ns(wall_ns, cpu_ns)));
        variant.book_wait(cpu_wait_ns);
        let first = *self.first_ns.get_or_insert(start);
        self.end_ns = clock::now_ns();
        self.running_ns += wall_ns;
        self.rows.push(Row {
            variant: variant.tree as u16,
            filler,
            start_ns: start - first,
            wall_ns,
            cpu_ns,
            cpu_wait_ns,
            load_cpu_ns: (reading.load - variant.last.load).cpu_ns,
            operations: None,
        });
        variant.last = reading;
        Ok(())
    }

    /// Share of the time from the first to the last slice in which a variant was running.
    pub(crate) fn running_share(&self) -> f64 {
        let span = self
            .end_ns
            .saturating_sub(self.first_ns.unwrap_or(0))
            .max(1);
        self.running_ns as f64 / span as f64
    }

    pub(crate) fn tell(&self, run_state: &mut RunState, variants: &[Variant]) -> Result<(), Halt> {
        for row in &self.rows {
            if variants[usize::from(row.variant)].is_out() {
                continue;
            }
            let record = Record::Slice(Slice {
                execution: run_state.execution,
                variant: &variants[usize::from(row.variant)].spec.name,
                start_ns: row.start_ns,
                wall_ns: row.wall_ns,
                cpu_ns: row.cpu_ns,
                load_cpu_ns: row.load_cpu_ns,
                cpu_wait_ns: row.cpu_wait_ns,
                filler: row.filler,
                operations: row.operations,
            });
            run_state.out.put(&run_state.waiter, &record)?;
        }
        Ok(())
    }
}
