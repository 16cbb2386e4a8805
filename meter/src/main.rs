//! `ensign-meter`: races programs slice by slice and accounts for what each of them used.
//!
//! It reads one request from standard input and writes records to standard output; both are
//! described in docs/meter-protocol.md.

mod activity;
mod call;
mod cgroup;
mod clock;
mod counters;
mod drain;
mod drive;
mod exec;
mod follow;
mod freezer;
mod guardian;
mod halt;
mod hashing;
mod inputs;
mod launch;
mod lookup;
mod ports;
mod priority;
mod probe;
mod process_trees;
mod procfs;
mod race;
mod recorder;
mod records;
mod request;
mod run;
mod run_state;
mod schedule;
mod scope;
mod score;
mod scratch;
mod server;
mod signals;
mod spawn;
mod totals;
mod turns;
mod usage;
mod variant;
mod wait;
mod worker;

use clap::{Parser, Subcommand};
use halt::Code;
use records::{last_words, Status};
use request::Request;
use std::io::Write;

/// Races programs slice by slice and accounts for what each of them used.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Races the variants of the request on standard input.
    Race,
    /// Runs the one command of the request on standard input.
    Exec,
    /// Drives the server of the request on standard input.
    Drive,
    /// Says in one line what is possible here.
    Probe,
    /// Runs a program and says what it and its children executed, mapped and wrote.
    Follow(follow::Arguments),
}

/// A verb that takes a request.
#[derive(Clone, Copy)]
pub enum Verb {
    Race,
    Exec,
    Drive,
}

fn main() {
    if let Some(name) = recorder::called_as() {
        std::process::exit(recorder::record(&name));
    }
    let arguments = Arguments::parse();
    // These make no control groups.
    let groupless = matches!(arguments.command, Action::Drive | Action::Follow(_));
    let in_scope = !groupless && scope::enter();
    let status = match arguments.command {
        Action::Race => serve(Verb::Race),
        Action::Exec => serve(Verb::Exec),
        Action::Drive => serve(Verb::Drive),
        Action::Probe => {
            println!("{}", probe::probe(in_scope));
            0
        }
        Action::Follow(arguments) => follow::follow(arguments),
    };
    std::process::exit(status);
}

fn serve(verb: Verb) -> i32 {
    let request = guardian::read_request()
        .map_err(|error| format!("cannot read the request: {error}"))
        .and_then(|bytes| Request::parse(verb, &bytes));
    let request = match request {
        Ok(request) => request,
        Err(text) => return refuse(Code::Request, &text),
    };
    guardian::guard(&request).unwrap_or_else(|error| refuse(Code::System, &error.to_string()))
}

fn refuse(code: Code, text: &str) -> i32 {
    let mut words = Vec::new();
    last_words(&mut words, Some((code.name(), text)), Status::Failed);
    // Where nobody reads, nobody can be told.
    let _ = std::io::stdout().write_all(&words);
    code.exit_status()
}
