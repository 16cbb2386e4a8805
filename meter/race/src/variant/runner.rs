//! What makes a variant work.

use crate::commands::launch::Process;
use ensign_load::Driver;

pub(super) enum Runner {
    Nothing,
    /// The batch program, or the load generator.
    Process(Process),
    /// The meter's own load.
    Drive(Box<Driver>),
}

impl Runner {
    pub(super) fn process(&self) -> Option<&Process> {
        match self {
            Runner::Process(process) => Some(process),
            Runner::Nothing | Runner::Drive(_) => None,
        }
    }

    pub(super) fn process_mut(&mut self) -> Option<&mut Process> {
        match self {
            Runner::Process(process) => Some(process),
            Runner::Nothing | Runner::Drive(_) => None,
        }
    }

    /// Leaves nothing in its place.
    pub(super) fn take(&mut self) -> Runner {
        std::mem::replace(self, Runner::Nothing)
    }

    /// Takes a process of which that holds.
    pub(super) fn take_process_if(
        &mut self,
        holds: impl FnOnce(&Process) -> bool,
    ) -> Option<Process> {
        if !self.process().is_some_and(holds) {
            return None;
        }
        match self.take() {
            Runner::Process(process) => Some(process),
            Runner::Nothing | Runner::Drive(_) => None,
        }
    }
}
