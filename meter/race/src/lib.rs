//! Races programs slice by slice, and runs what a race needs around it.
//!
//! The process that the caller started is the guardian; its worker (`worker`) carries the request
//! out with the state of the run (`run_state`): a `race`, one command (`exec`) or a `drive`.
//! `processes` starts, stops and accounts for process trees, `commands` makes processes of what is
//! requested, `variant` is one variant of a race, `follow` says what a program did.

mod activity;
mod as_user;
mod commands;
mod drive;
mod emitter;
mod ends;
mod exec;
mod follow;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod guardian;
mod halt;
mod lease;
mod limited;
mod ports;
mod probe;
mod processes;
mod race;
mod run;
mod run_state;
mod schedule;
mod scope;
mod score;
mod server;
mod totals;
mod turns;
mod unit;
mod user_folder;
mod variant;
mod waits;
mod worker;

pub use as_user::as_user;
pub use ends::{ends, End, Network};
pub use follow::follow;
pub use guardian::{guard, read_request, Refusal};
pub use probe::{probe, processor};
pub use scope::enter as enter_scope;
