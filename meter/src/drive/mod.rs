//! The meter's own load generator for servers of the Redis protocol (docs/drive.md).
//!
//! `spec` is what is written, `check` what must hold for it. `stream` says what each connection
//! sends, from `template`, `keys` and `data`; `resp` reads replies, `expect` judges them: all that
//! is pure. `connection` and `share` (the connections of one thread) do it, `driver` has it all.

mod check;
mod connection;
mod data;
pub mod driver;
pub mod error;
mod expect;
mod keys;
mod latency;
mod opening;
mod poller;
mod resp;
mod share;
pub mod spec;
mod stream;
mod template;
pub mod verb;

pub use driver::{Burst, Driver, Report};
pub use error::DriveError;
pub use latency::Summary;
