//! A variant that has finished runs on beside others that have not, uncounted.

use super::{State, Variant};
use crate::commands::launch::Process;
use crate::commands::verdict::last_line;
use crate::halt::Halt;
use crate::run_state::RunState;
use ensign_protocol::records::Reason;
use ensign_protocol::WarningCode;

impl Variant<'_> {
    /// Whether it may run beside a variant that has not finished.
    pub(crate) fn fills(&self) -> bool {
        match self.state {
            State::Finished { fills, .. } => fills || self.has_runner(),
            State::Measured | State::Out => false,
        }
    }

    /// It is not started again.
    pub(super) fn end_filling(&mut self) {
        if let State::Finished { fills, .. } = &mut self.state {
            *fills = false;
        }
    }

    /// What fails as filler counts nowhere; it is said, and not tried again.
    pub(super) fn fill_no_more(&mut self, run_state: &mut RunState, why: &str) {
        self.end_filling();
        run_state.warn(
            WarningCode::FillerFailed,
            self.name(),
            format!("failed as filler{why}"),
        );
    }

    pub(super) fn filler_ended(
        &mut self,
        run_state: &mut RunState,
        mut runner: Process,
    ) -> Result<(), Halt> {
        let outcome = run_state.outcome(&mut runner, self.name(), Reason::Filler);
        // Ended by itself with an error: again would be the same.
        let failed =
            outcome.exit != Some(0) && matches!(self.state, State::Finished { fills: true, .. });
        if failed && !runner.ignore_failure {
            self.fill_no_more(run_state, &last_line(&outcome));
        }
        run_state.outcomes.push(outcome);
        Ok(())
    }
}
