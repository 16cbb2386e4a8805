//! Slices: one arm runs, all others stand still.

use crate::arm::Arm;
use crate::clock;
use crate::halt::Halt;
use crate::records::{Record, Slice};
use crate::stage::Stage;
use crate::totals::Reading;
use std::os::fd::AsRawFd;

const OVERSHOOT_NS: u64 = 5_000_000;
/// Wake-ups later than this are chance, not habit.
const HABITUAL_LATENESS_NS: f64 = 200_000.0;

struct Row {
    arm: u16,
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
pub struct Turns {
    rows: Vec<Row>,
    counters: Vec<u64>,
    first_ns: Option<u64>,
    end_ns: u64,
    running_ns: u64,
    lateness_ns: f64,
}

impl Turns {
    /// Lets an arm run for a slice, or (without a length) until it ends; gives the time it ran.
    pub fn slice(
        &mut self,
        stage: &mut Stage,
        arm: &mut Arm,
        length_ns: Option<u64>,
    ) -> Result<u64, Halt> {
        let filler = arm.is_finished();
        let limit = [length_ns, arm.left_ns()].into_iter().flatten().min();
        let processes = [&arm.runner, &arm.server];
        let mut fds = [-1; 2];
        for (fd, process) in fds.iter_mut().zip(processes.iter().copied().flatten()) {
            *fd = process.child.pidfd.as_raw_fd();
        }
        let start = clock::now_ns();
        stage.forest.tree(arm.tree).thaw()?;
        let end = limit.map(|limit| start + limit);
        let wake = end.map(|end| end - (self.lateness_ns as u64).min(end - start));
        let woken = if stage.observes {
            let place = (arm.tree, arm.spec.load.is_some());
            let (waiter, forest) = (&stage.waiter, &mut stage.forest);
            arm.observer.watch(waiter, forest, place, &fds, wake)?
        } else if length_ns.is_none() && arm.server.is_none() {
            arm.watch(stage, &fds, wake)?
        } else {
            stage.waiter.readable(&fds, wake)?
        };
        let stop = clock::now_ns();
        if let (None, Some(end)) = (woken, end) {
            self.learn_lateness(stop as f64 - end as f64);
        }
        stage.forest.tree(arm.tree).freeze()?;
        let now = clock::now_ns();
        self.warn_overshoot(stage, arm, now - stop);
        stage.forest.collect();
        self.book(stage, arm, (start, now - start), filler)?;
        arm.look(stage);
        arm.ran(stage, now - start)?;
        Ok(now - start)
    }

    /// Lets an arm's server answer what the meter sends it for a slice, or (without a length) until
    /// everything is sent. The time is that from the first send to the last reply.
    pub fn drive(
        &mut self,
        stage: &mut Stage,
        arm: &mut Arm,
        length_ns: Option<u64>,
    ) -> Result<u64, Halt> {
        let filler = arm.is_finished();
        let length_ns = [length_ns, arm.left_ns()].into_iter().flatten().min();
        let start = clock::now_ns();
        stage.forest.tree(arm.tree).thaw()?;
        let burst = arm.send(length_ns);
        let stop = clock::now_ns();
        stage.forest.tree(arm.tree).freeze()?;
        self.warn_overshoot(stage, arm, clock::now_ns() - stop);
        stage.forest.collect();
        let burst = match burst {
            Ok(burst) => burst,
            Err(error) => {
                let halt = arm.drive_failed(stage, error);
                return arm.forgive_filler(stage, halt, filler).map(|()| 0);
            }
        };
        self.book(stage, arm, (start, burst.wall_ns), filler)?;
        if let Some(row) = self.rows.last_mut() {
            row.operations = Some(burst.operations);
        }
        arm.look(stage);
        arm.drove(stage, burst.wall_ns)?;
        Ok(burst.wall_ns)
    }

    /// Timers fire a little late, as a rule by the same amount.
    fn learn_lateness(&mut self, error_ns: f64) {
        let learned = self.lateness_ns + error_ns / 8.0;
        self.lateness_ns = learned.clamp(0.0, HABITUAL_LATENESS_NS);
    }

    fn warn_overshoot(&self, stage: &mut Stage, arm: &Arm, took_ns: u64) {
        if took_ns > OVERSHOOT_NS {
            let ms = took_ns as f64 / 1e6;
            let text =
                format!("took {ms:.1} ms to stop; its CPU time is right, its slice is longer");
            stage.warn("overshoot", arm.name(), text);
        }
    }

    fn book(
        &mut self,
        stage: &mut Stage,
        arm: &mut Arm,
        (start, wall_ns): (u64, u64),
        filler: bool,
    ) -> Result<(), Halt> {
        let reading = arm.reading(stage)?;
        let first = *self.first_ns.get_or_insert(start);
        self.end_ns = clock::now_ns();
        self.running_ns += wall_ns;
        self.rows.push(Row {
            arm: arm.tree as u16,
            filler,
            start_ns: start - first,
            wall_ns,
            cpu_ns: (reading.main - arm.last.main).cpu_ns,
            // What waits while all stand still, or between two slices, is none of this slice's.
            cpu_wait_ns: waited_ns(&reading, &arm.last).map(|ns| ns.min(wall_ns)),
            load_cpu_ns: (reading.load - arm.last.load).cpu_ns,
            operations: None,
        });
        let width = stage.counters.names.len();
        let pairs = reading.counters.iter().zip(&arm.last.counters);
        let counts = pairs.map(|(now, before)| now.saturating_sub(*before));
        self.counters
            .extend(counts.chain(std::iter::repeat(0)).take(width));
        arm.last = reading;
        Ok(())
    }

    /// Share of the time from the first to the last slice in which an arm was running.
    pub fn running_share(&self) -> f64 {
        let span = self
            .end_ns
            .saturating_sub(self.first_ns.unwrap_or(0))
            .max(1);
        self.running_ns as f64 / span as f64
    }

    pub fn tell(&self, stage: &mut Stage, arms: &[Arm]) -> Result<(), Halt> {
        let width = stage.counters.names.len();
        for (index, row) in self.rows.iter().enumerate() {
            if arms[usize::from(row.arm)].is_out() {
                continue;
            }
            let record = Record::Slice(Slice {
                execution: stage.execution,
                arm: &arms[usize::from(row.arm)].spec.name,
                start_ns: row.start_ns,
                wall_ns: row.wall_ns,
                cpu_ns: row.cpu_ns,
                load_cpu_ns: row.load_cpu_ns,
                cpu_wait_ns: row.cpu_wait_ns,
                filler: row.filler,
                operations: row.operations,
                counters: (
                    &stage.counters.names,
                    &self.counters[index * width..(index + 1) * width],
                ),
            });
            stage.out.put(&stage.waiter, &record)?;
        }
        Ok(())
    }
}
