//! An arm that fails ends, and the race goes on without it.

use super::Arm;
use crate::freezer::GROUPS;
use crate::halt::Halt;
use crate::records::Reason;
use crate::stage::Stage;

impl Arm<'_> {
    pub fn is_out(&self) -> bool {
        self.out
    }

    /// One step of this arm; what it fails at ends the arm alone, where the race can do without
    /// it. None where the arm is out.
    pub fn attempt<T>(
        &mut self,
        stage: &mut Stage,
        step: impl FnOnce(&mut Self, &mut Stage) -> Result<T, Halt>,
    ) -> Result<Option<T>, Halt> {
        if self.out {
            return Ok(None);
        }
        match step(self, stage) {
            Err(Halt::Failed(failure)) if failure.is_of_an_arm() && !self.spec.required => {
                self.give_up(stage);
                stage.failures.push(failure);
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// Ends all that still runs of it, at once.
    fn give_up(&mut self, stage: &mut Stage) {
        self.out = true;
        self.total = None;
        self.end_runner(stage);
        for group in GROUPS {
            stage.forest.kill(self.tree, group);
        }
        if let Some(mut server) = self.server.take() {
            let outcome = stage.outcome(&mut server, self.name(), Reason::Ended);
            stage.outcomes.push(outcome);
        }
    }
}
