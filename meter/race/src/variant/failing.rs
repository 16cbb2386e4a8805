//! A variant that fails ends, and the race goes on without it.

use super::{State, Variant};
use crate::halt::Halt;
use crate::processes::freezer::GROUPS;
use crate::run_state::RunState;
use ensign_protocol::records::Reason;

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
