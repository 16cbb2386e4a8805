//! The executions of a race.

use crate::arm::Arm;
use crate::clock;
use crate::freezer::Group;
use crate::halt::Halt;
use crate::launch::{self, Names};
use crate::ports::Ports;
use crate::priority::Priority;
use crate::records::{ArmTotal, DriveFacts, Execution, Record};
use crate::request::{Mode, Race};
use crate::schedule::{self, Dealer, Random};
use crate::server;
use crate::stage::Stage;
use crate::totals::Total;
use crate::turns::Turns;

const MOST_PADDING: usize = 4096;
/// Without any knowledge: all arms alike.
const UNKNOWN_NS: u64 = 1_000_000_000;

/// What a race remembers from one execution to the next.
struct Racing<'a> {
    request: &'a Race,
    arms: Vec<Arm<'a>>,
    random: Random,
    ports: Ports,
    /// Running times of earlier executions, summed per arm.
    sums_ns: Vec<u64>,
    longest_ns: u64,
    order: Vec<usize>,
}

/// Runs all executions that fit; gives how many were valid even when it was halted.
pub fn race(stage: &mut Stage, request: &Race) -> (u64, Result<(), Halt>) {
    let mut valid = 0;
    let result = run_all(stage, request, &mut valid);
    (valid, result)
}

fn run_all(stage: &mut Stage, request: &Race, valid: &mut u64) -> Result<(), Halt> {
    find_programs(request)?;
    let mut random = Random::new(request.seed);
    let mut arms = Vec::new();
    for spec in &request.arms {
        arms.push(Arm::new(spec, &mut stage.forest)?);
    }
    let mut racing = Racing {
        request,
        ports: Ports::new(request.ports, &mut random_now(&random)),
        sums_ns: vec![0; arms.len()],
        arms,
        longest_ns: 0,
        order: Vec::new(),
        random: random.fork(),
    };
    for execution in 0..request.executions {
        if racing.budget_is_spent(stage) {
            break;
        }
        stage.execution = execution;
        racing.execute(stage)?;
        *valid += 1;
    }
    Ok(())
}

/// Ports are no part of the experiment: two races with one seed must not fight for them.
fn random_now(random: &Random) -> Random {
    Random::new(random.clone().next_u64() ^ clock::now_ns() ^ u64::from(std::process::id()))
}

/// Programs that are not there are told of before anything runs (`prepare` might yet make them).
fn find_programs(request: &Race) -> Result<(), Halt> {
    for arm in request.arms.iter().filter(|arm| arm.prepare.is_empty()) {
        let names = Names {
            arm: Some(arm.name.clone()),
            ..Names::default()
        };
        let all = std::iter::once(&arm.program)
            .chain(arm.load_process())
            .chain(arm.set_up());
        for process in all.filter(|p| {
            !p.mentions("{tmp}") && !p.mentions("{files}") && !p.argv[0].contains("{port}")
        }) {
            launch::resolve(process, &names)?;
        }
    }
    Ok(())
}

impl Racing<'_> {
    fn budget_is_spent(&self, stage: &Stage) -> bool {
        let (Some(budget), Some(first)) = (self.request.budget_ns, stage.first_spawn_ns) else {
            return false;
        };
        clock::now_ns() - first + self.longest_ns > budget
    }

    fn execute(&mut self, stage: &mut Stage) -> Result<(), Halt> {
        let started_unix_ns = clock::unix_ns();
        let steal_ns = crate::procfs::steal_ns();
        let start = clock::now_ns();
        let mut turns = Turns::default();
        let mut result = self.run(stage, &mut turns);
        self.wind_down(stage);
        let wall_ns = clock::now_ns() - start;
        if !matches!(result, Err(Halt::Interrupted)) {
            let cleaned = self.clean_up(stage);
            result = result.and(cleaned);
        }
        for arm in &mut self.arms {
            arm.remove_tmp();
            server::give_port_back(arm, &mut self.ports);
        }
        if matches!(result, Err(Halt::Interrupted)) {
            return result;
        }
        if result.is_ok() && self.arms.iter().all(Arm::is_out) {
            let last = stage.failures.pop();
            result = Err(last.map_or_else(|| Halt::system("no arm is left"), Halt::Failed));
        }
        self.longest_ns = self.longest_ns.max(wall_ns);
        self.tell(stage, &turns, result.is_ok())?;
        let record = Record::Execution(Execution {
            execution: stage.execution,
            wall_ns,
            started_unix_ns,
            running_share: turns.running_share(),
            steal_ns: crate::procfs::steal_ns().saturating_sub(steal_ns),
            valid: result.is_ok(),
        });
        stage.out.put(&stage.waiter, &record)?;
        stage.out.flush(&stage.waiter)?;
        result
    }

    fn run(&mut self, stage: &mut Stage, turns: &mut Turns) -> Result<(), Halt> {
        for arm in self.arms.iter_mut().filter(|arm| !arm.is_out()) {
            let padding = self
                .request
                .env_padding
                .then(|| self.random.below(MOST_PADDING));
            arm.begin(stage, padding)?;
            server::take_port(arm, &mut self.ports)?;
        }
        match self.request.mode {
            Mode::Gated => self.gated(stage, turns),
            Mode::Driven => self.driven(stage, turns),
            Mode::Whole => self.whole(stage, turns),
        }
    }

    /// `prepare` and the server of an arm; it stands still afterwards.
    fn set_up(&mut self, stage: &mut Stage, index: usize) -> Result<(), Halt> {
        let ports = &mut self.ports;
        let done = self.arms[index].attempt(stage, |arm, stage| set_up(arm, stage, ports));
        done.map(|_| ())
    }

    /// The arms that take part, in the order in which they are set up.
    fn order_of_set_up(&mut self) -> Vec<usize> {
        let mut order = self.random.permutation(self.arms.len());
        order.retain(|&index| !self.arms[index].is_out());
        order
    }

    fn gated(&mut self, stage: &mut Stage, turns: &mut Turns) -> Result<(), Halt> {
        let order = self.order_of_set_up();
        for &index in &order {
            self.set_up(stage, index)?;
        }
        for &index in &order {
            self.arms[index].attempt(stage, Arm::start_runner)?;
        }
        let _on_time = Priority::raise();
        self.deal(stage, |arm, stage, slice_ns| {
            if arm.runner.is_none() {
                arm.start_runner(stage)?;
            }
            if arm.runner.is_none() {
                return Ok(None);
            }
            turns.slice(stage, arm, Some(slice_ns)).map(Some)
        })
    }

    /// Deals slices until all arms have finished; `run` gives the time that one ran, if it did.
    fn deal(
        &mut self,
        stage: &mut Stage,
        mut run: impl FnMut(&mut Arm, &mut Stage, u64) -> Result<Option<u64>, Halt>,
    ) -> Result<(), Halt> {
        let slice_ns = self.request.slice_ns;
        let expected = self.expected_ns(stage.execution);
        let mut dealer = Dealer::new(&expected, slice_ns, self.random.fork());
        let is_done = |arm: &Arm| arm.is_finished() || arm.is_out();
        while !self.arms.iter().all(is_done) {
            let Some(index) = dealer.next(
                |index| !is_done(&self.arms[index]),
                |index| self.arms[index].fills() && !self.arms[index].is_out(),
            ) else {
                return Err(Halt::system("no arm can run"));
            };
            let ran = self.arms[index].attempt(stage, |arm, stage| run(arm, stage, slice_ns))?;
            if let Some(ran_ns) = ran.flatten() {
                dealer.ran(index, ran_ns);
            }
        }
        Ok(())
    }

    /// As `gated`, but a slice is what the meter itself sends in it, and it ends with the last
    /// reply. The meter is not raised above other processes: it is busy, as a load generator is.
    fn driven(&mut self, stage: &mut Stage, turns: &mut Turns) -> Result<(), Halt> {
        let order = self.order_of_set_up();
        for &index in &order {
            self.set_up(stage, index)?;
        }
        for &index in &order {
            self.arms[index].attempt(stage, Arm::connect)?;
        }
        self.deal(stage, |arm, stage, slice_ns| {
            turns.drive(stage, arm, Some(slice_ns)).map(Some)
        })
    }

    /// Whole executions in turn. Servers are all there, and stand still when not on turn, unless
    /// arms are to be kept apart.
    fn whole(&mut self, stage: &mut Stage, turns: &mut Turns) -> Result<(), Halt> {
        let order = self.whole_order();
        let is_server = |arm: &Arm| arm.spec.load.is_some();
        let apart = self.request.apart;
        for &index in &order {
            if is_server(&self.arms[index]) && !apart {
                self.set_up(stage, index)?;
            }
        }
        for &index in &order {
            if !is_server(&self.arms[index]) || apart {
                self.set_up(stage, index)?;
            }
            self.arms[index].attempt(stage, |arm, stage| {
                if arm.spec.drive().is_some() {
                    arm.connect(stage)?;
                    return turns.drive(stage, arm, None).map(|_| ());
                }
                arm.start_runner(stage)?;
                while !arm.is_finished() {
                    turns.slice(stage, arm, None)?;
                }
                Ok(())
            })?;
            if apart {
                self.arms[index].end_runner(stage);
                server::stop_all(std::slice::from_mut(&mut self.arms[index]), stage);
            }
        }
        Ok(())
    }

    /// The turns of the arms that take part, as balanced as if there had never been others.
    fn whole_order(&mut self) -> Vec<usize> {
        let arms = 0..self.arms.len();
        let living: Vec<usize> = arms.filter(|&index| !self.arms[index].is_out()).collect();
        let place = |index: &usize| living.iter().position(|other| other == index);
        let previous: Vec<usize> = self.order.iter().filter_map(place).collect();
        let order = schedule::whole_order(&mut self.random, living.len(), &previous);
        self.order = order.into_iter().map(|place| living[place]).collect();
        self.order.clone()
    }

    /// What each arm is expected to need: as told, else as measured, else like the others.
    fn expected_ns(&self, executions: u64) -> Vec<u64> {
        let known: Vec<Option<u64>> = (0..self.arms.len())
            .map(|index| match executions {
                0 => self.arms[index].spec.expected_ns,
                _ => Some(self.sums_ns[index] / executions),
            })
            .collect();
        let told: Vec<u64> = known.iter().flatten().copied().collect();
        let mean = told.iter().sum::<u64>().checked_div(told.len() as u64);
        known
            .into_iter()
            .map(|ns| ns.or(mean).unwrap_or(UNKNOWN_NS))
            .collect()
    }

    /// Ends what still runs, whatever the execution came to.
    fn wind_down(&mut self, stage: &mut Stage) {
        for arm in &mut self.arms {
            arm.end_runner(stage);
        }
        server::stop_all(&mut self.arms, stage);
        stage.forest.kill_everything();
        for name in stage.forest.end_escaped() {
            stage.warn(
                "escape",
                None,
                format!("{name} left its arm's process tree and was ended"),
            );
        }
        stage.forest.collect();
        for arm in &self.arms {
            for group in [Group::Main, Group::Load, Group::Aside] {
                stage.forest.take_orphans(arm.tree, group);
            }
        }
    }

    fn clean_up(&mut self, stage: &mut Stage) -> Result<(), Halt> {
        let mut result = Ok(());
        for arm in &mut self.arms {
            // All arms are cleaned up after, also when one of them fails at it.
            let cleaned = if arm.is_out() {
                match arm.clean_up(stage) {
                    Err(Halt::Interrupted) => Err(Halt::Interrupted),
                    _ => Ok(()),
                }
            } else {
                arm.attempt(stage, Arm::clean_up).map(|_| ())
            };
            result = result.and(cleaned);
        }
        stage.forest.kill_everything();
        result
    }

    fn tell(&mut self, stage: &mut Stage, turns: &Turns, valid: bool) -> Result<(), Halt> {
        if valid {
            turns.tell(stage, &self.arms)?;
            for index in 0..self.arms.len() {
                if !self.arms[index].is_out() {
                    self.tell_arm(stage, index)?;
                }
            }
        }
        stage.tell()
    }

    fn tell_arm(&mut self, stage: &mut Stage, index: usize) -> Result<(), Halt> {
        let spec = self.arms[index].spec;
        let total = self.arms[index].total.take().unwrap_or_default();
        self.sums_ns[index] += total.wall_ns;
        if spec.load.is_some() {
            let threads = spec.drive().map_or(1, |drive| drive.threads);
            warn_bottleneck(stage, (&spec.name, threads), &total);
        }
        let record = Record::Arm(Box::new(ArmTotal {
            execution: stage.execution,
            arm: &spec.name,
            wall_ns: total.wall_ns,
            cpu_ns: total.usage.cpu_ns,
            user_ns: total.usage.user_ns,
            system_ns: total.usage.system_ns,
            load_cpu_ns: total.load_cpu_ns,
            operations: total.operations,
            peak_memory_bytes: total.footprint.peak_memory_bytes,
            voluntary_switches: total.footprint.voluntary_switches,
            involuntary_switches: total.footprint.involuntary_switches,
            slices: total.slices,
            counters: stage.counters.named(&total.counters),
            cpu_wait_ns: total.cpu_wait_ns,
            activity: total.activity,
            load_activity: total.load_activity,
            score: total.score,
            digest: total.digest,
            mapped: &self.arms[index].mapped,
            drive: total.drive.as_ref().map(DriveFacts::of),
        }));
        stage.out.put(&stage.waiter, &record)
    }
}

/// `prepare` and the server of an arm; it stands still afterwards.
fn set_up(arm: &mut Arm, stage: &mut Stage, ports: &mut Ports) -> Result<(), Halt> {
    arm.prepare(stage)?;
    if arm.spec.load.is_some() {
        server::start(arm, stage, ports)?;
    }
    stage.forest.tree(arm.tree).freeze()?;
    Ok(())
}

/// The load generator is busy all the time and the server is not: its own speed is measured.
fn warn_bottleneck(stage: &mut Stage, (arm, threads): (&str, usize), total: &Total) {
    let share = |cpu_ns: u64| cpu_ns as f64 / total.wall_ns.max(1) as f64;
    let (load, server) = (share(total.load_cpu_ns), share(total.usage.cpu_ns));
    if load >= 0.95 * threads as f64 && server < 0.90 {
        let text = format!(
            "the load generator used {:.0} % of a CPU, the server {:.0} %: the generator is the bottleneck",
            load * 100.0,
            server * 100.0
        );
        stage.warn("load-bottleneck", Some(arm), text);
    }
}
