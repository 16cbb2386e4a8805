//! The executions of a race.

mod reporting;

use crate::commands::launch::{self, Names};
use crate::halt::Halt;
use crate::ports::Ports;
use crate::processes::freezer::Group;
use crate::processes::priority::Priority;
use crate::run_state::RunState;
use crate::schedule::{self, Dealer};
use crate::server;
use crate::turns::Turns;
use crate::variant::Variant;
use ensign_host::clock;
use ensign_protocol::random::Random;
use ensign_protocol::records::{Execution, Record};
use ensign_protocol::request::{Mode, Race};
use ensign_protocol::WarningCode;

const MOST_PADDING: usize = 4096;
/// Without any knowledge: all variants alike.
const UNKNOWN_NS: u64 = 1_000_000_000;

/// What a race remembers from one execution to the next.
struct Racing<'a> {
    request: &'a Race,
    variants: Vec<Variant<'a>>,
    random: Random,
    ports: Ports,
    /// Running times of earlier executions, summed per variant.
    sums_ns: Vec<u64>,
    longest_ns: u64,
    order: Vec<usize>,
}

/// Runs all executions that fit; gives how many were valid even when it was halted.
pub(crate) fn race(run_state: &mut RunState, request: &Race) -> (u64, Result<(), Halt>) {
    let mut valid = 0;
    let result = run_all(run_state, request, &mut valid);
    (valid, result)
}

fn run_all(run_state: &mut RunState, request: &Race, valid: &mut u64) -> Result<(), Halt> {
    find_programs(request)?;
    let mut random = Random::new(request.seed);
    let mut variants = Vec::new();
    for spec in &request.variants {
        variants.push(Variant::new(spec, &mut run_state.process_trees)?);
    }
    let mut racing = Racing {
        request,
        ports: Ports::new(request.ports, &mut random_now(&random)),
        sums_ns: vec![0; variants.len()],
        variants,
        longest_ns: 0,
        order: Vec::new(),
        random: random.fork(),
    };
    for execution in 0..request.executions {
        if racing.budget_is_spent(run_state) {
            break;
        }
        run_state.execution = execution;
        racing.execute(run_state)?;
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
    for variant in request
        .variants
        .iter()
        .filter(|variant| variant.prepare.is_empty())
    {
        let names = Names {
            variant: Some(variant.name.clone()),
            ..Names::default()
        };
        let all = std::iter::once(&variant.program)
            .chain(variant.load_process())
            .chain(variant.set_up());
        for process in all.filter(|p| {
            !p.mentions("{tmp}") && !p.mentions("{files}") && !p.argv[0].contains("{port}")
        }) {
            launch::resolve(process, &names)?;
        }
    }
    Ok(())
}

impl Racing<'_> {
    fn budget_is_spent(&self, run_state: &RunState) -> bool {
        let (Some(budget), Some(first)) = (self.request.budget_ns, run_state.first_spawn_ns) else {
            return false;
        };
        clock::now_ns() - first + self.longest_ns > budget
    }

    fn execute(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        let started_unix_ns = clock::unix_ns();
        let steal_ns = crate::processes::procfs::steal_ns();
        let start = clock::now_ns();
        let mut turns = Turns::default();
        let mut result = self.run(run_state, &mut turns);
        self.wind_down(run_state);
        let wall_ns = clock::now_ns() - start;
        if !matches!(result, Err(Halt::Interrupted)) {
            let cleaned = self.clean_up(run_state);
            result = result.and(cleaned);
        }
        for variant in &mut self.variants {
            variant.remove_tmp();
            server::give_port_back(variant, &mut self.ports);
        }
        if matches!(result, Err(Halt::Interrupted)) {
            return result;
        }
        if result.is_ok() && self.variants.iter().all(Variant::is_out) {
            let last = run_state.failures.pop();
            result = Err(last.map_or_else(|| Halt::internal("no variant is left"), Halt::Failed));
        }
        self.longest_ns = self.longest_ns.max(wall_ns);
        self.tell(run_state, &turns, result.is_ok())?;
        let record = Record::Execution(Execution {
            execution: run_state.execution,
            wall_ns,
            started_unix_ns,
            running_share: turns.running_share(),
            steal_ns: crate::processes::procfs::steal_ns().saturating_sub(steal_ns),
            valid: result.is_ok(),
        });
        run_state.out.put(&run_state.waiter, &record)?;
        run_state.out.flush(&run_state.waiter)?;
        result
    }

    fn run(&mut self, run_state: &mut RunState, turns: &mut Turns) -> Result<(), Halt> {
        // Whose files are copied first has the better pages: nobody may always be the first.
        for index in self.order_of_set_up() {
            let padding = self
                .request
                .env_padding
                .then(|| self.random.below(MOST_PADDING));
            let variant = &mut self.variants[index];
            variant.begin(run_state, padding)?;
            server::take_port(variant, &mut self.ports)?;
        }
        match self.request.mode {
            Mode::Interleaved => self.interleaved(run_state, turns),
            Mode::Driven => self.driven(run_state, turns),
            Mode::Alternating => self.whole(run_state, turns),
        }
    }

    /// `prepare` and the server of a variant; it stands still afterwards.
    fn set_up(&mut self, run_state: &mut RunState, index: usize) -> Result<(), Halt> {
        let ports = &mut self.ports;
        let done = self.variants[index].attempt(run_state, |variant, run_state| {
            set_up(variant, run_state, ports)
        });
        done.map(|_| ())
    }

    /// The variants that take part, in the order in which they are set up.
    fn order_of_set_up(&mut self) -> Vec<usize> {
        let mut order = self.random.permutation(self.variants.len());
        order.retain(|&index| !self.variants[index].is_out());
        order
    }

    fn interleaved(&mut self, run_state: &mut RunState, turns: &mut Turns) -> Result<(), Halt> {
        let order = self.order_of_set_up();
        for &index in &order {
            self.set_up(run_state, index)?;
        }
        for &index in &order {
            self.variants[index].attempt(run_state, Variant::start_runner)?;
        }
        let _on_time = Priority::raise();
        self.deal(run_state, |variant, run_state, slice_ns| {
            if !variant.has_runner() {
                variant.start_runner(run_state)?;
            }
            if !variant.has_runner() {
                return Ok(None);
            }
            turns.slice(run_state, variant, Some(slice_ns)).map(Some)
        })
    }

    /// Deals slices until all variants have finished; `run` gives the time that one ran, if it did.
    fn deal(
        &mut self,
        run_state: &mut RunState,
        mut run: impl FnMut(&mut Variant, &mut RunState, u64) -> Result<Option<u64>, Halt>,
    ) -> Result<(), Halt> {
        let slice_ns = self.request.slice_ns;
        let expected = self.expected_ns(run_state.execution);
        let mut dealer = Dealer::new(&expected, slice_ns, self.random.fork());
        // No program can know when it is looked at, nor keep time with it.
        let mut jitter = run_state.samples_code.then(|| self.random.fork());
        let is_done = |variant: &Variant| variant.is_finished() || variant.is_out();
        while !self.variants.iter().all(is_done) {
            let Some(index) = dealer.next(
                |index| !is_done(&self.variants[index]),
                |index| self.variants[index].fills(),
            ) else {
                return Err(Halt::internal("no variant can run"));
            };
            let length = jitter.as_mut().map_or(1.0, |random| 0.5 + random.unit());
            let length_ns = (slice_ns as f64 * length) as u64;
            let ran = self.variants[index].attempt(run_state, |variant, run_state| {
                run(variant, run_state, length_ns)
            })?;
            if let Some(ran_ns) = ran.flatten() {
                dealer.ran(index, ran_ns);
            }
        }
        Ok(())
    }

    /// As `interleaved`, but a slice is what the meter itself sends in it, and it ends with the last
    /// reply. The meter is not raised above other processes: it is busy, as a load generator is.
    fn driven(&mut self, run_state: &mut RunState, turns: &mut Turns) -> Result<(), Halt> {
        let order = self.order_of_set_up();
        for &index in &order {
            self.set_up(run_state, index)?;
        }
        for &index in &order {
            self.variants[index].attempt(run_state, Variant::connect)?;
        }
        self.deal(run_state, |variant, run_state, slice_ns| {
            turns.drive(run_state, variant, Some(slice_ns)).map(Some)
        })
    }

    /// Whole executions in turn. Servers are all there, and stand still when not on turn, unless
    /// variants are to be kept apart.
    fn whole(&mut self, run_state: &mut RunState, turns: &mut Turns) -> Result<(), Halt> {
        let order = self.whole_order();
        let is_server = |variant: &Variant| variant.spec.load.is_some();
        let apart = self.request.apart;
        for &index in &order {
            if is_server(&self.variants[index]) && !apart {
                self.set_up(run_state, index)?;
            }
        }
        for &index in &order {
            if !is_server(&self.variants[index]) || apart {
                self.set_up(run_state, index)?;
            }
            self.variants[index].attempt(run_state, |variant, run_state| {
                if variant.spec.drive().is_some() {
                    variant.connect(run_state)?;
                    return turns.drive(run_state, variant, None).map(|_| ());
                }
                variant.start_runner(run_state)?;
                while !variant.is_finished() {
                    turns.slice(run_state, variant, None)?;
                }
                Ok(())
            })?;
            if apart {
                self.variants[index].end_runner(run_state);
                server::stop_all(std::slice::from_mut(&mut self.variants[index]), run_state);
            }
        }
        Ok(())
    }

    /// The turns of the variants that take part, as balanced as if there had never been others.
    fn whole_order(&mut self) -> Vec<usize> {
        let variants = 0..self.variants.len();
        let living: Vec<usize> = variants
            .filter(|&index| !self.variants[index].is_out())
            .collect();
        let place = |index: &usize| living.iter().position(|other| other == index);
        let previous: Vec<usize> = self.order.iter().filter_map(place).collect();
        let order = schedule::whole_order(&mut self.random, living.len(), &previous);
        self.order = order.into_iter().map(|place| living[place]).collect();
        self.order.clone()
    }

    /// What each variant is expected to need: as told, else as measured, else like the others.
    fn expected_ns(&self, executions: u64) -> Vec<u64> {
        let known: Vec<Option<u64>> = (0..self.variants.len())
            .map(|index| match executions {
                0 => self.variants[index].spec.expected_ns,
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
    fn wind_down(&mut self, run_state: &mut RunState) {
        for variant in &mut self.variants {
            variant.end_runner(run_state);
        }
        server::stop_all(&mut self.variants, run_state);
        run_state.process_trees.kill_everything();
        for (pid, name) in run_state.process_trees.end_escaped() {
            let text = format!("{name} ({pid}) left its variant's process tree and was ended");
            run_state.warn_of_ended(WarningCode::Escape, None, text, vec![name]);
        }
        run_state.process_trees.collect();
        for variant in &self.variants {
            for group in [Group::Main, Group::Load, Group::Aside] {
                run_state.process_trees.take_orphans(variant.tree, group);
            }
        }
    }

    fn clean_up(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        let mut result = Ok(());
        for variant in &mut self.variants {
            // All variants are cleaned up after, also when one of them fails at it.
            let cleaned = if variant.is_out() {
                match variant.clean_up(run_state) {
                    Err(Halt::Interrupted) => Err(Halt::Interrupted),
                    _ => Ok(()),
                }
            } else {
                variant.attempt(run_state, Variant::clean_up).map(|_| ())
            };
            result = result.and(cleaned);
        }
        run_state.process_trees.kill_everything();
        result
    }
}

/// `prepare` and the server of a variant; it stands still afterwards.
fn set_up(variant: &mut Variant, run_state: &mut RunState, ports: &mut Ports) -> Result<(), Halt> {
    variant.prepare(run_state)?;
    if variant.spec.load.is_some() {
        server::start(variant, run_state, ports)?;
    }
    run_state.process_trees.tree(variant.tree).freeze()?;
    Ok(())
}
