//! The machine as all parts of the meter use it: clocks, waits, CPUs.

pub mod clock;
pub mod cpus;
pub mod wait;
