//! The recorder of compiler calls (docs/reference/recorder.md).

mod call;
mod hashing;
mod inputs;
mod line;
mod parsed;
mod recorder;
mod sink;

pub use parsed::parsed;
pub use recorder::{called_as, record};
