//! What the meter is asked and what it answers (docs/reference/meter-protocol.md, docs/reference/drive.md): data, and what
//! must hold for them. Pure.

mod check;
mod code;
pub mod drive;
pub mod random;
pub mod records;
pub mod request;

pub use code::{Code, WarningCode};
