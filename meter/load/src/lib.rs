//! The meter's own load generator for servers of the Redis protocol (docs/reference/drive.md).
//!
//! `stream` says what each connection sends, from `template`, `keys` and `data`; `resp` reads
//! replies, `expect` judges them: all that is pure. `connection` and `share` (the connections of
//! one thread) do it, `driver` has it all.

mod connection;
mod data;
mod driver;
mod error;
mod expect;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod keys;
mod latency;
mod opening;
mod poller;
mod resp;
mod share;
mod stream;
mod template;

pub use driver::{Burst, Driver, Report};
pub use error::DriveError;
