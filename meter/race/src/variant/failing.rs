//! A variant that fails ends, and the race goes on without it.

use super::{State, Variant};
use crate::commands::verdict::{beyond, last_line};
use crate::halt::Halt;
use crate::processes::freezer::GROUPS;
use crate::run_state::RunState;
use ensign_protocol::records::{Limit, Reason};
use ensign_protocol::Code;

impl Variant<'_> {
    pub(crate) fn is_out(&self) -> bool {
        matches!(self.state, State::Out)
    }

    /// One step of this variant; what it fails at ends the variant alone, where the race can do without
    /// it. None where the variant is out.
    pub(crate) fn attempt<T>(
        &mut self,
        run_state: &mut RunState,
        step: impl FnOnce(&mut Self, &mut RunState) -> Result<T, Halt>,
    ) -> Result<Option<T>, Halt> {
        if self.is_out() {
            return Ok(None);
        }
        match step(self, run_state) {
            Err(Halt::Failed(failure)) if failure.is_of_a_variant() && !self.spec.required => {
                self.give_up(run_state);
                run_state.failures.push(failure);
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// Ends all of it, for it is beyond a limit.
    pub(crate) fn beyond(&mut self, run_state: &mut RunState, limit: Limit) -> Halt {
        for group in GROUPS {
            run_state.process_trees.kill(self.tree, group);
        }
        let mut last = String::new();
        for mut process in self
            .runner
            .take_process_if(|_| true)
            .into_iter()
            .chain(self.server.take())
        {
            let outcome = run_state.outcome(&mut process, self.name(), limit.reason());
            last = last_line(&outcome);
            run_state.outcomes.push(outcome);
        }
        let name = &self.spec.name;
        let said = beyond(limit, run_state.most(self.tree, limit));
        Halt::failed(Code::Limit, name, format!("variant {name:?}: {said}{last}"))
    }

    /// Ends all that still runs of it, at once.
    fn give_up(&mut self, run_state: &mut RunState) {
        self.state = State::Out;
        self.end_runner(run_state);
        for group in GROUPS {
            run_state.process_trees.kill(self.tree, group);
        }
        if let Some(mut server) = self.server.take() {
            let outcome = run_state.outcome(&mut server, self.name(), Reason::Ended);
            run_state.outcomes.push(outcome);
        }
    }
}
