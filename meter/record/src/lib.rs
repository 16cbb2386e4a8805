//! The recorder of compiler calls (docs/reference/recorder.md).

#![forbid(unsafe_code)]

mod call;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod hashing;
mod inputs;
mod line;
mod mixed;
mod parsed;
mod recorder;
mod rust_line;
mod sink;

pub use parsed::parsed;
pub use recorder::{called_as, record};
