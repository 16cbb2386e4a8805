//! The recorder of compiler calls (docs/reference/recorder.md).

mod call;
mod hashing;
mod inputs;
mod recorder;

pub use recorder::{called_as, record};
