//! What the meter is asked and what it answers (docs/reference/meter-protocol.md, docs/reference/drive.md): data, and what
//! must hold for them. Pure.

#![forbid(unsafe_code)]

mod check;
mod code;
pub mod drive;
pub mod followed;
mod problem;
pub mod random;
pub mod records;
pub mod request;
pub mod schema;

pub use code::{Code, WarningCode};
pub use problem::{Problem, ProblemCode};
