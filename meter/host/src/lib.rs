//! The machine as all parts of the meter use it: clocks, waits, CPUs, paths, what the processor has.

pub mod clock;
pub mod cpus;
pub mod path;
pub mod processor;
pub mod wait;
